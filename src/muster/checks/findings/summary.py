"""Whether a summary says something else than the findings it sums up."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from muster.domain.canonical import Json
from muster.domain.finding import Finding, Severity

_READ = 20_000  # characters of a text
_NOUN = (
    r"(?:issues?|problems?|findings?|vulnerabilit(?:y|ies)|bugs?|defects?|errors?|violations?|flaws?|warnings?"
    r"|weakness(?:es)?|concerns?|mistakes?|injections?|leaks?)"
)
_NUMBER = (
    r"(?:0*[1-9]\d{0,6}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?(?: of)?|several|many"
    r"|some|multiple|various|numerous|a few|a couple of|a number of)"
)
_KIND = (
    r"(?:critical|high|medium|low|severe|serious|minor|major|possible|potential|important|significant|security|type"
    r"|style|new|other|different|separate|further|real|and|or|severity|risk|priority)"
)
_LEVEL = r"(?:critical|high|medium|low)"
_SPEAKS = re.compile(
    rf"\b{_NUMBER}(?:[\s,-]{{1,3}}{_KIND}){{0,5}}[\s-]{{1,3}}{_NOUN}\b"  # "3 critical issues", "two problems"
    rf"|\b0*[1-9]\d{{0,6}}\s{{1,3}}{_LEVEL}(?![\w-])"  # "2 critical, 1 high"
    rf"|\b{_LEVEL}\s{{0,3}}[:=]\s{{0,3}}0*[1-9]",  # "critical: 2"
    re.IGNORECASE,
)


def summary_flaw(summary: Json, findings: Sequence[Finding]) -> str:
    """Say in what a summary disagrees with the findings; nothing when it does not."""
    if isinstance(summary, Mapping):
        return _counts_flaw(summary, findings)
    if isinstance(summary, str) and not findings:
        return speaks_flaw(summary)
    return ""


def speaks_flaw(text: str) -> str:
    """Say that a text speaks of findings, where there are none; nothing when it does not."""
    found = _SPEAKS.search(text[:_READ])
    return f'there are no findings, and the summary speaks of "{" ".join(found[0].split())}"' if found else ""


def _counts_flaw(summary: Mapping[str, Json], findings: Sequence[Finding]) -> str:
    counted = Counter(str(finding.severity) for finding in findings)
    real = {"total": len(findings), **{str(severity): counted[severity] for severity in Severity}}
    wrong = [
        f"{name} is {said} in the summary and {real[name]} in the findings"
        for name, said in summary.items()
        if said is not None and said != real[name]
    ]
    return "; ".join(wrong)
