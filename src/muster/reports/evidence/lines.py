"""The lines of a file of an archive, read one after the other, and checked against its digest at the end."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeVar

import msgspec

from muster.reports.evidence.fault import Fault
from muster.reports.evidence.layout import MOST_LINE
from muster.reports.evidence.tar import CHUNK, Member

T = TypeVar("T")


def records(file: BinaryIO, member: Member) -> Iterator[dict[str, Any]]:
    """Give the JSON objects of a file, one for each line; several files can be read side by side."""
    for number, line in enumerate(_lines(file, member), 1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Fault(member.name, f"line {number} is no JSON") from error
        if not isinstance(record, dict):
            raise Fault(member.name, f"line {number} is no JSON object")
        yield record


class Stream:
    """Gives the records of a file in their order, each to whoever asks for it by name when its turn has come."""

    def __init__(self, file: BinaryIO, member: Member, name_of: Callable[[dict[str, Any]], str]) -> None:
        self._records, self._member, self._name_of = records(file, member), member, name_of
        self._next = next(self._records, None)

    def take(self, name: str) -> dict[str, Any] | None:
        """Give the next record if it is the one of this name."""
        try:
            mine = self._next is not None and self._name_of(self._next) == name
        except (KeyError, TypeError) as error:
            raise Fault(self._member.name, "a line of it is not as it should be") from error
        return self._advance() if mine else None

    def rest(self) -> Iterator[dict[str, Any]]:
        """Give all records that nobody asked for in time."""
        while self._next is not None:
            yield self._advance()

    def _advance(self) -> Any:
        taken, self._next = self._next, next(self._records, None)
        return taken


def read_as(kind: type[T], record: Any, member: str) -> T:
    """Read a record of an archive as a value."""
    try:
        return msgspec.convert(record, kind)
    except (msgspec.ValidationError, ValueError, TypeError, ArithmeticError) as error:
        raise Fault(member, f"a line of it is no {kind.__name__}") from error


def _lines(file: BinaryIO, member: Member) -> Iterator[bytes]:
    held: list[bytes] = []
    length = 0
    for chunk in _chunks(file, member):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            yield b"".join((*held, part))
            held, length = [], 0
        length += len(rest)
        if length > MOST_LINE:
            raise Fault(member.name, f"a line is longer than {MOST_LINE:,} bytes")
        held.append(rest)
    if length:
        raise Fault(member.name, "its last line has no end")


def _chunks(file: BinaryIO, member: Member) -> Iterator[bytes]:
    digest, place, end = hashlib.sha256(), member.start, member.start + member.size
    while place < end:
        chunk = os.pread(file.fileno(), min(CHUNK, end - place), place)
        if not chunk:
            break
        digest.update(chunk)
        place += len(chunk)
        yield chunk
    if digest.hexdigest() != member.sha256:  # somebody writes to the file while it is read
        raise Fault(member.name, "it was changed while it was read")
