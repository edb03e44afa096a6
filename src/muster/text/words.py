"""Numbers, times and texts of strangers as people read them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from muster.domain.flaw import nearest, one_of

_PRIVATE = "x-"  # begins keys that are nobody's business, such as anchors
_BREAKS = re.compile(r"\s+")
_EXPECTED = re.compile(r"Expected `(\w+)[^`]*`(?: ([<>]=? [\d.]+))?(?:, got `(\w+)`)?")
_TYPES = {
    "str": "a string",
    "array": "a list",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
}


def shorten(text: str, most: int) -> str:
    """Cut a text and say how much is missing."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most:,} more characters)"


def one_line(text: str, most: int) -> str:
    """Put a text on one line of at most so many characters."""
    flat = _BREAKS.sub(" ", text[: 4 * most]).strip()
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"


def count(number: int, noun: str, plural: str = "") -> str:
    """Write a number with its noun; the plural has an s, unless another one is given."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def unknown_keys(tree: Any, known: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the keys of a file that are not known, each with what to say about it."""
    for name in tree if isinstance(tree, Mapping) else ():
        if name not in known and not name.startswith(_PRIVATE):
            near = nearest(name, known)
            yield name, "unknown key; " + (f"did you mean {near}?" if near else f"known keys: {', '.join(known)}")


def choice_error(values: Sequence[str], given: object) -> str:
    """Return the predicate of an error about a value that is not among a few words, with the one that may be meant."""
    near = nearest(str(given), values)
    return f"must be {one_of(values)}, not {given!r}" + (f". Did you mean {near!r}?" if near else "")


def conversion_words(what: str, mapping: str = "a mapping") -> str:
    """Return the predicate of an error about a value of another type, from what msgspec says of it.

    A mapping is called what it is called in such a file.
    """
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", what):
        return f"unknown key {unknown[1]!r}"
    expected = _EXPECTED.match(what)
    if expected is None:
        return what
    wanted, bound, found = (_TYPES.get(part, mapping if part == "object" else part) for part in expected.groups(""))
    return " ".join(filter(None, ("must be", wanted, bound))) + (f", not {found}" if found else "")


def percent(share: float | None, places: int = 1) -> str:
    """Write a share for a person."""
    return "–" if share is None else f"{100 * share:.{places}f}%"


def moment(at: float | None) -> str | None:
    """Write a time in UTC."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def seconds_of(seconds: float | None) -> str:
    """Write a duration, no finer than needed."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
