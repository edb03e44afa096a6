"""How far something is: a bar on a terminal, now and then a line elsewhere, nothing when quiet."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Protocol, Self, TypeVar

from muster.cli.manner import Manner
from muster.cli.sights import Sight
from muster.cli.spans import span
from muster.cli.speech import warn

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

    def show(self, sight: Sight, *, last: bool = False) -> None:
        """Show how it stands."""

    def tell(self, text: str) -> None:
        """Say something in between."""


def display(manner: Manner, *, stays: bool = True) -> Display:
    """Choose the display for where we are; `stays` says whether a bar is left to be seen at the end."""
    if manner.quiet:
        return Silence()
    if not sys.stderr.isatty():
        return Lines()
    from muster.cli.bar import Bar

    return Bar(stays=stays)


async def shown(work: Awaitable[T], look: Callable[[], Awaitable[Sight]], display: Display) -> T:
    """Do some work and show how it stands until it is done."""
    working = asyncio.ensure_future(work)
    try:
        while not working.done():
            display.show(await look())
            await asyncio.wait({working}, timeout=LOOK_SECONDS)
        return await working
    finally:
        working.cancel()


class Silence:
    """Shows nothing; what must be known is still told."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, sight: Sight, *, last: bool = False) -> None:
        """Show nothing."""

    def tell(self, text: str) -> None:
        """Say something in between."""
        warn(text)


class Hush(Silence):
    """Says nothing at all."""

    def tell(self, text: str) -> None:
        """Say nothing."""


class Lines(Silence):
    """Prints a line when something changed, at most one a second; and now and then a sign of life while it waits."""

    def __init__(self) -> None:
        self._printed: Sight | None = None
        self._printed_at = float("-inf")

    def show(self, sight: Sight, *, last: bool = False) -> None:
        """Print how it stands, if it is time."""
        now = time.monotonic()
        begins_to_wait = bool(sight.waits) and (self._printed is None or not self._printed.waits)
        due = last or begins_to_wait or now - self._printed_at >= SECONDS_BETWEEN_LINES
        alive = sight.since is not None and now - self._printed_at >= SECONDS_BETWEEN_SIGNS_OF_LIFE
        begun = last or bool(sight.done or sight.total or sight.waits)
        if (sight != self._printed and due and begun) or alive:
            self._printed, self._printed_at = sight, now
            warn(line(sight, time.time()))


def line(sight: Sight, now: float) -> str:
    """Put a sight on one line."""
    count = "" if sight.total is None else f"{sight.done:,} of {sight.total:,} {sight.unit} done, "
    waits = f"; {sight.waits}" if sight.waits else ""
    return f"{sight.title}: {count}{sight.words}{waits}{age(sight, now)}"


def age(sight: Sight, now: float) -> str:
    """Say in brackets since when it goes on."""
    return "" if sight.since is None else f" ({span(now - sight.since)})"
