"""What one edge can do the other can: a use case has a route and a command, or its exception is written down here."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import muster.api.routes
import muster.cli
from muster.api.app import ROUTERS
from muster.api.bodies import (
    ForkBody,
    ResumeBody,
)
from muster.app.battles.battles import Battles
from muster.app.battles.scales import Scales
from muster.app.chains.chains import Chains
from muster.app.councils.councils import Councils
from muster.app.muster import Muster
from muster.app.parts.audit import UserActions
from muster.app.parts.library import Library
from muster.app.pool.monitor import PoolMonitor
from muster.app.pool.pool import Pool
from muster.app.pool.tasks import Tasks
from muster.app.pool.trees import TaskTrees
from muster.app.runs.batches import Batches
from muster.app.runs.kind_part import KindPart
from muster.app.runs.runs import Runs
from muster.app.suites.results import SuiteResults
from muster.app.suites.reviews import Baselines
from muster.app.suites.suites import Suites
from muster.app.verify.verifications import Verifications

PARTS: dict[str, type] = {
    "": Muster,
    "runs": Runs,
    "suites": Suites,
    "suites.baselines": Baselines,
    "suites.results": SuiteResults,
    "verify": Verifications,
    "pool": Pool,
    "pool.tasks": Tasks,
    "pool.trees": TaskTrees,
    "pool.monitor": PoolMonitor,
    "chains": Chains,
    "councils": Councils,
    "battles": Battles,
    "battles.scales": Scales,
    "batches": Batches,
    "library": Library,
    "audit": UserActions,
}

# What a server does in another way, or must not do.
NO_ROUTE = {
    "runs": {
        "fork": "a server submits",
        "queue": "a part of resumes",
        **dict.fromkeys(
            ("newest", "newest_named", "follow_or_resume", "follow_or_submit"), "a part of other use cases"
        ),
        "keys": "calls, events and the trace show them",
        "end_of_lineage": "a part of the answer to a start",
        "of_kind": "a part of other use cases",
        **dict.fromkeys(("options", "ordered"), "by app.serving, for every door"),
        "last_of": "a part of other use cases",
        "list": "page does it",
        "get": "a part of other use cases",
        "entry": "a part of call",
        "unknown": "of the process itself",
        "start": "a server submits",
        "start_checked": "a server submits",
        "create": "a part of other use cases",
        "submit": "workloads of the user's own take any spec, which may name files",
        "resume": "submit_resume does it",
        "prepare_resume": "submit_resume does it",
        "submit_resume": "of Muster",
        "go_on": "a server submits",
        "require_batches": "a part of other use cases",
        "replay": "it spends nothing and shows nothing new",
        "drive": "the server drives by itself",
        "watch": "events do it",
        "send": "inject, stop and reviews do it",
        "sees": "a part of other use cases",
        "requested": "a part of starts",
        "starts": "a part of starts",
        "forget_ended": "the server does it by itself",
        "export": "it writes a file of the machine",
        "import_": "it reads a file of the machine",
        "stop": "of the process itself",
        "close": "of the process itself",
        "close_watchers": "of the process itself",
        "batches_under_way": "a part of other use cases",
    },
    "": {
        "ask": "submit_question does it",
        "start_question": "submit_question does it",
        "start_with": "submit does it",
        "submit_question": "by app.serving, for every door",
        "outcome_of_question": "the run has it",
        "answer_of": "the call has it",
        "stream": "a start and its stream do it",
        "start": "a server submits",
        "submit": "workloads of the user's own take any spec, which may name files",
        "resume": "submit_resume does it",
        "prepare_resume": "submit_resume does it",
        "report_of": "report does it",
        "succeeded": "the report has it",
        "error_of": "the report has it",
        "output_of": "the run has its result",
        "may_use_batches": "a part of other use cases",
        "worker": "the server is one",
        "stop": "of the process itself",
        "close": "of the process itself",
    },
    "suites": {
        **dict.fromkeys(("source", "spec", "submit"), "by app.serving, for every door"),
        "plan": "a run is refused before it is stored when it cannot be done; plans read many files",
        "exact": "a part of plans",
        "start": "a server submits",
        "rejudge": "not offered yet: fork the run",
        "find": "it reads files",
        "open": "a part of other use cases",
        "whole_report": "of Muster",
        "report": "of Muster",
        "export_evidence": "it writes a signed file with a key of the machine",
        "generate": "it writes files of the project",
        "conclude_generation": "a part of other use cases",
    },
    "suites.baselines": {"set": "a choice of the operator", "remove": "a choice of the operator"},
    "verify": {
        "begin": "by app.serving",
        "prepare": "begin does it",
        "plan": "begin does it",
        "require_folders": "a part of other use cases",
        "start": "a server submits",
        "submit": "begin does it",
        "require_batches": "a part of other use cases",
        "conclude": "the server does it by itself",
        "leave_behind": "a part of conclude",
        "tidy": "a part of conclude",
        "fix": "it changes files of the project",
        "repair": "it changes files of the project",
    },
    "pool": {
        "driver": "the server drives by itself",
        "require_driver": "the server drives by itself",
        "run_ordered": "submit, and the result later",
        "run": "submit, and the result later",
        "wait": "submit, and the result later",
        "fan_out": "submit one task for each prompt",
        "living_driver": "status has it",
        "may_be_driven": "the server drives by itself",
        "set_budget": "a choice of the operator",
    },
    "pool.tasks": {
        "cancel": "of the pool, which keeps what was in the tree",
        **dict.fromkeys(("submit", "submit_ordered"), "by app.serving, for every door"),
        "require": "a part of submit",
        "require_room": "a part of submit",
        "call_limit": "a part of other use cases",
        "require_next_call": "a part of other use cases",
        "shortfall": "a part of other use cases",
        "submit_ordered": "by app.serving, for every door",
        "submit": "by app.serving, for every door",
        "most_of": "a part of other use cases",
        "next_limit": "a part of other use cases",
        "require_round": "a part of reject and retry",
        "unfinished": "a part of other use cases",
        "counts": "the status of the pool has it",
        "newest": "a part of other use cases",
        "slot": "a part of other use cases",
        "most": "a part of other use cases",
        "find": "a part of other use cases",
    },
    "pool.trees": {
        "isolation_of": "a part of other use cases",
        "place": "a part of other use cases",
        "saved": "the task has it",
        "history": "a part of repairs by an agent",
        "restore": "a part of repairs by an agent",
        "diff_of": "a part of repairs by an agent",
        "lines_changed": "a part of repairs by an agent",
        "whole_of": "a part of repairs by an agent",
        "part_of": "a part of repairs by an agent",
        "check_out": "a part of repairs by an agent",
        "remove": "a part of repairs by an agent",
        "keep": "a part of other use cases",
        "commit_files": "a part of other use cases",
        "merge": "it changes the repository of the project, and runs a command",
        "collect": "it deletes files of the machine",
    },
    "pool.monitor": {"watch": "poll the status"},
    "chains": {
        **dict.fromkeys(("load", "spec", "ordered", "submit"), "by app.serving, for every door"),
        "plan": "a chain is refused before it is stored when it cannot be done",
        "start": "a server submits",
        "isolation_of": "a part of other use cases",
        "folder_note": "for people at a terminal",
        "save": "the server does it by itself",
        "resume": "submit_resume does it",
        "drive": "the server drives by itself",
        "size": "progress has it",
        "progress_of": "progress does it",
    },
    "councils": {
        **dict.fromkeys(("load", "ordered", "submit"), "by app.serving, for every door"),
        "spec": "ordered makes it",
        "plan": "a council is refused before it is stored when it cannot be held",
        "start": "a server submits",
        "trace_of": "trace does it",
        "report": "of Muster",
        "result": "the run has it",
        "rounds_of": "trace has it",
    },
    "battles": {
        **dict.fromkeys(("check_validators", "ordered", "ordered_scale", "submit"), "by app.serving, for every door"),
        "spec": "ordered makes it",
        "check": "a part of submit",
        "start": "a server submits",
        "find": "a part of other use cases",
        "report": "of Muster",
        "limit_of": "a part of other use cases",
    },
    "battles.scales": {
        "submit": "by app.serving, for every door",
        "spec": "ordered_scale makes it",
        "goals": "it reads a file; requests hold goals",
        "check": "a part of submit",
        "start": "a server submits",
        "find": "a part of other use cases",
        "conversations": "the status has their ids",
        "report": "of Muster",
    },
    "batches": {
        "get": "a part of other use cases",
        "fetch": "the server does it by itself",
        "watch": "poll it",
        "lines": "the provider's own lines, for people at a terminal",
        "reconcile": "it may resubmit, which is a choice of the operator",
        "awaited_here": "of the process itself",
        "resumable": "the server resumes by itself",
        "unclear": "a part of reconcile",
        "under_way": "a part of other use cases",
    },
    "audit": {},
    "library": {
        "flaws": "a part of starts",
        "offers": "requests of people name agents that they know; MCP tells a model what they are",
        **dict.fromkeys(("find", "find_all", "judge", "require_agents"), "by app.serving, for every door"),
    },
}


# What commands do in another way: they start runs in their own process, and show by other use cases.
NO_COMMAND = {
    "suites.before": "of the page; muster compare names both runs",
    "batches.stalled": "of health; every view of a batch says whether it gets on",
    "battles.cancel": "muster runs cancel",
    "battles.standing": "of streams; muster runs watch shows the events themselves",
    "battles.scales.cancel": "muster runs cancel",
    "battles.scales.result": "muster report",
    "councils.people_to_ask": "whoever has the store sees all of it",
    "councils.require_no_people_to_ask": "whoever has the store sees all of it",
    "councils.find": "a part of other use cases",
    "councils.trace": "muster trace, of any run",
    "library.items": "commands name files",
    "pool.tasks.of": "a part of other use cases",
    "runs.attempts": "muster runs show --call",
    "runs.calls": "muster runs show --calls",
    "runs.media": "of the page; reports and exports have the files",
    "runs.submit_fork": "of forks over HTTP; muster runs fork drives it",
    "suites.pairs": "muster compare lists what changed",
    "suites.results.subjects": "muster report",
    "suites.results.summary": "muster report",
    "verify.findings": "muster report; the code is where the command is run",
    "verify.report": "muster report",
}


def test_every_start_takes_an_order() -> None:
    starts = [route for router in ROUTERS for route in router.routes if getattr(route, "status_code", None) == 202]
    taken = {field.field_info.annotation for route in starts for field in route.dependant.body_params}  # type: ignore[attr-defined]
    again = {ForkBody, ResumeBody | None}  # they change nothing but the budget of a run that was started before
    assert taken == again


def names_used(package: object) -> set[str]:
    """Return every attribute of a Muster that a module, or those of a package, name, such as `pool.tasks.submit`."""
    file = Path(inspect.getfile(package))  # type: ignore[arg-type]
    files = file.parent.rglob("*.py") if file.name == "__init__.py" else [file]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    chains = {ast.unparse(node) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {found[1] for chain in chains if (found := re.search(r"\b_?muster\.([\w.]+)$", chain))}


def decides(kind: type, name: str) -> bool:
    """Return whether a method is one that `Muster` asks about runs of a kind."""
    return issubclass(kind, KindPart) and name in vars(KindPart)


def use_cases(part: str, kind: type) -> Iterator[str]:
    """Yield what a part offers."""
    for name, value in inspect.getmembers(kind):
        if not name.startswith("_") and inspect.isfunction(value) and not decides(kind, name):
            yield f"{part}.{name}" if part else name


def test_every_use_case_has_a_route_or_a_reason() -> None:
    used = names_used(muster.api)
    for part, kind in PARTS.items():
        reasons = NO_ROUTE.get(part, {})
        missing = {name.rpartition(".")[2] for name in use_cases(part, kind) if name not in used}
        assert missing == set(reasons), f"m.{part}: add a route, or say in NO_ROUTE why there is none"


def test_every_use_case_of_a_route_has_a_command_or_is_for_servers_alone() -> None:
    commands, routes = names_used(muster.cli), names_used(muster.api.routes)
    offered = {name for part, kind in PARTS.items() for name in use_cases(part, kind) if name in routes}
    assert offered - commands == set(NO_COMMAND), "add a command, or say in NO_COMMAND why there is none"


def test_the_page_names_every_route_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "HTTP.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(GET|POST|PUT|DELETE) (/[^`?]*)", page))
    made = {
        (method, re.sub(r"\{\w+\}", "{id}", route.path))  # type: ignore[attr-defined]
        for router in ROUTERS
        for route in router.routes
        for method in route.methods  # type: ignore[attr-defined]
    } | {("GET", "/openapi.json")}
    assert {(method, re.sub(r"\{\w+\}", "{id}", path)) for method, path in told} == made
