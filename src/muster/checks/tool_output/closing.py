"""What checkers write beside their findings: lines that say nothing new, and lines that say that there is more."""

import re
from collections.abc import Collection

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
    """Whether a line says nothing that the findings do not; `findings` are the numbers that a count may agree with."""
    if counted := _COUNT.fullmatch(line.strip()):
        return int(counted["first"]) + int(counted["second"] or 0) in findings
    return not line.strip() or _HARMLESS.fullmatch(line) is not None


def tells_more(line: str, findings: int) -> bool:
    """Whether a line speaks of more errors, warnings or problems than were found."""
    told = [int(one) for pattern in (_MORE, _TOLD) for one in pattern.findall(line)]
    return any(number > findings for number in told)
