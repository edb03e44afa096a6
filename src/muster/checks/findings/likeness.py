"""Whether two findings say the same: in the same file, at lines that meet, and of the same thing."""

import re
import unicodedata
from functools import lru_cache

from muster.domain.finding import Finding

ALIKE = 0.6  # of the words that either has, both have
_STEM = 5  # letters: "formatted" and "formatting" are one word, "input" and "inputs" too
_MOST = 100  # words that are compared
_WORD = re.compile(r"\w+")


def same(one: Finding, other: Finding) -> bool:
    """Whether two findings are duplicates."""
    return meet(one, other) and (
        (one.cwe != "" and one.cwe == other.cwe)
        or (one.rule != "" and one.rule == other.rule)
        or alike(one.finding, other.finding)
    )


def meet(one: Finding, other: Finding) -> bool:
    """Whether two findings are in the same file, at lines that overlap."""
    return one.file == other.file and one.line <= other.end_line and other.line <= one.end_line


def alike(one: str, other: str) -> bool:
    """Whether two texts share most of their words."""
    if one == other:
        return True
    left, right = _words(one), _words(other)
    both = len(left & right)
    return both > 0 and both >= ALIKE * (len(left) + len(right) - both)


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    found: dict[str, None] = {}
    for word in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        found.setdefault(word[0][:_STEM])
        if len(found) == _MOST:
            break
    return frozenset(found)
