"""Lines of the form `file:line[:column]: [severity:] message [rule]`, as many checkers and compilers write them.

Where no severity is said it is high. With an exit code other than 0 every line must be a finding, or one that says
nothing new (`closing`): a checker that broke off half-way is not taken for one that has finished. With 0 a line may say
anything else than that there is more than could be read.
"""

import re

from muster.checks.findings.wording import bounded
from muster.checks.tool_output.closing import TRACEBACK, is_harmless, tells_more
from muster.checks.tool_output.parsed import Parsed, flawed, tail, uncoloured
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
    lines = [line.rstrip() for line in uncoloured(stdout).splitlines()]
    found = [_LINE.fullmatch(line) for line in lines]
    findings = tuple(_finding(one) for one in found if one is not None)
    others = [line for line, one in zip(lines, found, strict=True) if one is None]
    if TRACEBACK in stderr:
        return flawed("it broke off", stderr)
    flaw = _flaw(others, findings, exit_code)
    return flawed(flaw, stdout) if flaw else Parsed(findings=findings)


def _flaw(others: list[str], findings: tuple[Finding, ...], exit_code: int) -> str:
    """Say which line, of those that are no findings, shows that not everything was read."""
    counts = {len(findings), sum(one.severity is not Severity.LOW for one in findings)}  # few count notes
    if exit_code:
        unread = next((line for line in others if not is_harmless(line, counts)), None)
        why = f"it exited with {exit_code}, and a line is no finding, nor a count that agrees"
    else:
        unread = next((line for line in others if TRACEBACK in line or tells_more(line, len(findings))), None)
        why = f"{len(findings)} findings could be read, and a line says that there is more"
    return "" if unread is None else f"{why}: {tail(unread)!r}"


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
