"""How something that goes on is shown: as a bar on a terminal, by a line now and then, or not at all."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Protocol, Self, TypeVar

from muster.cli.terminal.output import CommonOptions, warn
from muster.cli.terminal.progress import ProgressState, line

T = TypeVar("T")

LOOK_SECONDS = 0.1
SECONDS_BETWEEN_LINES = 1.0
SECONDS_BETWEEN_SIGNS_OF_LIFE = 60.0


class Display(Protocol):
    """Shows one thing while it goes on; a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, state: ProgressState, *, last: bool = False) -> None:
        """Show how it stands."""

    def tell(self, text: str) -> None:
        """Print something in between."""


def display(common: CommonOptions, *, stays: bool = True) -> Display:
    """Choose the display for where we are; `stays` says whether a bar is left to be seen at the end."""
    if common.quiet:
        return SilentDisplay()
    if not sys.stderr.isatty():
        return LineDisplay()

    from muster.cli.terminal.bar import BarDisplay  # rich takes longer to load than a short command takes

    return BarDisplay(stays=stays)


async def shown(work: Awaitable[T], look: Callable[[], Awaitable[ProgressState]], display: Display) -> T:
    """Do some work and show how it stands until it is done."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.sleep(0)  # it begins before it is looked at
        while not working.done():
            display.show(await look())
            await asyncio.wait({working}, timeout=LOOK_SECONDS)
        return await working
    finally:
        working.cancel()


class SilentDisplay:
    """Shows nothing; what must be known is still told."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, state: ProgressState, *, last: bool = False) -> None:
        """Show nothing."""

    def tell(self, text: str) -> None:
        """Print something in between."""
        warn(text)


class MutedDisplay(SilentDisplay):
    """Says nothing at all."""

    def tell(self, text: str) -> None:
        """Print nothing."""


class LineDisplay(SilentDisplay):
    """Prints a line when something changed, at most one a second; and now and then a sign of life while it waits."""

    def __init__(self) -> None:
        self._printed: ProgressState | None = None
        self._printed_at = float("-inf")

    def show(self, state: ProgressState, *, last: bool = False) -> None:
        """Print how it stands, if it is time."""
        now = time.monotonic()
        begins_to_wait = bool(state.waits) and (self._printed is None or not self._printed.waits)
        due = last or begins_to_wait or now - self._printed_at >= SECONDS_BETWEEN_LINES
        alive = state.since is not None and now - self._printed_at >= SECONDS_BETWEEN_SIGNS_OF_LIFE
        begun = last or bool(state.done or state.total or state.waits)
        if (state != self._printed and due and begun) or alive:
            self._printed, self._printed_at = state, now
            warn(line(state, time.time()))
