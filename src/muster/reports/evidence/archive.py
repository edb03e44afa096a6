"""An archive that was verified, opened for reading: its files by name, line by line."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from muster.reports.evidence.fault import Fault
from muster.reports.evidence.lines import Stream, records
from muster.reports.evidence.tar import Member


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The files of an archive; one that is missing is a fault when it is asked for."""

    file: BinaryIO
    members: Mapping[str, Member]

    def records(self, name: str) -> Iterator[dict[str, Any]]:
        """Give the records of a file, one after the other."""
        return records(self.file, self._member(name))

    def first(self, name: str) -> dict[str, Any]:
        """Give the only record of a file."""
        return next(self.records(name), {})

    def stream(self, name: str, name_of: Callable[[dict[str, Any]], str]) -> Stream:
        """Give the records of a file to whoever asks for them by name in their order."""
        return Stream(self.file, self._member(name), name_of)

    def _member(self, name: str) -> Member:
        if name not in self.members:
            raise Fault(name, "it is missing")
        return self.members[name]
