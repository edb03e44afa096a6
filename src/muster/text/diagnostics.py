"""Collects the flaws of one case, or of the head of a suite, as messages with line numbers."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from muster.domain.flaw import one_of
from muster.text.document_tree import Flaw, Place, line_of, spelled, texts_of
from muster.text.words import choice_error

_MAX_MESSAGE = 300
_QUOTED = re.compile(r"'([^']*)'")

_WORDS = {
    "missing": "missing",
    "string_type": "must be a string",
    "extra_forbidden": "unknown name",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "finite_number": "must be a finite number",
    "too_short": "needs at least one item",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownName:
    """An unknown field; a wrong one keeps its case, or its file, from being run."""

    place: Place
    message: str
    wrong: bool


class Diagnostics:
    """The flaws and doubts of one part of a file."""

    def __init__(self, file: str, tree: Any, line: int | None, case: str = "", source: str = "") -> None:
        self.flaws: list[Flaw] = []
        self.doubts: list[Flaw] = []
        self._file, self._tree, self._line, self._case, self._source = file, tree, line, case, source

    def of(self, case: str, source: str) -> "Diagnostics":
        """Begin anew for a case that came from the same place, with a row of a dataset."""
        return Diagnostics(self._file, self._tree, self._line, case, source)

    def say(self, place: Place, message: str) -> None:
        """Note something that is wrong at a place."""
        self.flaws.append(self.flaw(place, message))

    def doubt(self, place: Place, message: str, code: str) -> None:
        """Note something that does not keep the file from being valid."""
        self.doubts.append(self.flaw(place, message, code))

    def take_names(self, names: Iterable[UnknownName]) -> None:
        """Note the fields that are unknown."""
        for name in names:
            if name.wrong:
                self.say(name.place, name.message)
            else:
                self.doubt(name.place, name.message, "unknown-field")

    def flaw(self, place: Place, message: str, code: str = "") -> Flaw:
        """Return a flaw at a place."""
        told = ": ".join(part for part in (self._source, spelled(place), message) if part)
        line = line_of(self._tree, place, self._line)
        return Flaw(file=self._file, line=line, case=self._case, message=told, code=code)

    def has_mark(self, mark: str) -> bool:
        """Return whether a text may hold a mark; quicker than to look at each, and sure only when it does not."""
        return mark in repr(self._tree)

    def say_of_mark(self, mark: str, message: str) -> None:
        """Note something that is wrong where a text holds a mark."""
        self.say(self._place_of(lambda text: mark in text), message)

    def doubt_of_variable(self, name: str, message: str, code: str) -> None:
        """Note something that is doubtful where a text names a variable."""
        named = re.compile(r"\{\{\s*" + re.escape(name) + r"\s*\}\}")
        self.doubt(self._place_of(lambda text: named.search(text) is not None), message, code)

    def _place_of(self, is_meant: Callable[[str], bool]) -> Place:
        return next((place for place, text in texts_of(self._tree) if is_meant(text)), ())

    def take(self, error: ValidationError) -> None:
        """Note every validation error of a form."""
        for place, detail in zip(places_of(error), error.errors(include_url=False), strict=True):
            self.say(place, validation_words(detail))


def places_of(error: ValidationError) -> list[Place]:
    """Return the places of the validation errors of a form."""
    # An invalid key is marked as such; it is the mapping's place that can be found.
    return [tuple(step for step in detail["loc"] if step != "[key]") for detail in error.errors(include_url=False)]


def _shown(value: Any) -> str:
    """Return a value as a file spells it; a mapping or a list only by its kind."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return "null" if value is None else repr(str(value)[:_MAX_MESSAGE])


def _choice_words(expected: str, given: Any) -> str:
    """Return that a value is not among the choices, which pydantic writes like "'a', 'b' or 'c'"."""
    choices = _QUOTED.findall(expected)
    if isinstance(given, str) and choices:
        return choice_error(choices, str(given)[:_MAX_MESSAGE])
    return f"must be {one_of(choices) if choices else expected}, not {_shown(given)}"


def validation_words(detail: Mapping[str, Any]) -> str:
    """Return what is wrong with a value, from one detail of a ValidationError."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind in ("literal_error", "enum"):
        return _choice_words(context["expected"], detail["input"])
    return _WORDS[kind].format(**context) if kind in _WORDS else str(detail["msg"])
