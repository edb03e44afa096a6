"""Files of strangers as bytes that are known to be text: regular, UTF-8, no control characters, of bounded size."""

import codecs
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from muster.text.document_tree import Unreadable

_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file; a pipe or a device could keep us waiting for ever."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Unreadable("not a regular file")
            yield file
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error


class CheckedStream:
    """Reads the bytes of a file piece by piece, and raises Unreadable with the line where they are not text."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._line = 1
        self._begun = False

    def read(self, size: int = -1) -> bytes:
        """Return the next piece, empty at the end."""
        piece = self._file.read(size)
        try:
            self._decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            raise self._not_text(piece, error) from None
        if found := _CONTROL.search(piece):
            code = piece[found.start()]
            name = "a NUL character" if code == 0 else f"the control character 0x{code:02x}"
            raise Unreadable(f"{name} is not allowed in a text file", self._line + piece.count(b"\n", 0, found.start()))
        self._line += piece.count(b"\n")
        return self._without_mark(piece)

    def _without_mark(self, piece: bytes) -> bytes:
        if self._begun or not piece:
            return piece
        self._begun = True
        rest = piece.removeprefix(codecs.BOM_UTF8)
        return rest or self.read(1 << 12)  # nothing at all would mean: the end

    def _not_text(self, piece: bytes, error: UnicodeDecodeError) -> Unreadable:
        wide = not self._begun and piece.startswith(_WIDE)
        hint = "it looks like UTF-16; save it as UTF-8" if wide else "save it as UTF-8"
        return Unreadable(f"not UTF-8: {hint}", self._line + bytes(error.object)[: error.start].count(b"\n"))


def whole_text(path: Path, most: int) -> str:
    """Read a small file."""
    with opened(path) as file:
        data = CheckedStream(file).read(most + 1)
    if len(data) > most:
        raise Unreadable(f"larger than {most:,} bytes, the maximum for such a file")
    return _finished(data)


def _finished(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:  # the end of the file is inside of a character
        raise Unreadable("not UTF-8: the file ends inside a character", data.count(b"\n") + 1) from None


def byte_lines(file: BufferedReader, most: int) -> Iterator[bytes]:
    """Yield the lines of a file of any size; only one line is in memory."""
    number = 0
    while line := file.readline(most + 1):
        number += 1
        if len(line) > most:
            raise Unreadable(f"the line is longer than {most:,} bytes", number)
        yield line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def text_lines(file: BufferedReader, most: int) -> Iterator[str]:
    """Yield the lines as text."""
    for number, line in enumerate(byte_lines(file, most), 1):
        if b"\0" in line:
            raise Unreadable("a NUL character is not allowed in a text file", number)
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            raise Unreadable("not UTF-8: save it as UTF-8", number) from None


def shown(path: Path) -> str:
    """Spell a path as it was given, without what is the same for everything here."""
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return path.as_posix()
