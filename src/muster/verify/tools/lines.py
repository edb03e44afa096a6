"""Lines of the form `file:line[:column]: [severity:] message [rule]`, as many checkers and compilers write them.

Where no severity is said it is high. With an exit code other than 0 every line must be a finding, or one that says
nothing new (`closing`): a checker that broke off half-way is not taken for one that has finished. With 0 a line may say
anything else than that there is more than could be read.
"""

import re
from collections.abc import Callable, Collection

from muster.verify.findings.answers import FindingsAnswer, bounded
from muster.verify.findings.finding import Finding, Severity

TRACEBACK = "Traceback (most recent call last):"

_NUMBER = r"(?<![\d.])\d{1,30}"
_NOUN = r"(?:errors?|warnings?|problems?|issues?|violations?|findings?|offen[cs]es?|failures?|vulnerabilit(?:y|ies))"
_KIND = (
    r"(?:critical|high|medium|low|fatal|severe|serious|major|minor|new|style|type|lint|linter|security|syntax|possible"
    r"|potential|remaining|severity)"
)
_MORE = re.compile(rf"({_NUMBER})(?:[ -]{_KIND}){{0,4}} {_NOUN}\b", re.IGNORECASE)  # "3 errors found in a.py"
_TOLD = re.compile(rf"\b{_NOUN}(?: found)? ?[:=] ?(\d{{1,9}})\b", re.IGNORECASE)  # "errors: 3"
_COUNT = re.compile(
    rf"(?:✖ )?(?:found )?(?P<first>\d{{1,9}}) {_NOUN}(?:(?: and|,) (?P<second>\d{{1,9}}) {_NOUN})?"
    rf"(?: \(\d{{1,9}} {_NOUN}, \d{{1,9}} {_NOUN}\))?(?: in \d{{1,9}} (?:source )?files?)?"
    r"(?: \(checked \d{1,9} (?:source )?files?\))?(?: (?:generated|found|detected))?\.?",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"\*{5,20} Module \S+|-{5,200}"  # pylint
    r"|Your code has been rated at -?[\d.]{1,12}/10(?: \(previous run: [^()\n]{1,60}\))?"
    r"|[^\s:][^:\n]{0,1000}: In (?:[a-z]{1,20} ){0,3}(?:function|constructor|destructor) .{1,1000}:"  # gcc
    r"|\s*\d{0,9} ?\|.*|[\s~]*\^[\s~^]*"  # the code that is meant, in a margin, and the mark under it
)


def is_harmless(line: str, findings: Collection[int]) -> bool:
    """Return whether a line adds nothing to the findings; `findings` are the numbers that a count may agree with."""
    if counted := _COUNT.fullmatch(line.strip()):
        return int(counted["first"]) + int(counted["second"] or 0) in findings
    return not line.strip() or _HARMLESS.fullmatch(line) is not None


def tells_more(line: str, findings: int) -> bool:
    """Return whether a line speaks of more errors, warnings or problems than were found."""
    told = [int(one) for pattern in (_MORE, _TOLD) for one in pattern.findall(line)]
    return any(number > findings for number in told)


SHOWN = 300  # characters of an output in a message

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,30}[A-Za-z]")


Parser = Callable[[str, str, int], FindingsAnswer]  # standard output, standard error, exit code


def uncoloured(text: str) -> str:
    """Return a text without the escapes that paint it."""
    return _COLOUR.sub("", text) if "\x1b" in text else text


def tail(text: str) -> str:
    """Return the last words of an output, for a message."""
    said = " ".join(text[-4 * SHOWN :].split())
    return f"…{said[-SHOWN:]}" if len(said) > SHOWN else said


def flawed(why: str, output: str = "") -> FindingsAnswer:
    """Return why an output cannot be read, with its last lines."""
    said = tail(output)
    return FindingsAnswer(flaw=f"{why}; its output ends: {said}" if said else why)


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


def parse(stdout: str, stderr: str, exit_code: int) -> FindingsAnswer:
    """Read lines that name a place."""
    lines = [line.rstrip() for line in uncoloured(stdout).splitlines()]
    found = [_LINE.fullmatch(line) for line in lines]
    findings = tuple(_finding(one) for one in found if one is not None)
    others = [line for line, one in zip(lines, found, strict=True) if one is None]
    if TRACEBACK in stderr:
        return flawed("it broke off", stderr)
    flaw = _flaw(others, findings, exit_code)
    return flawed(flaw, stdout) if flaw else FindingsAnswer(findings=findings)


def _flaw(others: list[str], findings: tuple[Finding, ...], exit_code: int) -> str:
    """Return which line, of those that are not findings, shows that not everything was read."""
    counts = {len(findings), sum(one.severity is not Severity.LOW for one in findings)}  # few count notes
    if exit_code:
        unread = next((line for line in others if not is_harmless(line, counts)), None)
        why = f"it exited with {exit_code}, and a line is neither a finding nor a matching count"
    else:
        unread = next((line for line in others if TRACEBACK in line or tells_more(line, len(findings))), None)
        why = f"{len(findings)} findings could be read, but a line reports more"
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
