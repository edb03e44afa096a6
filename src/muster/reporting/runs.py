"""A run that was summed up: what every report is, of whatever kind of work."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Generic, Protocol, TextIO, TypeVar, cast

from muster.domain.errors import BadArgument
from muster.domain.kind import WorkKind
from muster.domain.run import Run
from muster.reporting.files import Redacting
from muster.text.words import choice_error


class RunSummary(Protocol):
    """What a run came to, by the rules of its kind."""

    @property
    def ok(self) -> bool:
        """Return whether it is a success."""

    @property
    def verdict(self) -> str:
        """What it came to, in words."""


S = TypeVar("S", bound=RunSummary, covariant=True)
T = TypeVar("T", bound=RunSummary)
W = TypeVar("W")


Writer = Callable[[TextIO], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport(Generic[S]):
    """A run that was summed up, and what writes it."""

    run: Run
    summary: S
    writers: Mapping[str, Writer]  # by the names of their formats

    @property
    def ok(self) -> bool:
        """Return whether it is a success."""
        return self.summary.ok

    @property
    def formats(self) -> tuple[str, ...]:
        """Return the formats in which it can be written."""
        return tuple(self.writers)

    async def write(self, name: str, out: TextIO) -> None:
        """Write it in one of its formats to an open file, without secrets that can be told by their look."""
        if name not in self.writers:
            raise BadArgument(choice_error(self.formats, name), argument="the format of a report")
        await self.writers[name](cast(TextIO, Redacting(out)))

    async def text(self, name: str) -> str:
        """Return it in one of its formats."""
        out = StringIO()
        await self.write(name, out)
        return out.getvalue()


def by_format(kind: WorkKind, *writers: W) -> Mapping[str, W]:
    """Return writers by the formats that a kind names for its reports, which stand in the same order."""
    formats = () if kind.report is None else kind.report.formats
    return dict(zip(formats, writers, strict=True))


def text_report(run: Run, summary: T, writers: Mapping[str, Callable[[T], str]]) -> RunReport[T]:
    """Return a report whose writers return the text of a summary."""
    return RunReport(run=run, summary=summary, writers={name: _writing(one, summary) for name, one in writers.items()})


def _writing(text_of: Callable[[T], str], summary: T) -> Writer:
    async def write(out: TextIO) -> None:
        out.write(text_of(summary))

    return write
