"""An archive that was verified, opened for reading: its files by name, line by line."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.suites.evidence.layout import MAX_LINE, MAX_MEMBERS, NAME, EvidenceFault
from muster.text import typed

BLOCK = 512
END = bytes(2 * BLOCK)
CHUNK = 1 << 16
MAX_BYTES = 8**11 - 1  # what a header has room for

_SIZE = re.compile(rb"[0-7]{11}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveMember:
    """One file of an archive, and where its contents stand."""

    name: str
    start: int
    size: int
    sha256: str


def header(name: str, size: int) -> bytes:
    """Return the one header that a member of this name and size has."""
    before = name.encode("ascii").ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2
    before += b"%011o\0" % size + b"00000000000\0"
    after = b"0" + bytes(100) + b"ustar\x0000" + bytes(247)
    return before + b"%06o\0 " % (sum(before) + sum(after) + 8 * ord(" ")) + after


def is_archive(block: bytes) -> bool:
    """Return whether a file with this first block is an evidence archive, be it damaged."""
    name = block[:100].rstrip(b"\0").decode("ascii", "backslashreplace")
    return NAME.fullmatch(name) is not None or block[257:262] == b"ustar"


class TarWriter:
    """Writes members one after the other, each as it comes; needs a file that can seek."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.members: list[ArchiveMember] = []

    @contextmanager
    def member(self, name: str) -> "Iterator[Content]":
        """Write one member; its header follows when its size is known."""
        place = self._file.tell()
        self._file.write(bytes(BLOCK))
        content = Content(self._file)
        yield content
        if content.size > MAX_BYTES:
            raise BadArgument(f"{name} of this run is larger than the 8 GiB that a file of an archive may have")
        self._file.write(bytes(-content.size % BLOCK))
        end = self._file.tell()
        self._file.seek(place)
        self._file.write(header(name, content.size))
        self._file.seek(end)
        self.members.append(ArchiveMember(name=name, start=place + BLOCK, size=content.size, sha256=content.sha256))

    def put(self, name: str, data: bytes) -> None:
        """Write a member that is at hand."""
        with self.member(name) as content:
            content.write(data)

    def close(self) -> None:
        """Write the end."""
        self._file.write(END)


class Content:
    """The contents of a member while they are written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._digest = file, hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        """The digest of what was written so far."""
        return self._digest.hexdigest()

    def write(self, data: bytes) -> None:
        """Add some bytes."""
        self._file.write(data)
        self._digest.update(data)
        self.size += len(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What an archive holds: all members, and the contents of those that were asked for."""

    members: tuple[ArchiveMember, ...]
    kept: Mapping[str, bytes]


def scan(file: BinaryIO, keep: Mapping[str, int]) -> Scan:
    """Read an archive once from end to end; `keep` names what is wanted, with the most bytes that it may have."""
    members: list[ArchiveMember] = []
    kept: dict[str, bytes] = {}
    names = set[str]()
    while (block := file.read(BLOCK)) != bytes(BLOCK):
        if len(members) >= MAX_MEMBERS:
            raise EvidenceFault("the archive", f"contains more than {MAX_MEMBERS:,} files")
        name, size = _read_header(block, len(members) + 1)
        if name in names:
            raise EvidenceFault(name, "is in the archive twice")
        names.add(name)
        start, most = file.tell(), keep.get(name, 0)
        if name in keep and size > most:
            raise EvidenceFault(name, f"is larger than {most:,} bytes")
        data = bytearray()
        sha256 = _read_contents(file, name, size, data if name in keep else None)
        if name in keep:
            kept[name] = bytes(data)
        members.append(ArchiveMember(name=name, start=start, size=size, sha256=sha256))
    if file.read(BLOCK + 1) != bytes(BLOCK):
        raise EvidenceFault("the archive", "has data after its end")
    return Scan(members=tuple(members), kept=kept)


def _read_header(block: bytes, number: int) -> tuple[str, int]:
    where = f"file {number} of the archive"
    if len(block) < BLOCK:
        raise EvidenceFault("the archive", "is cut short")
    raw = block[:100].rstrip(b"\0")
    name = raw.decode("ascii", "backslashreplace")
    if not NAME.fullmatch(name):
        raise EvidenceFault(where, f"{name!r} is not a file of an evidence archive")
    digits = block[124:135]
    if not _SIZE.fullmatch(digits) or header(name, int(digits, 8)) != block:
        raise EvidenceFault(where, f"the header of {name} was changed")
    return name, int(digits, 8)


def _read_contents(file: BinaryIO, name: str, size: int, into: bytearray | None) -> str:
    digest, left = hashlib.sha256(), size
    while left:
        chunk = file.read(min(CHUNK, left))
        if not chunk:
            raise EvidenceFault(name, "is cut short")
        digest.update(chunk)
        left -= len(chunk)
        if into is not None:
            into += chunk
    padding = -size % BLOCK
    if file.read(padding) != bytes(padding):
        raise EvidenceFault(name, "the padding of its last block is not empty")
    return digest.hexdigest()


T = TypeVar("T")


def records(file: BinaryIO, member: ArchiveMember) -> Iterator[dict[str, Json]]:
    """Yield the JSON objects of a file, one for each line; several files can be read side by side."""
    for number, line in enumerate(_lines(file, member), 1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise EvidenceFault(member.name, f"line {number} is not JSON") from error
        if not isinstance(record, dict):
            raise EvidenceFault(member.name, f"line {number} is not a JSON object")
        yield record


class Stream:
    """Gives the records of a file in their order, each to whoever asks for it by name when its turn has come."""

    def __init__(self, file: BinaryIO, member: ArchiveMember, name_of: Callable[[dict[str, Json]], str]) -> None:
        self._records, self._member, self._name_of = records(file, member), member, name_of
        self._next = next(self._records, None)

    def take(self, name: str) -> dict[str, Json] | None:
        """Return the next record if it is the one of this name."""
        try:
            mine = self._next is not None and self._name_of(self._next) == name
        except (KeyError, TypeError) as error:
            raise EvidenceFault(self._member.name, "a line is not valid") from error
        return self._advance() if mine else None

    def rest(self) -> Iterator[dict[str, Json]]:
        """Yield all records that were not taken."""
        while self._next is not None:
            yield self._advance()

    def _advance(self) -> Any:
        taken, self._next = self._next, next(self._records, None)
        return taken


def read_as(kind: type[T], record: Any, member: str) -> T:
    """Read a record of an archive as a value."""
    try:
        return typed.convert(record, kind)
    except (typed.ValidationError, ValueError, TypeError, ArithmeticError) as error:
        raise EvidenceFault(member, f"a line is not a valid {kind.__name__}") from error


def _lines(file: BinaryIO, member: ArchiveMember) -> Iterator[bytes]:
    held: list[bytes] = []
    length = 0
    for chunk in _chunks(file, member):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            yield b"".join((*held, part))
            held, length = [], 0
        length += len(rest)
        if length > MAX_LINE:
            raise EvidenceFault(member.name, f"a line is longer than {MAX_LINE:,} bytes")
        held.append(rest)
    if length:
        raise EvidenceFault(member.name, "its last line has no end")


def _chunks(file: BinaryIO, member: ArchiveMember) -> Iterator[bytes]:
    digest, place, end = hashlib.sha256(), member.start, member.start + member.size
    while place < end:
        chunk = os.pread(file.fileno(), min(CHUNK, end - place), place)
        if not chunk:
            break
        digest.update(chunk)
        place += len(chunk)
        yield chunk
    if digest.hexdigest() != member.sha256:  # somebody writes to the file while it is read
        raise EvidenceFault(member.name, "was changed while it was read")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceArchive:
    """The files of an archive; one that is missing is a fault when it is asked for."""

    file: BinaryIO
    members: Mapping[str, ArchiveMember]

    def records(self, name: str) -> Iterator[dict[str, Json]]:
        """Return the records of a file, one after the other."""
        return records(self.file, self._member(name))

    def first(self, name: str) -> dict[str, Json]:
        """Return the only record of a file."""
        return next(self.records(name), {})

    def text(self, name: str) -> str:
        """Return a file that is one text; empty for no name."""
        return b"".join(_chunks(self.file, self._member(name))).decode("utf-8", "replace") if name else ""

    def stream(self, name: str, name_of: Callable[[dict[str, Any]], str]) -> Stream:
        """Return the records of a file to whoever asks for them by name in their order."""
        return Stream(self.file, self._member(name), name_of)

    def _member(self, name: str) -> ArchiveMember:
        if name not in self.members:
            raise EvidenceFault(name, "is missing")
        return self.members[name]
