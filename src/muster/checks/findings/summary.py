"""Whether a summary says something else than the findings it sums up.

Words cannot be counted. They are accepted beside no finding, and only where all that they say is that there is none.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from muster.checks.findings.wording import bounded
from muster.domain.canonical import Json
from muster.domain.finding import Finding, Severity

_LONGEST = 300  # characters of a text that says so
_SHOWN = 80

_KIND = (
    r"(?:critical|high|medium|low|severe|serious|major|minor|significant|security|style|type|new|other|further)"
    r"(?:[ -](?:severity|priority|risk))?"
)
# Never "and", and a comma only before an "or": in "no low, critical issues found" something was found.
_KINDS = rf"{_KIND}(?:(?:, {_KIND})*,? n?or {_KIND}|(?:/{_KIND})+)?"
_NOUN = (
    r"(?:issues?|problems?|findings?|vulnerabilit(?:y|ies)|bugs?|defects?|errors?|violations?|flaws?|warnings?"
    r"|weakness(?:es)?|concerns?|mistakes?)"
)
_NOUNS = rf"{_NOUN}(?: n?or {_NOUN})?"
_NONE = rf"(?:no|0|zero) (?:{_KINDS}|(?:{_KINDS} )?{_NOUNS})"
_SEEN = r"(?:found|detected|identified|reported|seen|present)"
_WHERE = r"(?: (?:in|with) (?:the|this|these) (?:(?:given|shown|provided) )?(?:code|files?|chunk|changes?))?"
_SENTENCE = re.compile(
    rf"(?:there (?:are|is|were|was) |(?:i )?(?:found|see|saw|detected) )?{_NONE}(?:, (?:and )?{_NONE})*"
    rf"(?: (?:(?:were|was|are|is|have been|has been) )?{_SEEN})?{_WHERE}"
    rf"|nothing(?: (?:was )?{_SEEN}| to report| to fix)?{_WHERE}"
    rf"|none(?: (?:were |was )?{_SEEN})?{_WHERE}"
    r"|(?:(?:the|this) code |it |everything |all )?(?:is |looks )?(?:clean|ok|okay|good|fine)"
    r"|lgtm"
)
_ENDS = re.compile(r"[.!;]")


def summary_flaw(summary: Json, findings: Sequence[Finding]) -> str:
    """Say in what a summary disagrees with the findings; nothing when it does not."""
    if isinstance(summary, Mapping):
        return _counts_flaw(summary, findings)
    return speaks_flaw(summary, findings) if isinstance(summary, str) else ""


def speaks_flaw(text: str, findings: Sequence[Finding], where: str = "the summary") -> str:
    """Say that a text says more than that nothing was found, or says so beside findings; nothing when it does not."""
    if not text.strip() or (not findings and _says_none(text)):
        return ""
    said = bounded(" ".join(text[: 4 * _LONGEST].split()), _SHOWN)
    return f'{where} says in words what only findings and counts can say: "{said}"'


def _says_none(text: str) -> bool:
    if len(text) > _LONGEST:
        return False
    sentences = [" ".join(one.split()) for one in _ENDS.split(text.lower()) if one.strip()]
    return bool(sentences) and all(_SENTENCE.fullmatch(one) for one in sentences)


def _counts_flaw(summary: Mapping[str, Json], findings: Sequence[Finding]) -> str:
    counted = Counter(str(finding.severity) for finding in findings)
    real = {"total": len(findings), **{str(severity): counted[severity] for severity in Severity}}
    wrong = [
        f"{name} is {said} in the summary and {real[name]} in the findings"
        for name, said in summary.items()
        if said is not None and said != real[name]
    ]
    return "; ".join(wrong)
