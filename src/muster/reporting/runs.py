"""A run that was summed up: what every report is, of whatever kind of work."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from io import StringIO
from typing import Generic, Protocol, TextIO, TypeVar

from muster.domain.run import Run


class RunSummary(Protocol):
    """What a run came to, by the rules of its kind."""

    @property
    def ok(self) -> bool:
        """Whether it is a success."""

    @property
    def verdict(self) -> str:
        """What it came to, in words."""


S = TypeVar("S", bound=RunSummary, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport(Generic[S]):
    """A run that was summed up, and what writes it."""

    run: Run
    summary: S
    formats: tuple[str, ...]
    write: Callable[[str, TextIO], Awaitable[None]]  # one of the formats, and where to

    @property
    def ok(self) -> bool:
        """Return whether it is a success."""
        return self.summary.ok

    async def text(self, name: str) -> str:
        """Return it in one of its formats."""
        out = StringIO()
        await self.write(name, out)
        return out.getvalue()
