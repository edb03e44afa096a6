"""Mypy: its text in all its forms, or `--output json`. An error is high; a note explains one and is no finding.

Its last line must agree with what could be read. JSON has no such line: there, a clean run exits with 0 and writes
nothing at all.
"""

import re
from itertools import pairwise

from muster.text.json_documents import decode
from muster.verify.findings.answers import MAX_NAME, FindingsAnswer, bounded
from muster.verify.findings.finding import Finding, Severity
from muster.verify.tools.lines import flawed, uncoloured

_LINE = re.compile(
    r"(?P<file>[^\s:][^:\n]*)(?::(?P<line>\d{1,9}))?(?::\d{1,9})?(?::(?P<end>\d{1,9}):\d{1,9})?: "
    r"(?P<kind>error|warning|note):(?: (?P<said>.+?)(?:  \[(?P<code>[\w-]{1,80})\])?)?"
)
_FOUND = re.compile(r"Found (\d{1,9}) errors? in \d+ files? \((?P<how>[^)]*)\)")
_SUCCESS = re.compile(r"Success: no issues found in (\d{1,9}) source files?")
_PREVENTED = "prevented further checking"


def parse(stdout: str, stderr: str, exit_code: int) -> FindingsAnswer:
    """Read what mypy wrote."""
    output = uncoloured(stdout).strip()
    if not output and not stderr.strip() and exit_code == 0:
        return FindingsAnswer()
    if output.startswith("{"):
        return _from_json(output)
    findings: list[Finding] = []
    summaries: list[int | str] = []
    for line, after in pairwise([*output.splitlines(), ""]):
        if found := _LINE.fullmatch(line.rstrip()):
            findings += [] if found["kind"] == "note" else [_error(found, after)]
        else:
            summaries += _summary(line)
    return _agreeing(findings, summaries, output)


def _summary(line: str) -> list[int | str]:
    """Read a last line: how many errors there are, or why it says nothing that counts."""
    if success := _SUCCESS.fullmatch(line.strip()):
        return [0 if int(success[1]) else "it checked no file"]
    if found := _FOUND.fullmatch(line.strip()):
        return ["an error prevented it from checking the rest" if _PREVENTED in found["how"] else int(found[1])]
    return []


def _agreeing(findings: list[Finding], summaries: list[int | str], output: str) -> FindingsAnswer:
    words = [summary for summary in summaries if isinstance(summary, str)]
    if words:
        return flawed(words[0], output)
    if not summaries:
        return flawed("its last line, with the number of errors, is missing", output)
    if summaries != [len(findings)]:
        said = ", ".join(map(str, summaries))
        return flawed(f"{len(findings)} errors could be read, but its last line reports {said}", output)
    return FindingsAnswer(findings=tuple(findings))


def _error(found: re.Match[str], after: str) -> Finding:
    """Read an error; with `--pretty` and a long path what it says begins on the line after."""
    line = int(found["line"] or 0)
    return Finding(
        file=found["file"],
        line=line,
        end_line=max(line, int(found["end"] or line)),
        severity=Severity.HIGH,
        finding=bounded(found["said"] or after),
        rule=found["code"] or "",
    )


def _from_json(output: str) -> FindingsAnswer:
    findings = []
    for line in output.splitlines():
        try:
            findings += _message(line)
        except (ValueError, TypeError, KeyError, RecursionError):
            return flawed("a line is not mypy's JSON", line)
    return FindingsAnswer(findings=tuple(findings))


def _message(text: str) -> list[Finding]:
    """Read one line of JSON; raises for one that is none."""
    said = decode(text)
    line, end = int(said["line"]), said.get("end_line")
    if said["severity"] == "note":
        return []
    return [
        Finding(
            file=str(said["file"]),
            line=max(0, line),
            end_line=max(0, line, int(line if end is None else end)),
            severity=Severity.HIGH,
            finding=bounded(str(said["message"])),
            fix=bounded(str(said.get("hint") or "")),
            rule=bounded(str(said.get("code") or ""), MAX_NAME),
        )
    ]
