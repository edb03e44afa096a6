"""Whether a run is at work: its clock stops while every open call of it only waits."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from muster.domain.errors import StopRun
from muster.engine.clock import Stopwatch


class Activity:
    """Counts open calls and those of them that wait for a place, for money or for their next attempt."""

    def __init__(self, stopwatch: Stopwatch) -> None:
        self.stopwatch = stopwatch
        self._open = self._waiting = self._parked = 0

    def open_call(self) -> None:
        """Count a call that is under way."""
        self._open += 1
        self._update()

    def close_call(self) -> None:
        """Count a call that is over."""
        self._open -= 1
        self._update()

    def begin_wait(self) -> None:
        """Count an open call that only waits from now on."""
        self._waiting += 1
        self._update()

    def end_wait(self) -> None:
        """Count an open call that is at work again."""
        self._waiting -= 1
        self._update()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let an open call wait without using up the run's time."""
        self.begin_wait()
        try:
            yield
        finally:
            self.end_wait()

    def begin_park(self) -> None:
        """Count an open call that waits for a batch from now on."""
        self._parked += 1
        self.begin_wait()

    def end_park(self) -> None:
        """Count an open call that came back from a batch."""
        self._parked -= 1
        self.end_wait()

    @property
    def open(self) -> int:
        """How many calls are under way."""
        return self._open

    @property
    def all_parked(self) -> bool:
        """Return whether every call that is under way waits in a batch."""
        return self._parked > 0 and self._parked >= self._open

    def _update(self) -> None:
        if self._waiting and self._waiting >= self._open:
            self.stopwatch.pause()
        else:
            self.stopwatch.resume()


class Halt:
    """Refuses new work of one run once it has been told to stop; a held refusal waits for `release`."""

    __slots__ = ("_held", "_released", "error")

    def __init__(self) -> None:
        self.error: StopRun | None = None
        self._held: asyncio.Event | None = None
        self._released = False

    def tell(self, error: StopRun) -> None:
        """Let no new attempt, step or child start; the first error counts."""
        self.error = self.error or error

    def check(self) -> None:
        """Raise if the run has been told to stop."""
        if self.error is not None:
            raise self.error

    async def admit(self) -> None:
        """Raise if the run has been told to stop, as soon as its workload may learn of it."""
        if self.error is not None:
            await self.wait()
            raise self.error

    def hold(self) -> None:
        """Keep refusals back until `release`."""
        if self._held is None and not self._released:
            self._held = asyncio.Event()

    def release(self) -> None:
        """Let all refusals go, for good."""
        self._released = True
        if self._held is not None:
            self._held.set()

    async def wait(self) -> None:
        """Wait until refusals are no longer held."""
        if self._held is not None:
            await self._held.wait()
