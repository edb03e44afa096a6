"""What is wrong with a file, and where: the one shape in which all readers of this room tell it."""

from dataclasses import dataclass

from muster.domain.errors import BadFile

MOST_FLAWS = 100  # of one file; whoever has more mends these first
BREAKING = frozenset({"broken-check", "empty-check"})  # codes of doubts about a check that can never pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """One thing that is wrong, or in lint: doubtful."""

    file: str
    message: str
    line: int | None = None
    column: int | None = None  # of what is wrong with the notation
    case: str = ""
    code: str = ""  # of what is only doubtful: what kind of finding it is

    @property
    def doubtful(self) -> bool:
        """Whether the suite can be run all the same."""
        return bool(self.code)

    @property
    def breaking(self) -> bool:
        """Whether the case that it is about can only be an error."""
        return not self.code or self.code in BREAKING

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return ": ".join(part for part in (place, self.case, self.message) if part)

    def error(self) -> BadFile:
        """Give it as the error that ends a command."""
        words = ": ".join(part for part in (self.case, self.message) if part)
        error = BadFile(self.file, words, line=self.line, column=self.column)
        error.suggestions = (f"muster validate {self.file} shows all that is wrong",)
        return error


class Unreadable(Exception):
    """A file cannot be read any further; who called for it knows its name."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column
