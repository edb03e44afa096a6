"""The report as SARIF 2.1.0: one result for each finding, at its lines; findings that cannot be are only told."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO
from urllib.parse import quote

from muster.domain.finding import Finding, Merged
from muster.domain.money import to_usd
from muster.domain.redaction import MARK
from muster.domain.run import RunState
from muster.domain.waves import Ending
from muster.reports.sarif import MOST_RESULTS, SCHEMA, VERSION, automation, invocation, tool
from muster.reports.waves.fingerprints import fingerprints
from muster.reports.waves.rules import LEVELS, SCORES, rule, rule_id
from muster.reports.waves.run import WavesRun
from muster.reports.waves.summary import VerifyReport
from muster.reports.words import one_line, shorten

ROOT = "SRCROOT"
MOST_TOLD = 1_000  # rejected findings


async def write_sarif(waves: WavesRun, report: VerifyReport, out: TextIO) -> None:
    """Write the report; results are written one by one, and the rules that they name after them."""
    shown, lengths = report.merged[:MOST_RESULTS], {file.path: file.lines for file in report.files}
    names = await fingerprints(waves, shown)
    out.write(f'{{"$schema": {json.dumps(SCHEMA)}, "version": "{VERSION}", "runs": [{{\n"results": [')
    between = "\n"
    for merged, name in zip(shown, names, strict=True):
        out.write(between + json.dumps(_result(merged, name, lengths)))
        between = ",\n"
    rest = {**_run(report), "tool": tool(_rules(shown))}
    out.write("\n],\n" + json.dumps(rest, indent=1)[1:] + "]}\n")


def _rules(shown: Sequence[Merged]) -> list[dict[str, Any]]:
    found: dict[str, list[Merged]] = {}
    for one in shown:
        found.setdefault(rule_id(one), []).append(one)
    return [rule(found[name]) for name in sorted(found)]


def _result(merged: Merged, name: str, lengths: Mapping[str, int]) -> dict[str, Any]:
    finding = merged.finding
    result: dict[str, Any] = {
        "ruleId": rule_id(merged),
        "level": LEVELS[finding.severity],
        "message": {"text": text(finding.finding + (f"\n\nFix: {finding.fix}" if finding.fix else ""))},
        "locations": [{"physicalLocation": {"artifactLocation": place(finding.file), "region": _region(finding)}}],
        "partialFingerprints": {"muster/finding/v1": name},
        "properties": _properties(merged),
    }
    # A text from which a secret was taken would do harm in a file.
    if finding.replacement is not None and MARK not in finding.replacement:
        result["fixes"] = [_fix(finding, finding.replacement, lengths.get(finding.file, 0))]
    return result


def text(words: str) -> str:
    """Write somebody else's words as a message: none of them becomes a link."""
    return shorten(words.replace("](", "] (").strip(), 4000) or "(nothing was said)"


def place(file: str) -> dict[str, str]:
    """Write where a file is, from the root of what is verified."""
    return {"uri": quote(file, errors="replace"), "uriBaseId": ROOT}


def _region(finding: Finding) -> dict[str, int]:
    return {"startLine": max(1, finding.line), "endLine": max(1, finding.line, finding.end_line)}


def _fix(finding: Finding, replacement: str, lines: int) -> dict[str, Any]:
    region = _region(finding)
    if not replacement and region["endLine"] < lines:  # without the line break at their end they would leave a gap
        region |= {"startColumn": 1, "endLine": region["endLine"] + 1, "endColumn": 1}
    change = {"deletedRegion": region, "insertedContent": {"text": replacement.removesuffix("\n")}}
    description = text(finding.fix or "Replace these lines.")
    changes = [{"artifactLocation": place(finding.file), "replacements": [change]}]
    return {"description": {"text": description}, "artifactChanges": changes}


def _properties(merged: Merged) -> dict[str, Any]:
    finding = merged.finding
    found = {
        "severity": str(finding.severity),
        "foundBy": list(merged.by),
        "cwe": finding.cwe or None,
        "rule": finding.rule or None,
        "confidence": finding.confidence,
        "security-severity": SCORES[finding.severity] if finding.cwe else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _run(report: VerifyReport) -> dict[str, Any]:
    run = report.run
    return {
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of what was verified."}}},
        "automationDetails": automation(run.title, run.id),
        "invocations": [
            invocation(
                successful=_done(report), told=list(_told(report)), started_at=run.started_at, ended_at=run.ended_at
            )
        ],
        "properties": {
            "run": run.id,
            "ok": report.ok,
            "verdict": report.verdict,
            "partial": report.partial,
            "spentUsd": to_usd(run.cost.known),
            "liveUsd": to_usd(run.cost.live),
        },
    }


def _done(report: VerifyReport) -> bool:
    """Say whether everybody did his work; that something was found is no failure of the tool."""
    broken = any(agent.ending is Ending.BROKEN for agent in report.agents)
    gone = any(one.wave not in report.not_started for one in report.absent)
    return report.run.state is RunState.COMPLETED and bool(report.waves) and not broken and not gone


def _told(report: VerifyReport) -> Iterator[tuple[str, str]]:
    yield from (("error", text(flaw)) for flaw in report.flaws())
    yield from (("warning", text(note)) for note in report.notes())
    if len(report.merged) > MOST_RESULTS:
        yield "warning", f"{len(report.merged) - MOST_RESULTS:,} more findings are no worse than these."
    for one in report.rejected[:MOST_TOLD]:
        finding = one.rejected.finding
        where = one_line(f"{finding.file}:{finding.line}", 300)
        yield "note", text(f"A finding of {one.agent} at {where} was rejected, {one.rejected.why}: {finding.finding}")
    if len(report.rejected) > MOST_TOLD:
        yield "note", f"{len(report.rejected) - MOST_TOLD:,} more findings were rejected."
