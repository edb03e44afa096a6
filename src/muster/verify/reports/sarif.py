"""The report as SARIF 2.1.0: one result for each finding, at its lines; findings that cannot be are only told."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TextIO
from urllib.parse import quote

from muster.domain.canonical import JsonObject
from muster.domain.money import to_usd
from muster.domain.run import RunState
from muster.reporting.sarif import MAX_RESULTS, SCHEMA, VERSION, automation, invocation, rule_name, tool
from muster.text.secrets.redaction import MARK
from muster.text.words import one_line, shorten
from muster.verify.findings.finding import RANKS, Finding, Merged, Severity
from muster.verify.findings.journal import Ending
from muster.verify.reports.run import WavesRun
from muster.verify.reports.summary import ReportCleaner, VerifyReport
from muster.verify.sources.source import Source

ROOT = "SRCROOT"
MAX_TOLD = 1_000  # rejected findings


async def write_sarif(waves: WavesRun, report: VerifyReport, out: TextIO) -> None:
    """Write the report; results are written one by one, and the rules that they name after them."""
    shown, lengths = report.merged[:MAX_RESULTS], {file.path: file.lines for file in report.files}
    names = await fingerprints(waves, shown)
    out.write(f'{{"$schema": {json.dumps(SCHEMA)}, "version": "{VERSION}", "runs": [{{\n"results": [')
    between = "\n"
    for merged, name in zip(shown, names, strict=True):
        out.write(between + json.dumps(_result(merged, name, lengths)))
        between = ",\n"
    rest = {**_run(report), "tool": tool(_rules(shown))}
    out.write("\n],\n" + json.dumps(rest, indent=1)[1:] + "]}\n")


def _rules(shown: Sequence[Merged]) -> list[JsonObject]:
    found: dict[str, list[Merged]] = {}
    for one in shown:
        found.setdefault(rule_id(one), []).append(one)
    return [rule(found[name]) for name in sorted(found)]


def _result(merged: Merged, name: str, lengths: Mapping[str, int]) -> JsonObject:
    finding = merged.finding
    result: JsonObject = {
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
    return shorten(words.replace("](", "] (").strip(), 4000) or "(no description)"


def place(file: str) -> dict[str, str]:
    """Write where a file is, from the root of what is verified."""
    return {"uri": quote(file, errors="replace"), "uriBaseId": ROOT}


def _region(finding: Finding) -> dict[str, int]:
    return {"startLine": max(1, finding.line), "endLine": max(1, finding.line, finding.end_line)}


def _fix(finding: Finding, replacement: str, lines: int) -> JsonObject:
    region = _region(finding)
    if not replacement and region["endLine"] < lines:  # without the line break at their end they would leave a gap
        region |= {"startColumn": 1, "endLine": region["endLine"] + 1, "endColumn": 1}
    change: JsonObject = {"deletedRegion": region, "insertedContent": {"text": replacement.removesuffix("\n")}}
    description = text(finding.fix or "Replace these lines.")
    changes: list[JsonObject] = [{"artifactLocation": place(finding.file), "replacements": [change]}]
    return {"description": {"text": description}, "artifactChanges": changes}


def _properties(merged: Merged) -> JsonObject:
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


def _run(report: VerifyReport) -> JsonObject:
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
    """Return whether everybody did his work; that something was found is no failure of the tool."""
    broken = any(agent.ending is Ending.BROKEN for agent in report.agents)
    gone = any(one.wave not in report.not_started for one in report.absent)
    return report.run.state is RunState.COMPLETED and bool(report.waves) and not broken and not gone


def _told(report: VerifyReport) -> Iterator[tuple[str, str]]:
    yield from (("error", text(flaw)) for flaw in report.flaws())
    yield from (("warning", text(note)) for note in report.notes())
    if len(report.merged) > MAX_RESULTS:
        yield "warning", f"{len(report.merged) - MAX_RESULTS:,} more findings are no worse than these."
    for one in report.rejected[:MAX_TOLD]:
        finding = one.rejected.finding
        where = one_line(f"{finding.file}:{finding.line}", 300)
        yield "note", text(f"A finding of {one.agent} at {where} was rejected, {one.rejected.why}: {finding.finding}")
    if len(report.rejected) > MAX_TOLD:
        yield "note", f"{len(report.rejected) - MAX_TOLD:,} more findings were rejected."


MAX_RULE_ID = 200  # characters of a rule's id; viewers take 255
LEVELS = {Severity.CRITICAL: "error", Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}
# Viewers draw critical, high, medium and low from a number: above 9, above 7, above 4, above 0.
SCORES = {Severity.CRITICAL: "9.5", Severity.HIGH: "8.0", Severity.MEDIUM: "5.5", Severity.LOW: "2.0"}
_CWE = re.compile(r"(?i)CWE-([1-9][0-9]{0,5})")
_CAVEAT = "It was reported by an agent or a checker of a verification, and its place was checked to exist."
_PROBLEMS = {"error": "error", "warning": "warning", "note": "recommendation"}


def rule_id(merged: Merged) -> str:
    """Name the rule that a finding breaks: the same in every run, whichever agent was the first to find it."""
    finding = merged.finding
    if finding.cwe:
        return _name(finding.cwe.lower())
    agent = merged.by[0] if merged.by else "muster"
    return _name(agent, finding.rule) if finding.rule else _name(agent)


def _name(*parts: str) -> str:
    name = "/".join(quote(part, safe=":+", errors="replace") for part in parts)
    if len(name) <= MAX_RULE_ID:
        return name
    return f"{name[: MAX_RULE_ID - 17]}-{sha256(name.encode()).hexdigest()[:16]}"


def rule(findings: Sequence[Merged]) -> JsonObject:
    """Describe a rule by the findings that break it; it is as bad as the worst of them."""
    first = findings[0]
    worst = min((one.finding.severity for one in findings), key=RANKS.__getitem__)
    told: JsonObject = {
        "id": rule_id(first),
        "name": rule_name(rule_id(first)),
        "shortDescription": {"text": _about(first)},
        "fullDescription": {"text": f"{_about(first)} {_CAVEAT}"},
        "help": {"text": _help(first)},
        "defaultConfiguration": {"level": LEVELS[worst]},
        "properties": _rule_properties(first, worst),
    }
    number = _CWE.fullmatch(first.finding.cwe)
    if number:
        told["helpUri"] = f"https://cwe.mitre.org/data/definitions/{number[1]}.html"
    return told


def _help(merged: Merged) -> str:
    finding = merged.finding
    whose = f"the description of {finding.cwe}" if finding.cwe else "what its message says"
    return (
        f"Look at the lines of the result and at {whose}. Apply the proposed fix where there is one, after reading it, "
        "or change the code yourself; then run `muster verify` again."
    )


def _about(merged: Merged) -> str:
    finding = merged.finding
    agent = merged.by[0] if merged.by else "muster"
    if finding.cwe:
        return f"A weakness of the kind {finding.cwe}."
    return f"What {agent} reports as {finding.rule}." if finding.rule else f"What {agent} has found."


def _rule_properties(merged: Merged, worst: Severity) -> JsonObject:
    """Return the severity of a rule; a score marks it as a security rule, so only weaknesses get one."""
    cwe = merged.finding.cwe.lower()
    if cwe:
        return {"tags": ["security", f"external/cwe/{cwe}"], "security-severity": SCORES[worst]}
    return {"tags": ["maintainability"], "problem.severity": _PROBLEMS[LEVELS[worst]]}


Place = tuple[str, int, int]


async def fingerprints(waves: WavesRun, findings: Sequence[Merged]) -> tuple[str, ...]:
    """Name findings by their file, their rule and the code at their lines; the same again is counted from above."""
    shown = await _code(waves, findings)
    seen: Counter[str] = Counter()
    named: dict[int, str] = {}
    for place in sorted(range(len(findings)), key=lambda index: _place(findings[index].finding)):
        base = _spell(findings[place], shown)
        named[place] = sha256(f"{base}\x00{seen[base]}".encode("utf-8", "replace")).hexdigest()
        seen[base] += 1
    return tuple(named[place] for place in range(len(findings)))


def _spell(merged: Merged, shown: Mapping[Place, str]) -> str:
    # Without the code at its lines, as in a file that was not read in, the words must do.
    code = shown.get(_place(merged.finding)) or " ".join(merged.finding.finding.split())
    return "\x00".join((merged.finding.file, rule_id(merged), code))


async def _code(waves: WavesRun, findings: Sequence[Merged]) -> dict[Place, str]:
    """Read the code at the lines of findings, without its spaces."""
    wanted: dict[str, set[Place]] = {}
    for one in findings:
        wanted.setdefault(one.finding.file, set()).add(_place(one.finding))
    found: dict[Place, str] = {}
    cleaner = ReportCleaner()  # findings were cleaned as well
    async for source in waves.sources():
        places = wanted.get(cleaner.text(source.path))
        if places:
            found |= {place: _between(source, place) for place in places}
    return found


def _between(source: Source, place: Place) -> str:
    _, first, last = place
    return " ".join(" ".join(source.lines[first - 1 : last]).split())


def _place(finding: Finding) -> Place:
    return finding.file, finding.line, finding.end_line
