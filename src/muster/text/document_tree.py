"""What a file says, as a tree whose parts know their lines; what a word without quotes means is left to its field."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from muster.domain.canonical import Json
from muster.domain.errors import BadFile

Place = tuple[str | int, ...]

_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL, _HEXADECIMAL = re.compile(r"0o[0-7]+"), re.compile(r"0x[0-9a-fA-F]+")
_DECIMAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(
    r"[-+]?(?:[0-9]+|\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|true|True|TRUE|false|False|FALSE|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_FIRST = frozenset("+-.0123456789tTfF")  # what something special begins with
_MAX_NUMBER = 100
NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class Plain(str):
    """A word without quotes that may be a number or a truth value; a field for text takes it as it was written."""

    __slots__ = ()

    def meaning(self) -> Json:
        """Return what it is in the core schema of YAML 1.2."""
        if self[0] in "tTfF":
            return self[0] in "tT"
        if len(self) > _MAX_NUMBER:
            raise ValueError(f"this number has more than {_MAX_NUMBER} digits")
        if _INTEGER.fullmatch(self):
            return int(self)
        if _OCTAL.fullmatch(self) or _HEXADECIMAL.fullmatch(self):
            return int(self, 0)
        return float(self) if _DECIMAL.fullmatch(self) else float(self.lower().replace(".", ""))


def scalar(text: str) -> str | None:
    """Read a word without quotes: nothing, something special, or text."""
    if text in NULLS:
        return None
    if text[0] not in _FIRST:
        return text
    return Plain(text) if _SPECIAL.fullmatch(text) else text


class Map(dict[str, Any]):
    """A mapping with the line of each of its keys."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}

    def put(self, key: str, value: Any, line: int) -> None:
        """Add a key."""
        self[key] = value
        self.lines[key] = line


class Items(list[Any]):
    """A list with the line of each of its items."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []

    def add(self, value: Any, line: int) -> None:
        """Add an item."""
        self.append(value)
        self.lines.append(line)


def line_of(tree: Any, place: Sequence[str | int], otherwise: int | None) -> int | None:
    """Return the line of a place; of one that is missing, that of the nearest thing around it."""
    line = getattr(tree, "line", None) or otherwise
    for step in place:
        try:
            line = tree.lines[step]
        except (AttributeError, LookupError, TypeError):  # no line is known from here on
            break
        tree = tree[step]
    return line


def texts_of(tree: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Yield all texts in a tree with their places."""
    if isinstance(tree, str):
        yield place, tree
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from texts_of(value, (*place, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from texts_of(value, (*place, index))


def plain_value(tree: Any) -> Any:
    """Return a tree as JSON values: words without quotes mean what they say, moments are spelled."""
    if isinstance(tree, Plain):
        return tree.meaning()
    if isinstance(tree, str):
        return str(tree)
    if isinstance(tree, Mapping):
        return {key: plain_value(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [plain_value(value) for value in tree]
    return tree.isoformat() if isinstance(tree, datetime | date | time) else tree


def spelled(place: Sequence[str | int]) -> str:
    """Spell a place as people do: expected.output[0].value."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".")


def place_of(path: str) -> Place:
    """Return the place that a path spells."""
    return tuple(int(step) if step.isdecimal() else step for step in re.findall(r"[^.\[\]]+", path))


MAX_FLAWS = 100  # of one file; whoever has more mends these first
BREAKING = frozenset({"empty-check"})  # codes of doubts about a check that can never pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """One thing that is wrong, or in lint: doubtful."""

    file: str
    message: str
    line: int | None = None
    column: int | None = None  # of what is wrong with the notation
    case: str = ""
    code: str = ""  # of what is only doubtful: what kind of finding it is

    @property
    def doubtful(self) -> bool:
        """Return whether the suite can be run all the same."""
        return bool(self.code)

    @property
    def breaking(self) -> bool:
        """Return whether the case that it is about can only be an error."""
        return not self.code or self.code in BREAKING

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return ": ".join(part for part in (place, self.case, self.message) if part)

    def error(self) -> BadFile:
        """Return it as the error that ends a command."""
        words = ": ".join(part for part in (self.case, self.message) if part)
        error = BadFile(self.file, words, line=self.line, column=self.column)
        error.suggestions = (f"muster validate {self.file} shows all problems",)
        return error


class Unreadable(Exception):
    """A file cannot be read any further; who called for it knows its name."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column
