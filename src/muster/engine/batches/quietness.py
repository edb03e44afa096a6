"""When to flush: a pure decision over one value, and the watch that counts what the value is made of.

It is time when it is quiet: something is parked, no batch call of this process is between journal and parking, no
results are being handed out, and nothing new came for the settle time. Or when a batch is full, or after the linger
time.
"""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from muster.engine.base.clock import Clock
from muster.engine.batches.base import Patience
from muster.engine.batches.parked_calls import Waiters

READY_TURNS = 10  # of the event loop: from a freed place to the call that takes it there are four


@dataclass(frozen=True, slots=True, kw_only=True)
class Quietness:
    """How the parked calls stand at one moment; all times are of the monotonic clock."""

    now: float
    changed_at: float  # when a call was last parked, stopped moving or came back
    busy: bool  # calls are on their way to be parked, or to come back from it
    oldest: float | None = None  # since when the oldest parked call waits; None: nothing is parked
    full: bool = False  # some batch would hold as many calls as it may

    def settled(self, patience: Patience) -> bool:
        """Return whether nothing moves, and nothing new came for the settle time."""
        return not self.busy and self.changed_at + patience.settle <= self.now

    def seconds_left(self, patience: Patience) -> float:
        """Return how long to wait before the next look; zero when it is time to flush."""
        if self.oldest is None:
            return math.inf
        if self.full:
            return 0.0
        lingering = self.oldest + patience.linger - self.now
        settling = math.inf if self.busy else self.changed_at + patience.settle - self.now
        return max(0.0, min(lingering, settling))


class QuietWatch:
    """Counts the batch calls of this process that move, and remembers when something last changed."""

    def __init__(self, waiters: Waiters, clock: Clock) -> None:
        self._waiters, self._clock = waiters, clock
        self._moving = 0
        self._changed_at = 0.0
        self._changed = asyncio.Event()

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Count a batch call that is on its way to be parked: nothing is flushed without it."""
        self._moving += 1
        try:
            yield
        finally:
            self._moving -= 1
            self.change()

    def change(self) -> None:
        """Note that something changed: the settle time begins anew."""
        self._changed_at = self._clock.monotonic()
        self._changed.set()

    def look(self, *, oldest: float | None = None, full: bool = False) -> Quietness:
        """Return how it stands now, with what is parked."""
        return Quietness(
            now=self._clock.monotonic(),
            changed_at=self._changed_at,
            busy=self._moving > 0 or self._waiters.being_answered,
            oldest=oldest,
            full=full,
        )

    async def wait(self, seconds: float) -> None:
        """Wait for the next change, at most so long."""
        self._changed.clear()
        change = asyncio.ensure_future(self._changed.wait())
        sleep = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({change, sleep}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            change.cancel()
            sleep.cancel()


async def let_ready_tasks_run() -> None:
    """Let the event loop turn a few times: after a pause of the whole process timers are due before any task ran."""
    for _ in range(READY_TURNS):
        await asyncio.sleep(0)
