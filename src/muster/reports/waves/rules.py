"""The rules that findings break, as viewers of SARIF know them: a weakness, a rule of a checker, or an agent."""

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from muster.domain.finding import RANKS, Merged, Severity
from muster.reports.sarif import rule_name

LONGEST = 200  # characters of a rule's id; viewers take 255
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
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - 17]}-{sha256(name.encode()).hexdigest()[:16]}"


def rule(findings: Sequence[Merged]) -> dict[str, Any]:
    """Describe a rule by the findings that break it; it is as bad as the worst of them."""
    first = findings[0]
    worst = min((one.finding.severity for one in findings), key=RANKS.__getitem__)
    told = {
        "id": rule_id(first),
        "name": rule_name(rule_id(first)),
        "shortDescription": {"text": _about(first)},
        "fullDescription": {"text": f"{_about(first)} {_CAVEAT}"},
        "help": {"text": _help(first)},
        "defaultConfiguration": {"level": LEVELS[worst]},
        "properties": _properties(first, worst),
    }
    number = _CWE.fullmatch(first.finding.cwe)
    return told | ({"helpUri": f"https://cwe.mitre.org/data/definitions/{number[1]}.html"} if number else {})


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


def _properties(merged: Merged, worst: Severity) -> dict[str, Any]:
    """Say how bad it is; with a score a rule is one of security, so that only weaknesses get one."""
    cwe = merged.finding.cwe.lower()
    if cwe:
        return {"tags": ["security", f"external/cwe/{cwe}"], "security-severity": SCORES[worst]}
    return {"tags": ["maintainability"], "problem.severity": _PROBLEMS[LEVELS[worst]]}
