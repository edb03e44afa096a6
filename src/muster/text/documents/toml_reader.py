"""Suites and other lists in TOML: read whole, with the line of each `[[cases]]` found in the text."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from muster.domain.canonical import JsonObject
from muster.text.document_tree import Items, Map, Unreadable
from muster.text.files import whole_text

MAX_BYTES = 64_000_000

_KEY = re.compile(r"\s*(?:\[\s*)?[\"']?([A-Za-z0-9_-]+)[\"']?\s*[]=.]")
_TABLE = re.compile(r"\s*\[")
_LONG_QUOTE = re.compile(r"\"\"\"|'''")
# What may hold a quote that opens nothing: a comment, or a string in one line.
_SHORT = re.compile(r"\"\"\"|'''|\"(?:[^\"\\]|\\.)*\"|'[^']*'|#.*")


class TomlFile:
    """One file with a suite, or with a list of another name."""

    def __init__(self, path: Path, listed: str = "cases") -> None:
        self._path, self._listed = path, listed

    def head(self) -> Map:
        """Return everything but the cases, of which only the line is known."""
        return self._read()[0]

    def cases(self) -> Iterator[tuple[Any, int]]:
        """Yield the cases one by one, each with its line."""
        cases = self._read()[1]
        yield from zip(cases, cases.lines, strict=True)

    def _read(self) -> tuple[Map, Items]:
        text = whole_text(self._path, MAX_BYTES)
        found = _parsed(text)
        name = self._listed
        keys, lines = _outline(text, name)
        head, cases = Map(1), Items(keys.get(name, 1))
        for key, value in found.items():
            head.put(key, None if key == name else value, keys.get(key, 1))
        listed = found.get(name, [])
        if not isinstance(listed, list):
            raise Unreadable(f"{name} must be a list: begin each item with [[{name}]]", cases.line)
        for index, case in enumerate(listed):
            cases.add(case, lines[index] if index < len(lines) else cases.line)
        return head, cases


def _parsed(text: str) -> JsonObject:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, line, column = toml_flaw(str(error), text)
        raise Unreadable(f"invalid TOML: {what}", line, column) from None
    except (RecursionError, ValueError) as error:  # too deep, or a number with digits without end
        raise Unreadable(f"invalid TOML: {type(error).__name__}: {error}") from None


def _outline(text: str, listed: str) -> tuple[dict[str, int], list[int]]:
    """Find the lines of the keys at the top, and of the cases."""
    begins = re.compile(rf"\s*\[\[\s*(?:{listed}|\"{listed}\"|'{listed}')\s*\]\]")
    keys: dict[str, int] = {}
    cases: list[int] = []
    top = True
    for number, line in _outside_strings(text):
        if begins.match(line):
            cases.append(number)
            keys.setdefault(listed, number)
        table = _TABLE.match(line) is not None
        top = top and not table
        if (top or table) and (found := _KEY.match(line)):
            keys.setdefault(found[1], number)
    return keys, cases


def _outside_strings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that do not begin inside of a string of several lines."""
    closing: str | None = None
    for number, line in enumerate(text.split("\n"), 1):
        begins_inside, start = closing is not None, 0
        while True:
            if closing is not None:
                end = _closing_end(line, start, closing)
                if end < 0:
                    break
                closing, start = None, end
            opening = next((m for m in _SHORT.finditer(line, start) if _LONG_QUOTE.fullmatch(m[0])), None)
            if opening is None:
                break
            closing, start = opening[0], opening.end()
        if not begins_inside:
            yield number, line


def _closing_end(line: str, start: int, quote: str) -> int:
    """Find where a long string ends; up to two quotes of its own may stand before the closing three."""
    pattern = r"(?:[^\"\\]|\\.|\"(?!\"\"))*?\"{3,5}" if quote == '"""' else r".*?'{3,5}"
    found = re.compile(pattern).match(line, start)
    return found.end() if found else -1


_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def toml_flaw(said: str, text: str) -> tuple[str, int, int]:
    """Return what is wrong, its line and its column; the library gives no place at the end of a text."""
    place = _PLACE.search(said)
    what = _PLACE.sub("", said)
    if what == "Invalid value":
        what = 'invalid value: write a string in quotes, "like this", a number, true or false, [a list] or {a = table}'
    if place is not None and place[1]:
        return what, int(place[1]), int(place[2])
    read = text.replace("\r\n", "\n")  # as the library does
    return what, read.count("\n") + 1, len(read) - read.rfind("\n")
