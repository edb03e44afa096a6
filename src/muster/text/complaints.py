"""Gathers what is wrong with one case, or with the head of a suite, in words for people and with the line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from muster.text.tree import Flaw, Place, line_of, spelled, texts_of

_LONGEST = 300

_WORDS = {
    "missing": "it is missing",
    "string_type": "it must be text",
    "int_type": "it must be a whole number",
    "float_type": "it must be a number",
    "bool_type": "it must be true or false",
    "list_type": "it must be a list",
    "dict_type": "it must be a mapping",
    "model_type": "it must be a mapping",
    "finite_number": "it must be a finite number",
    "too_short": "it needs at least one item",
    "greater_than": "it must be more than {gt}",
    "greater_than_equal": "it must be at least {ge}",
    "less_than": "it must be less than {lt}",
    "less_than_equal": "it must be at most {le}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownName:
    """A field that no form knows; a wrong one keeps its case, or its file, from being run."""

    place: Place
    message: str
    wrong: bool


class Complaints:
    """What was said about one part of a file."""

    def __init__(self, file: str, tree: Any, line: int | None, case: str = "", source: str = "") -> None:
        self.flaws: list[Flaw] = []
        self.doubts: list[Flaw] = []
        self._file, self._tree, self._line, self._case, self._source = file, tree, line, case, source

    def of(self, case: str, source: str) -> "Complaints":
        """Begin anew for a case that came from the same place, with a row of a dataset."""
        return Complaints(self._file, self._tree, self._line, case, source)

    def say(self, place: Place, message: str) -> None:
        """Note something that is wrong at a place."""
        self.flaws.append(self.flaw(place, message))

    def doubt(self, place: Place, message: str, code: str) -> None:
        """Note something that does not keep the file from being valid."""
        self.doubts.append(self.flaw(place, message, code))

    def take_names(self, names: Iterable[UnknownName]) -> None:
        """Note the fields that nobody knows."""
        for name in names:
            if name.wrong:
                self.say(name.place, name.message)
            else:
                self.doubt(name.place, name.message, "unknown-field")

    def flaw(self, place: Place, message: str, code: str = "") -> Flaw:
        """Say something about a place."""
        told = ": ".join(part for part in (self._source, spelled(place), message) if part)
        line = line_of(self._tree, place, self._line)
        return Flaw(file=self._file, line=line, case=self._case, message=told, code=code)

    def say_of_mark(self, mark: str, message: str) -> None:
        """Note something that is wrong where a text holds a mark."""
        places = (place for place, text in texts_of(self._tree) if mark in text)
        self.say(next(places, ()), message)

    def take(self, error: ValidationError) -> None:
        """Note everything that a form did not take."""
        for place, detail in zip(places_of(error), error.errors(include_url=False), strict=True):
            self.say(place, _words(detail))


def places_of(error: ValidationError) -> list[Place]:
    """Return the places that a form did not take."""
    # A key that does not do is marked as such; it is the mapping's place that can be found.
    return [tuple(step for step in detail["loc"] if step != "[key]") for detail in error.errors(include_url=False)]


def _words(detail: Mapping[str, Any]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind in ("literal_error", "enum"):
        return f"it must be {context['expected']}, and is {str(detail['input'])[:_LONGEST]!r}"
    return _WORDS[kind].format(**context) if kind in _WORDS else str(detail["msg"])
