"""Admission of a call: a place in its run and at the provider, and its turn while it waits for money."""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType

from muster.domain.budget import Level
from muster.domain.errors import MusterError
from muster.engine.base.clock import Activity, Clock
from muster.engine.calls.limiter import Limiter, Place, ahead
from muster.store.base import Changes

LOOK_SECONDS = 2.0


class BudgetQueue:
    """Queues of calls that do not fit under a cap while others hold reservations."""

    def __init__(self, changes: Changes, sweep: Callable[[], Awaitable[object]], clock: Clock) -> None:
        self._changes, self._clock = changes, clock
        self._sweep = sweep  # a dead process must not keep money reserved for ever
        self._queues: defaultdict[str, deque[asyncio.Future[None]]] = defaultdict(deque)
        self._waker: asyncio.Task[None] | None = None
        self._swept = clock.monotonic()

    async def queue_up(self, levels: Iterable[Level]) -> None:
        """Wait behind those who wait already; returns at once when there are none."""
        for level in levels:
            if self._queues and self._queues.get(level.id):
                await self._wait(level.id, first=False)

    @property
    def commits(self) -> int:
        """Return how many commits were told so far, to be taken before money is asked for."""
        return self._changes.commits

    async def wait(self, level: str, since: int) -> None:
        """Wait, at the head of the queue, until something was written since: money may have come back meanwhile."""
        if self._changes.commits == since:
            await self._wait(level, first=True)

    def wake_next(self, levels: Iterable[Level]) -> None:
        """Let the next one try: where one was served or turned away there may be room for another."""
        for level in levels:
            self._wake(level.id)

    async def _wait(self, level: str, *, first: bool) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue = self._queues[level]
        if first:
            queue.appendleft(waiter)
        else:
            queue.append(waiter)
        if self._waker is None or self._waker.done():
            self._waker = asyncio.get_running_loop().create_task(self._keep_waking())
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake(level)
            raise

    def _wake(self, level: str) -> None:
        queue = self._queues.get(level)
        while queue:
            waiter = queue.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _keep_waking(self) -> None:
        while any(self._queues.values()):
            await self._changes.wait(LOOK_SECONDS, self._changes.commits)
            if self._clock.monotonic() - self._swept >= LOOK_SECONDS:
                with contextlib.suppress(MusterError):  # whoever waits must be woken in any case
                    await self._sweep()
                self._swept = self._clock.monotonic()
            for level in list(self._queues):
                self._wake(level)
                if not self._queues[level]:
                    del self._queues[level]

    async def close(self) -> None:
        """Stop waking."""
        if self._waker is not None:
            self._waker.cancel()


class RunPlaces:
    """The places of one run: so many calls on the wire, and a few more that get ready."""

    def __init__(self, concurrency: int) -> None:
        self.ready = asyncio.Semaphore(concurrency + ahead(concurrency))
        self.wire = asyncio.Semaphore(concurrency)


class Admission:
    """Waits in line for money, for the run and for the provider; inside, a call gets ready, then acquires the wire."""

    def __init__(
        self,
        *,
        limiter: Limiter,
        tokens: int,
        places: RunPlaces,
        budget_queue: BudgetQueue,
        levels: tuple[Level, ...],
        activity: Activity,
        in_turn: bool,
    ) -> None:
        self._limiter, self._tokens = limiter, tokens
        self._places, self._budget_queue, self._levels = places, budget_queue, levels
        self._activity = activity
        self._in_turn = in_turn  # it has waited in the line for money already
        self._place = Place()
        self._on_wire = self._left = False

    async def __aenter__(self) -> "Admission":
        self._activity.begin_wait()
        try:
            if not self._in_turn:
                await self._budget_queue.queue_up(self._levels)
            await self._places.ready.acquire()
            try:
                if not self._limiter.gets_ahead:
                    await self._places.wire.acquire()
                    self._on_wire = True
                self._place = await self._limiter.enter(self._tokens)
            except BaseException:
                self._release()
                raise
        finally:
            self._activity.end_wait()
        return self

    async def acquire_wire(self) -> None:
        """Wait for the moment to go on the wire."""
        self._activity.begin_wait()
        try:
            if not self._on_wire:
                await self._places.wire.acquire()
                self._on_wire = True
            await self._limiter.acquire_wire(self._place)
        finally:
            self._activity.end_wait()

    def leave(self, outcome: object = None) -> None:
        """Release the places, with the outcome of the exchange for the limiter; may be called twice."""
        if self._left:
            return
        self._left = True
        self._release()
        self._place.outcome = outcome
        self._limiter.leave(self._place)

    def _release(self) -> None:
        if self._on_wire:
            self._places.wire.release()
        self._places.ready.release()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()
