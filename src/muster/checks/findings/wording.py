"""The words of a finding as they may be kept: bounded, without control characters, labels in one spelling."""

import re

from muster.domain.canonical import Json
from muster.domain.finding import Severity

LONGEST_TEXT = 4_000  # characters of a finding or a fix
LONGEST_NAME = 200  # of a rule
LONGEST_PATH = 1_024
LONGEST_REPLACEMENT = 20_000

_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_CWE = re.compile(r"(?:cwe)?[\s:#_-]*0{0,9}([1-9]\d{0,4})(?!\d)", re.IGNORECASE)


def bounded(text: str, longest: int = LONGEST_TEXT) -> str:
    """Give a text that can be kept and shown: a long one without its end, control characters as a mark."""
    kept = text[: longest + 1].strip()
    shown = _UNSHOWN.sub("\ufffd", kept.replace("\r\n", "\n"))
    return shown if len(text.strip()) <= longest else f"{shown[: longest - 1]}…"


def replacement_of(text: str | None) -> str | None:
    """Give the text that would stand in some lines instead; one that cannot be kept whole is none."""
    if text is None or len(text) > LONGEST_REPLACEMENT or _UNSHOWN.search(text.replace("\r\n", "\n")):
        return None
    return text


def severity_of(text: str) -> Severity | None:
    """Read a severity, in letters of any size; None for any other word."""
    word = text.strip().lower()
    return Severity(word) if word in set(Severity) else None


def cwe_of(value: Json) -> str:
    """Give the number of a weakness in its one spelling; what is none is left out, since it only labels a finding."""
    found = _CWE.match(str(value).strip())
    return f"CWE-{found[1]}" if found else ""
