"""Time as an argument, so that a test can stop it; and the time of a run, which stops while its calls only wait."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from muster.domain.errors import StopRun


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


class StoreClock(SystemClock):
    """The time of a store, on which all processes that share it agree; waits by this machine's clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self._now()


class Stopwatch:
    """Counts seconds, except while it is paused."""

    def __init__(self, clock: Clock, elapsed: float = 0.0) -> None:
        self._clock = clock
        self._before = elapsed
        self._since: float | None = clock.monotonic()
        self._counts = asyncio.Event()
        self._counts.set()

    @property
    def elapsed(self) -> float:
        """The seconds counted so far."""
        return self._before + (0.0 if self._since is None else self._clock.monotonic() - self._since)

    def pause(self) -> None:
        """Stop counting."""
        self._before, self._since = self.elapsed, None
        self._counts.clear()

    def skip(self, seconds: float) -> None:
        """Do not count the last seconds."""
        self._before -= seconds

    def resume(self) -> None:
        """Go on counting."""
        if self._since is None:
            self._since = self._clock.monotonic()
            self._counts.set()

    async def counting(self) -> None:
        """Wait until it is not paused."""
        await self._counts.wait()


class Activity:
    """Counts what is under way, and what of it waits: for a place, for money, for its next attempt, for a signal."""

    def __init__(self, stopwatch: Stopwatch) -> None:
        self.stopwatch = stopwatch
        self._open = self._waiting = self._parked = self._receiving = 0

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

    @contextmanager
    def awaiting(self) -> Iterator[None]:
        """Let an open call wait for a signal, which uses up none of the run's time."""
        self._receiving += 1
        self.begin_wait()
        try:
            yield
        finally:
            self._receiving -= 1
            self.end_wait()

    @contextmanager
    def working(self, identity: str = "") -> Iterator["StepActivity"]:
        """Count a step that is at work, except while it waits for calls of its own, which count by themselves."""
        self.open_call()
        step = StepActivity(self, identity)
        try:
            yield step
        finally:
            self.close_call()

    @property
    def open(self) -> int:
        """How many calls are under way."""
        return self._open

    @property
    def parked(self) -> int:
        """How many calls wait in batches."""
        return self._parked

    @property
    def only_waits(self) -> bool:
        """Return whether something is under way, and all of it only waits."""
        return self._waiting > 0 and self._waiting >= self._open

    @property
    def all_parked(self) -> bool:
        """Return whether everything that is under way waits in a batch or for a signal."""
        waiting = self._parked + self._receiving
        return waiting > 0 and waiting >= self._open

    def _update(self) -> None:
        if self.only_waits:
            self.stopwatch.pause()
        else:
            self.stopwatch.resume()


class StepActivity:
    """A step at work, and how many calls it waits for."""

    def __init__(self, activity: Activity, identity: str) -> None:
        self._activity = activity
        self._calls = 0
        self.identity = identity  # of the step, in its run and all runs that go on with it
        self.stopped: StopRun | None = None  # what stops the run, raised to what the step does

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Count only the call, not the step that waits for it."""
        if self._calls == 0:
            self._activity.close_call()
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            if self._calls == 0:
                self._activity.open_call()


STEP: ContextVar[StepActivity | None] = ContextVar("step", default=None)  # in which the workload does something


TURNS = 10  # of the loop: an answer that waits in its socket is read and settled within them


async def turns() -> None:
    """Let everything that is ready go on."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


TICK = "tick"  # the name of tasks that sleep only to be woken again and again


class Ticks:
    """Wakes all who wait at the same moment, every so many seconds while somebody waits.

    What they write then goes into one transaction.
    """

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self._next: asyncio.Task[None] | None = None
        self._waiting = 0

    async def wait(self) -> None:
        """Wait for the next moment, which comes after so many seconds at the latest."""
        tick = self._next
        if tick is None or tick.done():
            tick = self._next = asyncio.get_running_loop().create_task(self._clock.sleep(self._seconds), name=TICK)
        self._waiting += 1
        try:
            await asyncio.shield(tick)
        finally:
            self._waiting -= 1
            if self._waiting == 0 and self._next is not None:
                self._next.cancel()
                self._next = None
