"""Lines of the form `file:line[:column]: [severity:] message [rule]`, as many checkers and compilers write them.

A line without a place is none of them: what a checker says besides, the exit code must say too. Where no severity is
said it is high.
"""

import re

from muster.checks.findings.wording import bounded
from muster.checks.tool_output.parsed import Parsed, uncoloured
from muster.domain.finding import Finding, Severity

_LINE = re.compile(
    r"(?P<file>[^\s:][^:\n]*):(?P<line>\d{1,9})(?::\d{1,9})?: *(?:(?P<word>[A-Za-z]{1,20})(?:\[[^\]\n]{1,80}\])?: +)?"
    r"(?P<said>\S.*)"
)
_RULE = re.compile(r"\s\[([\w/.-]{1,80})\]$")
_WORDS = {
    **{str(severity): severity for severity in Severity},
    "fatal": Severity.CRITICAL,
    "error": Severity.HIGH,
    "warning": Severity.MEDIUM,
    "warn": Severity.MEDIUM,
    "note": Severity.LOW,
    "info": Severity.LOW,
    "style": Severity.LOW,
}


def parse(stdout: str, stderr: str, exit_code: int) -> Parsed:
    """Read lines that name a place."""
    found = (_LINE.fullmatch(line.rstrip()) for line in uncoloured(stdout).splitlines())
    return Parsed(findings=tuple(_finding(one) for one in found if one is not None))


def _finding(found: re.Match[str]) -> Finding:
    word, said, line = found["word"] or "", found["said"], int(found["line"])
    severity = _WORDS.get(word.lower())
    if severity is None and word:  # no severity, but how the message begins
        said = f"{word}: {said}"
    rule = _RULE.search(said)
    return Finding(
        file=found["file"],
        line=line,
        end_line=line,
        severity=severity or Severity.HIGH,
        finding=bounded(said),
        rule=rule[1] if rule else "",
    )
