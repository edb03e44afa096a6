"""What can be done over HTTP can be done over MCP, or the reason why it cannot is written down here."""

import muster.api
import muster.mcp
from muster.app.views import outlines
from tests.api.test_use_cases import PARTS, names_used, use_cases

NO_TOOL = {
    "suites.before": "of the page; the tool compare names both runs",
    "acting_for": "a part of every call",
    "audit.list": "what users did is the operator's to read",
    "batches.stalled": "of health; every view of a batch says whether it gets on",
    "batches.stats": "figures for the operator; the batch itself is told",
    "battles.cancel": "control_run cancels any run",
    "battles.scales.cancel": "control_run cancels any run",
    "battles.scales.result": "the status has it when it is over",
    "battles.standing": "status does it",
    "councils.people_to_ask": "a part of the routes, which persons read before they answer",
    "councils.require_no_people_to_ask": "a part of the routes, which persons read before they answer",
    "costs": "what all users spent is the operator's to read; every run tells its own",
    "chains.find": "any id is found among all runs",
    "chains.list": "list_work does it",
    "metrics": "for Prometheus",
    "runs.attempts": "for timelines; a call is told with its error",
    "pool.read": "an agent would miss messages that another has read for it",
    "pool.tasks.amend": "cancel it and submit another",
    "pool.tasks.claim": "the server gives tasks to slots by itself",
    "pool.tasks.list": "list_work does it",
    "pool.trees.overlaps": "the diffs of the tasks show it; merging is the operator's",
    "runs.batches_of": "of the operator",
    "runs.delete": "what was done stays for the operator to read",
    "runs.details": "result does it",
    "runs.media": "of the page; a file is told by its digest",
    "runs.submit_fork": "keys of the journal are for people who look at a run; resume goes on with it",
    "runs.workers": "the server is one",
    "suites.baselines.list": "compare names runs",
    "suites.pairs": "for lists; compare names what got worse",
    "suites.results.case": "the report tells of each case that did not pass; its calls are told",
    "suites.results.cases": "for lists; the report tells of each case that did not pass",
    "suites.results.subjects": "the report names them",
    "suites.results.summary": "for charts; the report has the figures",
    "suites.review": "the opinion of a person on a judge",
    "suites.reviews": "the opinions of people on a judge",
    "suites.trend": "for people who look at charts; compare says whether a run is worse",
    "verify.find": "any id is found among all runs",
    "verify.findings": "the report has them",
    "verify.metrics": "the project is verified by its operator, its hook and its CI",
    "verify.report": "result does it",
}


def test_every_use_case_of_a_route_has_a_tool_or_a_reason() -> None:
    routes, tools = names_used(muster.api), names_used(muster.mcp) | names_used(outlines)
    offered = {name for part, kind in PARTS.items() for name in use_cases(part, kind) if name in routes}
    assert offered - tools == set(NO_TOOL), "add it to a tool, or say in NO_TOOL why there is none"
