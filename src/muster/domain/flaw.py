"""What is wrong with fields of an order, as data: every door shows it by its own names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

CLOSE = 0.7  # how alike two words must be, from 0 to 1, before one is said to be meant
MAX_NAMED = 10  # names that a suggestion lists
MAX_GIVEN = 100  # characters of a value that was given


class FlawCode(StrEnum):
    """What kind of thing is wrong with a field."""

    MISSING = "missing"
    UNKNOWN = "unknown"  # there is no such field
    OUT_OF_BOUNDS = "out_of_bounds"  # of a number, or of the length of a text or a list
    CONFLICT = "conflict"  # it cannot be used together with another one
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFlaw:
    """What is wrong with a field: where, of what kind, in words, and what to do.

    The path is like `goals[0].persona`, and empty for the whole. The message stands after it in a sentence, unless it
    is a sentence `by_itself`. What was `given` stands in sentences for who gave it, and never in the data: it may be a
    secret, and two flaws are the same without it.
    """

    path: str
    message: str
    code: FlawCode = FlawCode.INVALID
    suggestion: str = ""
    by_itself: bool = False
    given: str = field(default="", compare=False)

    def __str__(self) -> str:
        """Return it as part of a sentence."""
        words = f"{self.message}, not {self.given}" if self.given else self.message
        return words if self.by_itself or not self.path else f"{self.path} {words}"

    def named(self, names: Mapping[str, str]) -> "FieldFlaw":
        """Return it by the names of a door; the name of a field within another one stands under `goals.persona`."""
        return replace(self, path=renamed_path(self.path, names))

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "path": self.path,
            "code": str(self.code),
            "message": self.message,
            "suggestion": str(self.suggestion) or None,
        }


def unknown_flaw(path: str, known: Iterable[str]) -> FieldFlaw:
    """Return that there is no such field, with the one that may be meant, or with those that there are."""
    names = list(known)
    name = path.rpartition(".")[2]
    near = nearest(name, names)
    listed = ", ".join(names[:MAX_NAMED]) + (", …" if len(names) > MAX_NAMED else "")
    way = f"did you mean {near}?" if near else f"known: {listed or 'none'}"
    return FieldFlaw(path=path, message="is unknown", code=FlawCode.UNKNOWN, suggestion=way)


def missing_flaw(path: str, suggestion: str = "") -> FieldFlaw:
    """Return that a field must be given."""
    return FieldFlaw(path=path, message="is missing", code=FlawCode.MISSING, suggestion=suggestion)


def type_flaw(path: str, noun: str, given: object) -> FieldFlaw:
    """Return that a value is of another type than its field."""
    return FieldFlaw(path=path, message=f"must be {noun}", given=shown_value(given))


def choice_flaw(path: str, choices: Sequence[str], given: object) -> FieldFlaw:
    """Return that a value is none of a few words, with the one that may be meant."""
    near = nearest(given, choices) if isinstance(given, str) else ""
    way = f"did you mean {near}?" if near else ""
    return FieldFlaw(path=path, message=f"must be {one_of(choices)}", suggestion=way, given=shown_value(given))


def shown_value(given: object) -> str:
    """Return a value as a sentence shows it to who gave it."""
    text = repr(str(given) if isinstance(given, StrEnum) else given)
    return text if len(text) <= MAX_GIVEN else f"{text[:MAX_GIVEN]}…"


def one_of(values: Sequence[str]) -> str:
    """Return the words that something can be."""
    return " or ".join(values) if len(values) < 3 else f"one of {', '.join(values)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the name that is close enough to be meant; empty if none is."""
    return next(iter(get_close_matches(name[:MAX_GIVEN], list(known), n=1, cutoff=CLOSE)), "")


def renamed_path(path: str, names: Mapping[str, str]) -> str:
    """Return a path with the names of a door in place of those of the declaration."""
    parts = path.split(".")
    plain = [re.sub(r"\[\d+\]", "", part) for part in parts]
    return ".".join(
        names.get(".".join(plain[: place + 1]), name) + part[len(name) :]
        for place, (part, name) in enumerate(zip(parts, plain, strict=True))
    )
