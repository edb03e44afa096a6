"""The report as SARIF 2.1.0: one result for each case that did not pass, at its line in the suite."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import TextIO

from muster.domain.canonical import JsonObject
from muster.domain.case import Status
from muster.domain.money import to_usd
from muster.reporting.sarif import MAX_RESULTS, SCHEMA, VERSION, automation, invocation, rule_name, tool, uri
from muster.suites.reports.rows import CaseRow, CaseRows, kind, reasons
from muster.suites.reports.run import SuiteRun
from muster.suites.reports.summary import NOT_PASSED, SuiteReport
from muster.text.words import shorten

RULES: Mapping[str, str] = {
    "score": "The score of a case is below its threshold.",
    "error": "The agent or a check failed with an error.",
    "timed-out": "The agent did not answer in time.",
    "flaky": "A case passed in some epochs and not in others.",
    "unjudged": "The answer was not judged.",
}


FOUND = "It was found by running the cases of a suite against an agent, or a model with a prompt."
HELP = (
    "Read the answer in the report of the run (muster report RUN --format html -o report.html). Fix the agent or its "
    "prompt, or the case where it asks for too much; then run the suite again."
)


async def write_sarif(suite: SuiteRun, report: SuiteReport, out: TextIO) -> None:
    """Write the report; results are written one by one, and the rules that they name after them."""
    out.write(f'{{"$schema": {json.dumps(SCHEMA)}, "version": "{VERSION}", "runs": [{{\n"results": [')
    rules: set[str] = set()
    written, between = 0, "\n"
    async for row in CaseRows(suite):
        if row.status in NOT_PASSED and written < MAX_RESULTS:
            result = _result(row)
            rules.add(str(result["ruleId"]))
            out.write(between + json.dumps(result, ensure_ascii=False))
            written, between = written + 1, ",\n"
    rest = {**_run(report, left_out=report.not_passed - written), "tool": tool(_rules(rules))}
    out.write("\n],\n" + json.dumps(rest, ensure_ascii=False, indent=1)[1:] + "]}\n")


def _result(row: CaseRow) -> JsonObject:
    case, telling = row.case, row.telling
    text = "\n".join(reasons(telling)) if telling is not None else row.why
    region = {"startLine": max(1, case.line)}
    location: JsonObject = {"artifactLocation": {"uri": uri(case.file)}, "region": region}
    named = {"name": case.id, "fullyQualifiedName": f"{case.suite}/{case.id}", "kind": "member"}
    return {
        "ruleId": f"muster/{kind(telling, row.status)}",
        "level": "warning" if row.status is Status.FLAKY else "error",
        "message": {"text": shorten(f"{case.id} ({row.subject}): {row.why or text or row.status}", 2000)},
        "locations": [{"physicalLocation": location, "logicalLocations": [named]}],
        "partialFingerprints": {"muster/case/v1": _fingerprint(row)},
        "properties": _properties(row, text),
    }


def _properties(row: CaseRow, text: str) -> JsonObject:
    return {
        "tags": list(row.case.tags),
        "suite": row.case.suite,
        "subject": row.subject,
        "status": str(row.status),
        "score": row.score,
        "threshold": row.threshold,
        "costUsd": to_usd(row.cost),
        "reasons": shorten(text, 4000),
    }


def _fingerprint(row: CaseRow) -> str:
    """Name a case under a subject the same way in every run, wherever its line has moved."""
    return sha256("\x00".join((row.case.suite, row.case.id, row.subject)).encode("utf-8", "replace")).hexdigest()


def _run(report: SuiteReport, *, left_out: int) -> JsonObject:
    run = report.run
    told = [*report.run_flaws, *([f"{left_out:,} more cases did not pass."] if left_out else [])]
    levels = [("error", text) for text in told] + [("warning", text) for text in report.warnings]
    return {
        "columnKind": "unicodeCodePoints",
        "automationDetails": automation(run.title, run.id),
        "invocations": [
            invocation(successful=not report.run_flaws, told=levels, started_at=run.started_at, ended_at=run.ended_at)
        ],
        "properties": {"run": run.id, "ok": report.ok, "verdict": report.verdict, "spentUsd": to_usd(run.cost)},
    }


def _rules(rules: set[str]) -> list[JsonObject]:
    return [
        {
            "id": rule,
            "name": rule_name(rule),
            "shortDescription": {"text": _about(rule)},
            "fullDescription": {"text": f"{_about(rule)} {FOUND}"},
            "help": {"text": HELP},
        }
        for rule in sorted(rules)
    ]


def _about(rule: str) -> str:
    name = rule.partition("/")[2]
    return RULES.get(name, f"A check failed: {name.removeprefix('check-').replace('-', ' ')}.")
