r"""Variables in the texts of a case: {{name}} is replaced once, \{{ means the braces themselves.

What a variable holds is data: it is put in as it is and never looked through again.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from muster.domain.canonical import Json, JsonObject
from muster.domain.media import Media, MediaKind
from muster.suites.values.case import Case, CheckKind, OutputCheck, RubricItem, ScriptedTool
from muster.text import typed
from muster.text.document_tree import Unreadable
from muster.text.files import byte_lines, opened, text_lines

MAX_SUBSTITUTED = 8_000_000  # characters that variables may bring into one case

Values = Mapping[str, str]
Fill = Callable[[Values], Any]

_MARK = re.compile(r"\\\{\{|\{\{([^{}]*)\}\}|\{\{")

# Names and places of things: they say what a case is, not what is said in it.
_KEPT: Mapping[type, frozenset[str]] = {
    Case: frozenset({"id", "suite", "file", "agents", "process", "process_folder", "golden"}),
    ScriptedTool: frozenset({"name"}),
    RubricItem: frozenset({"id"}),
    OutputCheck: frozenset({"golden"}),
    Media: frozenset(field.name for field in fields(Media)),
}


class JsonText(str):
    """A text that was written as JSON: variables are put into its values, which spells their quotes rightly."""

    __slots__ = ()


class MediaName(str):
    """The name of an image or a document in the content of a message, with variables in it."""

    __slots__ = ("kind",)
    kind: MediaKind

    @classmethod
    def of(cls, name: str, kind: MediaKind) -> "MediaName":
        """Return the name of a file of a kind."""
        made = cls(name)
        made.kind = kind
        return made


def spell(value: Json) -> str:
    """Spell a value as JSON for a reader."""
    return json.dumps(value, ensure_ascii=False)


class Unfilled(Exception):
    """A text cannot be filled in; `mark` is what stands in it."""

    def __init__(self, mark: str, message: str) -> None:
        super().__init__(message)
        self.mark, self.message = mark, message


class CaseTemplate:
    """A case whose texts are waiting for variables; raises Unfilled when one has braces that name nothing."""

    def __init__(self, case: Case) -> None:
        self.names: Counter[str] = Counter()
        self._changes = self._parts(case)
        self._kept = _without(case, self._changes)

    def fill(self, values: Values, **changes: Any) -> Case:
        """Return the case with its variables filled in; parts without any are the same objects as before."""
        size = 0
        for name, times in self.names.items():
            if name not in values:
                known = ", ".join(sorted(values)[:20]) or "none"
                raise Unfilled(f"{{{{{name}}}}}", f"unknown variable {name!r} (known: {known})")
            size += times * len(values[name])
        if size > MAX_SUBSTITUTED:
            raise Unfilled("{{", f"its variables expand to more than {MAX_SUBSTITUTED:,} characters")
        filled = {name: fill(values) for name, fill in self._changes.items()}
        return Case(**{**self._kept, **filled, **changes})

    def _fill_of(self, value: Any) -> Fill | None:
        """Return how a value is filled in; None when there is nothing in it to fill."""
        if type(value) is str:
            return self._text(value) if "{{" in value else None
        if type(value) is JsonText:
            return self._json_text(value)
        if type(value) is MediaName:
            fill, kind = self._text(value), value.kind
            return lambda values: MediaName.of(fill(values), kind)
        if isinstance(value, tuple | list):
            return self._several(value)
        if isinstance(value, Mapping):
            return self._mapping(value)
        if is_dataclass(value):
            return self._record(value)
        return None

    def _text(self, text: str) -> Fill:
        parts: list[tuple[str, str | None]] = []  # what stands as it is, then the name of a variable
        end = 0
        literal = ""
        for mark in _MARK.finditer(text):
            literal += text[end : mark.start()]
            end = mark.end()
            if mark[0] == r"\{{":
                literal += "{{"
            else:
                parts.append((literal, self._name(mark)))
                literal = ""
        parts.append((literal + text[end:], None))
        return lambda values: "".join(before if name is None else before + values[name] for before, name in parts)

    def _json_text(self, text: str) -> Fill:
        value = json.loads(text)
        fill = self._fill_of(value)
        return lambda values: spell(value if fill is None else fill(values))

    def _name(self, mark: re.Match[str]) -> str:
        name = (mark[1] or "").strip()
        if not name:
            raise Unfilled(mark[0], r"'{{' without a variable; write \{{ for literal braces")
        self.names[name] += 1
        return name

    def _several(self, values: tuple[Any, ...] | list[Any]) -> Fill | None:
        found = [self._fill_of(value) for value in values]
        if not any(found):
            return None
        kind, pairs = type(values), list(zip(values, found, strict=True))
        return lambda given: kind([value if fill is None else fill(given) for value, fill in pairs])

    def _mapping(self, values: Mapping[str, Json]) -> Fill | None:
        found = {key: fill for key, value in values.items() if (fill := self._fill_of(value))}
        if not found:
            return None
        return lambda given: {**values, **{key: fill(given) for key, fill in found.items()}}

    def _record(self, value: Any) -> Fill | None:
        found = self._parts(value)
        if not found:
            return None
        kind, kept = type(value), _without(value, found)
        return lambda given: kind(**kept, **{name: fill(given) for name, fill in found.items()})

    def _parts(self, value: Any) -> dict[str, Fill]:
        kept = _KEPT.get(type(value), frozenset())
        if isinstance(value, OutputCheck) and value.kind is CheckKind.GOLDEN_DIFF:
            kept |= {"value"}
        names = [field.name for field in fields(value) if field.name not in kept]
        return {name: fill for name in names if (fill := self._fill_of(getattr(value, name)))}


def _without(value: Any, changes: Mapping[str, Fill]) -> JsonObject:
    """Return the fields of a record that stay as they are."""
    return {field.name: getattr(value, field.name) for field in fields(value) if field.name not in changes}


MAX_ROW_BYTES = 8_000_000  # bytes of one line
KINDS = (".csv", ".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class Row:
    """One row, with its number from 1 and the line on which it ends."""

    number: int
    line: int
    values: Mapping[str, Json]

    def text(self, name: str) -> str | None:
        """Return a value as text: what is no text is spelled as JSON; nothing is None."""
        value = self.values.get(name)
        if value is None or type(value) is str:
            return value
        return str(value) if type(value) is int else json.dumps(value, ensure_ascii=False)


def rows(path: Path) -> Iterator[Row]:
    """Return the rows of a file; raises Unreadable with the line at the first that cannot be read."""
    read = {".csv": _csv_rows, ".jsonl": _json_rows, ".ndjson": _json_rows}.get(path.suffix.lower())
    if read is None:
        raise Unreadable(f"a dataset must be one of {', '.join(KINDS)}")
    return read(path)


def _json_rows(path: Path) -> Iterator[Row]:
    decode = typed.decode
    number = 0
    with opened(path) as file:
        for line, text in enumerate(byte_lines(file, MAX_ROW_BYTES), 1):
            if not text.strip():
                continue
            number += 1
            try:
                values = decode(text)
            except (typed.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise Unreadable(f"not valid JSON: {error}", line) from None
            if type(values) is not dict:
                raise Unreadable("a row must be an object", line)
            yield Row(number, line, values)


def _csv_rows(path: Path) -> Iterator[Row]:
    with opened(path) as file:
        reader = csv.reader(text_lines(file, MAX_ROW_BYTES), strict=True)
        try:
            names = _header(next(reader, []))
            number = 0
            for cells in reader:
                if not cells:
                    continue
                number += 1
                if len(cells) != len(names):
                    what = f"{len(cells)} cells, but there are {len(names)} columns"
                    raise Unreadable(f"this row has {what}", reader.line_num)
                yield Row(number, reader.line_num, dict(zip(names, cells, strict=True)))
        except csv.Error as error:
            hint = "; use JSONL for longer texts" if "larger than field limit" in str(error) else ""
            raise Unreadable(f"not valid CSV: {error}{hint}", reader.line_num) from None


def _header(cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if not names:
        raise Unreadable("the first line with the names of the columns is missing", 1)
    if "" in names or len(set(names)) < len(names):
        raise Unreadable("every column needs a unique name in the first line", 1)
    return names
