"""The spool: results of a batch on disk while they come, sorted by the members' places, so that memory does not grow.

Results come in any order. Members that are neighbours in the store are settled together, which is many times faster.
"""

import math
import shutil
from array import array
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import quote, unquote

from muster.domain.errors import StoreFailed
from muster.domain.run import Driver

T = TypeVar("T")

BUFFER = 32 * 1024
MOST_FILES = 256
MOST_LINES = 3  # of one member: a line that is cut or a stranger's may come before the good one
UNUSED_SECONDS = 86_400.0  # after which a folder whose process cannot be looked at is removed
MOST_LINE = 64 * 1024 * 1024  # bytes; no answer is that long

_NUMBERS = count()


class Spool:
    """The lines of one source of results, in one file for every page of places."""

    def __init__(self, folder: Path, *, places: int, page: int) -> None:
        self._folder = folder
        self._page = max(page, -(-places // MOST_FILES))
        self._files: dict[int, BinaryIO] = {}
        self._places: dict[int, array[int]] = {}  # of the lines of a file, in their order
        self._counts = bytearray(places)  # of the lines of each member
        self.lines = 0

    def begin(self) -> None:
        """Start over with nothing; a download that broke is begun anew."""
        self.clear()
        self._attempt(self._folder.mkdir, mode=0o700, parents=True)

    def add(self, place: int, line: bytes) -> bool:
        """Put a line, with its line break, where its member's neighbours are; False when there are enough of it."""
        if self._counts[place] == MOST_LINES:
            return False
        self._counts[place] += 1
        number = place // self._page
        if number not in self._files:
            self._files[number] = self._attempt(self._open, number)
            self._places[number] = array("l")
        try:
            self._files[number].write(line)
        except OSError as error:
            raise self._failed(error) from error
        self._places[number].append(place)
        self.lines += 1
        return True

    def _open(self, number: int) -> BinaryIO:
        return (self._folder / f"{number}.jsonl").open("wb", BUFFER)

    def _read(self, number: int) -> list[bytes]:
        return BytesIO((self._folder / f"{number}.jsonl").read_bytes()).readlines()

    def finish(self) -> None:
        """Write everything out."""
        for file in self._files.values():
            self._attempt(file.close)

    def pages(self) -> Iterator[tuple[int, int, list[tuple[int, bytes]]]]:
        """Give the lines with their places, page by page, after the first place of the page and the one after it."""
        found = 0
        for number in sorted(self._files):
            lines = [line for line in self._attempt(self._read, number) if _is_whole(line)]  # else it was cut
            found += len(lines)
            yield number * self._page, (number + 1) * self._page, list(zip(self._places[number], lines, strict=False))
        if found != self.lines:  # what is missing here must not be taken for missing at the provider
            raise StoreFailed(f"{self.lines - found} of {self.lines} spooled results are gone from {self._folder}")

    def clear(self) -> None:
        """Remove all of it."""
        for file in self._files.values():
            file.close()
        self._files, self._places, self.lines = {}, {}, 0
        self._counts = bytearray(len(self._counts))
        shutil.rmtree(self._folder, ignore_errors=True)

    def _attempt(self, work: Callable[..., T], *arguments: object, **options: object) -> T:
        try:
            return work(*arguments, **options)
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> StoreFailed:
        return StoreFailed(
            f"results cannot be spooled to {self._folder}: {error.strerror}",
            suggestions=("free some space; the results stay at the provider; then try again",),
        )


def own_folder(spool: Path, driver: Driver, is_gone: Callable[[Driver], bool], now: float) -> Path:
    """Give a folder that no other process writes to, and remove those of processes that are gone."""
    for other in spool.glob("*"):
        owner = _owner(other.name)
        gone = owner is not None and is_gone(owner)
        # Of a process in another PID namespace or on another machine nobody can tell: its age decides.
        if gone or (owner != driver and _last_change(other) < now - UNUSED_SECONDS):
            shutil.rmtree(other, ignore_errors=True)
    parts = (driver.host, str(driver.pid), driver.started, str(next(_NUMBERS)))
    return spool / "+".join(quote(part, safe="") for part in parts)


def _owner(name: str) -> Driver | None:
    """Read the name of a folder; None when an older version gave it."""
    parts = [unquote(part) for part in name.split("+")]
    if len(parts) != 4 or not parts[1].isdecimal():
        return None
    return Driver(host=parts[0], pid=int(parts[1]), started=parts[2])


def _last_change(folder: Path) -> float:
    """Return when a folder or a file in it was last written to; never for one that is being removed."""
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return math.inf


class Splitter:
    """Cuts a stream of bytes into lines, which keep their line breaks."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of a line that has not ended
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Give the lines that are whole by now."""
        if self._size > MOST_LINE:  # its end is left out, so that what is kept of it cannot be read
            chunk = chunk[chunk.find(b"\n") :] if b"\n" in chunk else b""
        lines = BytesIO(chunk).readlines()  # `split` looks at every byte in turn, and takes six times as long
        if lines and self._parts:
            self._keep(lines[0])
            if not _is_whole(lines[0]):
                return []
            lines[0] = b"".join(self._parts)
            self._parts, self._size = [], 0
        if lines and not _is_whole(lines[-1]):
            self._keep(lines.pop())
        return lines

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)

    def rest(self) -> bytes:
        """Give what came after the last line break, as a line."""
        return b"".join((*self._parts, b"\n"))


def _is_whole(line: bytes) -> bool:
    return line.endswith(b"\n")
