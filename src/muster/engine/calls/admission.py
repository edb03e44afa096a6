"""Admission of a call: a place in its run and at the provider, and its turn while it waits for money."""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType

from muster.domain.budget import Level
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

    def turn(self) -> "BudgetTurn":
        """Return the turn of an attempt, which must be ended."""
        return BudgetTurn(self)

    @property
    def has_waiting(self) -> bool:
        """Return whether anybody may wait for money."""
        return bool(self._queues)

    def is_queued(self, level: str) -> bool:
        """Return whether somebody waits for money of a level."""
        return bool(self._queues) and bool(self._queues.get(level))

    @property
    def commits(self) -> int:
        """Return how many commits were told so far, to be taken before money is asked for."""
        return self._changes.commits

    async def wait(self, level: str, *, first: bool) -> None:
        """Wait in the queue of a level, at its head or its end."""
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
                self.wake(level)
            raise

    def wake(self, level: str) -> None:
        """Let the next one of a level try."""
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
                with contextlib.suppress(Exception):  # whoever waits must be woken in any case
                    await self._sweep()
                self._swept = self._clock.monotonic()
            for level in list(self._queues):
                self.wake(level)
                if not self._queues[level]:
                    del self._queues[level]

    async def close(self) -> None:
        """Stop waking."""
        if self._waker is not None:
            self._waker.cancel()


class BudgetTurn:
    """The turn of one attempt to reserve money; a wake-up that it got and did not use goes on to the next in line."""

    __slots__ = ("_queue", "_waited", "_woken")

    def __init__(self, queue: BudgetQueue) -> None:
        self._queue = queue
        self._waited = False
        self._woken: set[str] | None = None  # levels whose next in line has to be woken; most attempts never wait

    async def queue_up(self, levels: Iterable[Level]) -> None:
        """Wait behind those who wait already; returns at once when there are none, or when it has waited before."""
        if not self._waited:
            for level in levels:
                if self._queue.is_queued(level.id):
                    await self._wait(level.id, first=False)

    async def wait(self, level: str, since: int) -> None:
        """Wait, at the head of the queue, until something was written since: money may have come back meanwhile."""
        self._waited = True
        if self._queue.commits == since:
            await self._wait(level, first=True)

    def end(self, levels: Iterable[Level] = ()) -> None:
        """Let the next one try: where one was served or turned away there may be room for another."""
        if self._woken is None and not self._queue.has_waiting:
            return
        woken, self._woken = self._woken, None
        for level in {*(woken or ()), *(level.id for level in levels)}:
            self._queue.wake(level)

    async def _wait(self, level: str, *, first: bool) -> None:
        if self._woken is not None:
            self._woken.discard(level)  # it stays before the others there, and has no use for the rest while it waits
            self.end()
        await self._queue.wait(level, first=first)
        self._woken = {level}


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
        turn: BudgetTurn,
        levels: tuple[Level, ...],
        activity: Activity,
    ) -> None:
        self._limiter, self._tokens = limiter, tokens
        self._places, self._turn, self._levels = places, turn, levels
        self._activity = activity
        self._place = Place()
        self._on_wire = self._left = False

    async def __aenter__(self) -> "Admission":
        self._activity.begin_wait()
        try:
            await self._turn.queue_up(self._levels)
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
