"""The report as SARIF 2.1.0: one result for each case that did not pass, at its line in the suite."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from muster import __version__
from muster.domain.money import to_usd
from muster.domain.verdict import Status
from muster.reports.suite.reasons import kind, reasons
from muster.reports.suite.rows import CaseRow, CaseRows
from muster.reports.suite.summary import NOT_PASSED, SuiteReport
from muster.reports.suite.words import shorten
from muster.reports.suite_run import SuiteRun

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST_RESULTS = 25_000  # what common readers take of one run
RULES: Mapping[str, str] = {
    "score": "The score of a case is below its threshold.",
    "error": "The agent, or a check, could not do its work.",
    "timed-out": "The agent did not answer in time.",
    "flaky": "A case passed in some epochs and not in others.",
    "unjudged": "Nobody could say whether the answer is good.",
}


async def write_sarif(suite: SuiteRun, report: SuiteReport, out: TextIO) -> None:
    """Write the report; results are written one by one, and the rules that they name after them."""
    out.write(f'{{"$schema": {json.dumps(SCHEMA)}, "version": "2.1.0", "runs": [{{\n"results": [')
    rules: set[str] = set()
    written, between = 0, "\n"
    async for row in CaseRows(suite):
        if row.status in NOT_PASSED and written < MOST_RESULTS:
            result = _result(row)
            rules.add(result["ruleId"])
            out.write(between + json.dumps(result, ensure_ascii=False))
            written, between = written + 1, ",\n"
    rest = {**_run(report, left_out=report.not_passed - written), "tool": _tool(rules)}
    out.write("\n],\n" + json.dumps(rest, ensure_ascii=False, indent=1)[1:] + "]}\n")


def _result(row: CaseRow) -> dict[str, Any]:
    case, telling = row.case, row.telling
    text = "\n".join(reasons(telling)) if telling is not None else row.why
    region = {"startLine": max(1, case.line)}
    location = {"artifactLocation": {"uri": uri(case.file)}, "region": region}
    named = {"name": case.id, "fullyQualifiedName": f"{case.suite}/{case.id}", "kind": "member"}
    return {
        "ruleId": f"muster/{kind(telling, row.status)}",
        "level": "warning" if row.status is Status.FLAKY else "error",
        "message": {"text": shorten(f"{case.id} ({row.subject}): {row.why or text or row.status}", 2000)},
        "locations": [{"physicalLocation": location, "logicalLocations": [named]}],
        "partialFingerprints": {"muster/case/v1": _fingerprint(row)},
        "properties": _properties(row, text),
    }


def _properties(row: CaseRow, text: str) -> dict[str, Any]:
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


def uri(file: str) -> str:
    """Write the place of a file, relative to where we are as far as it lies below."""
    path = Path(file)
    if not path.is_absolute():
        return quote(path.as_posix(), errors="replace")
    here = Path.cwd()
    if path.is_relative_to(here):
        return quote(path.relative_to(here).as_posix(), errors="replace")
    return "file://" + quote(path.as_posix(), errors="replace")


def _run(report: SuiteReport, *, left_out: int) -> dict[str, Any]:
    run = report.run
    told = [*report.run_flaws, *([f"{left_out:,} more cases did not pass."] if left_out else [])]
    levels = [("error", text) for text in told] + [("warning", text) for text in report.warnings]
    invocation = {
        "executionSuccessful": not report.run_flaws,
        "toolExecutionNotifications": [{"level": level, "message": {"text": text}} for level, text in levels],
    }
    for name, at in (("startTimeUtc", run.started_at), ("endTimeUtc", run.ended_at)):
        if at is not None:
            invocation[name] = _utc(at)
    return {
        "columnKind": "unicodeCodePoints",
        "automationDetails": {"id": f"muster/{quote(run.title, safe='', errors='replace')}/{run.id}"},
        "invocations": [invocation],
        "properties": {"run": run.id, "ok": report.ok, "verdict": report.verdict, "spentUsd": to_usd(run.cost)},
    }


def _utc(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}Z"


def _tool(rules: set[str]) -> dict[str, Any]:
    described = [
        {"id": rule, "name": _name(rule), "shortDescription": {"text": _about(rule)}} for rule in sorted(rules)
    ]
    return {"driver": {"name": "muster", "version": __version__, "semanticVersion": __version__, "rules": described}}


def _name(rule: str) -> str:
    return "".join(word.capitalize() for word in rule.partition("/")[2].replace("_", "-").split("-"))


def _about(rule: str) -> str:
    name = rule.partition("/")[2]
    return RULES.get(name, f"A check does not hold: {name.removeprefix('check-').replace('-', ' ')}.")
