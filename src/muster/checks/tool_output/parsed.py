"""What came of a checker's output, and the words that all parsers share."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.domain.finding import Finding

SHOWN = 300  # characters of an output in a message

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,30}[A-Za-z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a checker said. Paths are as it spells them; line 0 stands for a whole file. With a flaw nothing counts."""

    findings: tuple[Finding, ...] = ()
    score: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    coverage: float | None = None
    flaw: str = ""


Parser = Callable[[str, str, int], Parsed]  # standard output, standard error, exit code


def uncoloured(text: str) -> str:
    """Give a text without the escapes that paint it."""
    return _COLOUR.sub("", text) if "\x1b" in text else text


def tail(text: str) -> str:
    """Give the last words of an output, for a message."""
    said = " ".join(text[-4 * SHOWN :].split())
    return f"…{said[-SHOWN:]}" if len(said) > SHOWN else said


def flawed(why: str, output: str = "") -> Parsed:
    """Say why an output cannot be read, with its last words."""
    said = tail(output)
    return Parsed(flaw=f"{why}; its output ends: {said}" if said else why)
