"""The spool: results of a batch on disk while they are read, so that memory does not grow with them."""

import os
from array import array
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from muster.domain.errors import StoreFailed


class SpoolWriter:
    """A file that is being written; a broken download begins it anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file: BinaryIO = path.open("wb")
        except OSError as error:
            raise self._failed(error) from error

    def write(self, chunk: bytes) -> None:
        """Write some more."""
        try:
            self._file.write(chunk)
        except OSError as error:
            raise self._failed(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        except OSError as failure:
            raise self._failed(failure) from failure

    def _failed(self, error: OSError) -> StoreFailed:
        return StoreFailed(
            f"results cannot be spooled to {self._path}: {error.strerror}",
            suggestions=("free some space; the results stay at the provider; then try again",),
        )


class Lines:
    """The lines of a spooled file, each with where it begins and how long it is, so that it is found again."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        start = 0
        for line in self._file:
            yield start, line.rstrip()
            start += len(line)

    def at(self, start: int, size: int) -> bytes:
        """Give the line that begins here."""
        return os.pread(self._file.fileno(), size, start)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class ByPlace:
    """Lines in the order of the members: neighbours in the store are settled together, which is many times faster."""

    def __init__(self) -> None:
        self._places, self._starts, self._sizes = array("q"), array("q"), array("q")

    def __len__(self) -> int:
        return len(self._places)

    def add(self, place: int, start: int, size: int) -> None:
        """Note where the line of a member is."""
        self._places.append(place)
        self._starts.append(start)
        self._sizes.append(size)

    def pages(self, size: int) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Give the first place of a page and where its lines are, page by page of so many places."""
        order = sorted(range(len(self)), key=self._places.__getitem__)
        for number, page in groupby(order, key=lambda index: self._places[index] // size):
            yield number * size, [(self._starts[index], self._sizes[index]) for index in page]
