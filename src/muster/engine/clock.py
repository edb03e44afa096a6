"""Time as an argument, so that a test can stop it."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits; everything in the engine that waits, waits here."""

    def now(self) -> float:
        """Return the seconds since 1970."""

    def monotonic(self) -> float:
        """Return seconds that only ever go forward."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The time of this machine."""

    def now(self) -> float:
        """Return the seconds since 1970."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that only ever go forward."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class Stopwatch:
    """Counts seconds, except while it is paused."""

    def __init__(self, clock: Clock, elapsed: float = 0.0) -> None:
        self._clock = clock
        self._before = elapsed
        self._since: float | None = clock.monotonic()

    @property
    def elapsed(self) -> float:
        """The seconds counted so far."""
        return self._before + (0.0 if self._since is None else self._clock.monotonic() - self._since)

    def pause(self) -> None:
        """Stop counting."""
        self._before, self._since = self.elapsed, None

    def skip(self, seconds: float) -> None:
        """Do not count the last seconds."""
        self._before -= seconds

    def resume(self) -> None:
        """Go on counting."""
        if self._since is None:
            self._since = self._clock.monotonic()
