"""Odd lines: what was strange about the results of a batch, counted and kept within bounds."""

from dataclasses import dataclass, field

MOST = 100  # lines that are kept
MOST_BYTES = 100_000  # of each


@dataclass(slots=True)
class Odd:
    """What was strange about the lines of one source."""

    unreadable: int = 0
    unknown: int = 0
    duplicates: int = 0
    cut: bool = False  # the connection broke before the end
    endless: int = 0  # bytes that were received when the rest was left unread
    answered: int = 0  # not strange: members with an answer
    failed: int = 0  # nor this: members that were not answered
    names: list[str] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)

    def keep(self, line: bytes, name: str | None = None) -> None:
        """Keep a line that belongs to no member."""
        self.unreadable += name is None
        self.unknown += name is not None
        if len(self.lines) < MOST:
            self.lines.append(line if len(line) <= MOST_BYTES else line[:MOST_BYTES] + b"\n")
            self.names += [] if name is None else [name[:80]]

    def __str__(self) -> str:
        shown = f" ({', '.join(self.names[:3])})" if self.names else ""
        return (
            f"{self.unreadable} lines of the results cannot be read, {self.unknown} have unknown ids{shown}, "
            f"{self.duplicates} came twice"
            + (
                f"; the rest after {self.endless} bytes was not read: no such results were asked for"
                if self.endless
                else ""
            )
        )

    def __bool__(self) -> bool:
        return bool(self.unreadable or self.unknown or self.duplicates or self.endless)
