"""Ruff: `--output-format json`, or the concise text with its summary. Severities are those of `ruff_rules`."""

import re
from collections.abc import Mapping
from typing import Any

from muster.domain.canonical import Json
from muster.text.json_documents import decode
from muster.verify.findings.answers import MAX_NAME, FindingsAnswer, bounded
from muster.verify.findings.finding import Finding, Severity
from muster.verify.tools.lines import flawed, uncoloured

_SYNTAX = "invalid-syntax"
_UNREADABLE = "E902"
_NO_FILES = "No Python files found"
_CLEAN = "All checks passed!"
_LINE = re.compile(
    r"(?P<file>\S[^\n]*?):(?P<line>\d{1,9}):\d{1,9}: (?:(?P<rule>[A-Z]+\d+)|(?P<word>[\w-]+):) (?P<said>.+)"
)
_FOUND = re.compile(r"Found (\d{1,9}) errors?(?: \(\d+ fixed, (\d{1,9}) remaining\))?\.")


def parse(stdout: str, stderr: str, exit_code: int) -> FindingsAnswer:
    """Read what ruff wrote."""
    if _NO_FILES in stderr:
        return flawed("it found no file to check")
    output = uncoloured(stdout).strip()
    parsed = _from_json(output) if output.startswith("[") else _from_text(output)
    unread = next((finding for finding in parsed.findings if finding.rule == _UNREADABLE), None)
    return parsed if unread is None else flawed(f"it could not read {unread.file}: {unread.finding}")


def _from_json(output: str) -> FindingsAnswer:
    try:
        return FindingsAnswer(findings=tuple(_finding(item) for item in decode(output)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return flawed("it is not ruff's JSON", output)


def _finding(item: Mapping[str, Any]) -> Finding:
    """Read one violation; raises for one that is none."""
    start, end = item["location"], item["end_location"]
    line, last = _row(start["row"]), _row(end["row"])
    if end["column"] == 1 and last > line:  # it ends before the first character of that line
        last -= 1
    code = item["code"] or _SYNTAX
    said, fix = bounded(item["message"]), item.get("fix") or {}
    if item.get("cell") is not None:  # of a notebook, whose lines are not those of the file
        said, line, last = f"cell {int(item['cell'])}, line {line}: {said}", 0, 0
    return Finding(
        file=str(item["filename"]),
        line=line,
        end_line=max(line, last),
        severity=severity_of(code),
        finding=said,
        fix=bounded(fix.get("message") or ""),
        rule=bounded(code, MAX_NAME),
    )


def _row(value: Json) -> int:
    if type(value) is not int:
        raise TypeError("a line must be an integer")
    return value


def _from_text(output: str) -> FindingsAnswer:
    findings, counts = [], []
    for line in output.splitlines():
        if found := _LINE.fullmatch(line):
            findings.append(_violation(found))
        elif counted := _FOUND.fullmatch(line):
            counts.append(int(counted[2] or counted[1]))
    if not findings and not counts:
        return FindingsAnswer() if _CLEAN in output.splitlines() else flawed("it is not a known output of ruff", output)
    if counts != [len(findings)]:
        said = ", ".join(map(str, counts)) or "nothing"
        return flawed(f"{len(findings)} violations could be read, but its summary reports {said}", output)
    return FindingsAnswer(findings=tuple(findings))


def _violation(found: re.Match[str]) -> Finding:
    rule, line = found["rule"] or found["word"], int(found["line"])
    return Finding(
        file=found["file"],
        line=line,
        end_line=line,
        severity=severity_of(rule),
        finding=bounded(found["said"].removeprefix("[*] ")),
        rule=bounded(rule, MAX_NAME),
    )


_CODE = re.compile(r"([A-Z]+)(\d+)")
_HIGH = ("E9", "F5", "F6", "F7", "F82", "PLE", "S")
_LOW = ("E1", "E2", "E3", "E4", "E5", "W", "D", "I", "N", "Q", "COM", "ERA", "ANN", "FIX", "TD", "CPY", "UP")


def severity_of(code: str) -> Severity:
    """Return the severity of a rule by its code; what has none is a syntax error."""
    found = _CODE.fullmatch(code)
    if found is None or _is_among(found, _HIGH):
        return Severity.HIGH
    return Severity.LOW if _is_among(found, _LOW) else Severity.MEDIUM


def _is_among(code: re.Match[str], prefixes: tuple[str, ...]) -> bool:
    """Return whether a code begins with a prefix; S is no prefix of SIM."""
    letters, digits = code.groups()
    parts = (re.fullmatch(r"([A-Z]+)(\d*)", prefix) for prefix in prefixes)
    return any(part is not None and part[1] == letters and digits.startswith(part[2]) for part in parts)
