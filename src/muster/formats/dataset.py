"""Rows of a dataset, CSV or JSONL, one at a time; a row's columns are variables."""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from muster.formats.flaw import Unreadable
from muster.formats.source import byte_lines, opened, text_lines

MOST_ROW = 8_000_000  # bytes of one line
KINDS = (".csv", ".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class Row:
    """One row, with its number from 1 and the line on which it ends."""

    number: int
    line: int
    values: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """Give a value as text: what is no text is spelled as JSON; nothing is None."""
        value = self.values.get(name)
        if value is None or type(value) is str:
            return value
        return str(value) if type(value) is int else json.dumps(value, ensure_ascii=False)


def rows(path: Path) -> Iterator[Row]:
    """Give the rows of a file; raises Unreadable with the line at the first that cannot be read."""
    read = {".csv": _csv_rows, ".jsonl": _json_rows, ".ndjson": _json_rows}.get(path.suffix.lower())
    if read is None:
        raise Unreadable(f"a dataset is one of {', '.join(KINDS)}")
    return read(path)


def _json_rows(path: Path) -> Iterator[Row]:
    decode = msgspec.json.Decoder().decode
    number = 0
    with opened(path) as file:
        for line, text in enumerate(byte_lines(file, MOST_ROW), 1):
            if not text.strip():
                continue
            number += 1
            try:
                values = decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise Unreadable(f"this is no JSON: {error}", line) from None
            if type(values) is not dict:
                raise Unreadable("a row must be an object", line)
            yield Row(number, line, values)


def _csv_rows(path: Path) -> Iterator[Row]:
    with opened(path) as file:
        reader = csv.reader(text_lines(file, MOST_ROW), strict=True)
        try:
            names = _header(next(reader, []))
            number = 0
            for cells in reader:
                if not cells:
                    continue
                number += 1
                if len(cells) != len(names):
                    what = f"{len(cells)} cells, and there are {len(names)} columns"
                    raise Unreadable(f"this row has {what}", reader.line_num)
                yield Row(number, reader.line_num, dict(zip(names, cells, strict=True)))
        except csv.Error as error:
            hint = "; JSONL takes longer texts" if "larger than field limit" in str(error) else ""
            raise Unreadable(f"this is no CSV: {error}{hint}", reader.line_num) from None


def _header(cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if not names:
        raise Unreadable("there is no first line with the names of the columns", 1)
    if "" in names or len(set(names)) < len(names):
        raise Unreadable("every column needs a name of its own in the first line", 1)
    return names
