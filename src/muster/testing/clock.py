"""A clock that stands still until it is told to go on."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from itertools import count
from math import inf
from typing import TypeVar

from muster.engine.base.clock import TICK

T = TypeVar("T")
QUIET_SECONDS = 0.02  # of real time, in which nobody goes to sleep: then everybody is taken to be asleep
STUCK_SECONDS = 1.0  # of real time, after which what is at work is taken to wait for nothing but the time


class FakeClock:
    """Time that a test moves; whoever sleeps wakes when the time has come."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None], bool]] = []  # the last: for ever, again and again
        self._arrival = asyncio.Event()
        self.slept: list[float] = []

    def now(self) -> float:
        """Return the seconds since 1970."""
        return self._now

    def monotonic(self) -> float:
        """Return seconds that only ever go forward."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Wait until the time was moved far enough."""
        self.slept.append(seconds)
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.current_task()
        again = task is not None and task.get_name() == TICK
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), waiter, again))
        self._arrival.set()
        await waiter

    def advance(self, seconds: float) -> None:
        """Move the time forward and wake whoever's time has come."""
        self._now += seconds
        while self._sleepers and self._sleepers[0][0] <= self._now:
            waiter = heapq.heappop(self._sleepers)[2]
            if not waiter.done():
                waiter.set_result(None)

    async def someone_sleeps(self, at_least: float = 0.0) -> float:
        """Wait until somebody sleeps at least so long, and say for how long."""
        while True:
            for wakes_at, _, waiter, _ in sorted(self._sleepers):
                if not waiter.done() and wakes_at - self._now >= at_least:
                    return wakes_at - self._now
            self._arrival.clear()
            await self._arrival.wait()

    async def passing(
        self, work: Awaitable[T], *, may_pass: Callable[[], bool] = lambda: True, stuck: float = inf
    ) -> T:
        """Return what is awaited; whenever nothing happens, the time passes until the next sleeper wakes.

        Heartbeats of runs are not waited for while others sleep. Where it is known what happens elsewhere, `may_pass`
        keeps the time from passing meanwhile, for at most `stuck` seconds of real time.
        """
        task = asyncio.ensure_future(work)
        try:
            quiet = 0.0
            while not task.done():
                before = len(self.slept)
                await asyncio.wait({task}, timeout=QUIET_SECONDS)
                quiet = quiet + QUIET_SECONDS if len(self.slept) == before else 0.0
                if not task.done() and quiet and (may_pass() or quiet >= stuck):
                    self._pass()
                    quiet = 0.0
            return task.result()
        finally:
            task.cancel()

    def _pass(self) -> None:
        """Move the time to where the next sleeper wakes."""
        asleep = [(again, wakes) for wakes, _, waiter, again in self._sleepers if not waiter.done()]
        if asleep:
            _, wakes = min(asleep)
            self.advance(max(0.0, wakes - self._now))
