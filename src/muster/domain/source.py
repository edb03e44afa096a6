"""The code that is verified: files as they are sent, and the chunks they are shown in."""

from dataclasses import dataclass

from muster.domain.redaction import Secret
from muster.domain.verification import LeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file as it is sent: its lines, without secrets."""

    path: str
    digest: str  # SHA-256 of the bytes on disk
    text: str
    redacted: int = 0  # secrets that were taken out
    note: str = ""  # what is odd about it
    secrets: tuple[Secret, ...] = ()  # where those that were taken out stood

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines, numbered from one; as editors and compilers count them."""
        return tuple(self.text.removesuffix("\n").split("\n")) if self.text else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """What is known of a file without its text."""

    path: str
    digest: str
    lines: int
    bytes: int
    redacted: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that was read before the first call, but for the texts."""

    files: tuple[FileInfo, ...]
    left_out: tuple[LeftOut, ...] = ()
    pages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Some lines of one file, in a row."""

    path: str
    first: int
    last: int
    of: int  # how many lines the file has


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """What is shown in one call."""

    name: str  # stands in keys: made from what is in it, so that the same files have the same name
    pieces: tuple[Piece, ...]
    text: str  # with line numbers; the same for every agent

    @property
    def lines(self) -> int:
        """How many lines are shown."""
        return sum(piece.last - piece.first + 1 for piece in self.pieces)
