"""A worker: takes queued runs out of the store and drives them, a few at a time."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from muster.domain.errors import AwaitsSignal, Conflict, MusterError, StoreFailed
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL, Run, RunState
from muster.engine.clock import Clock
from muster.engine.drive import Leave
from muster.engine.engine import Engine
from muster.store.base import QueueTurn, Store

LOOK_SECONDS = 2.0
REGISTER_SECONDS = 5.0
AGAIN_SECONDS = 300.0  # after which a run is taken up again that waits for a batch which could not be found or read


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """Whose runs, and runs of which workloads, have to wait because enough of them are driven."""

    clients: frozenset[str] = frozenset()
    workloads: frozenset[str] = frozenset()


class DriveCaps(Protocol):
    """How many runs may be driven beside each other. Asked by the worker whenever it has a place; decides purely."""

    def held(self, driven: Collection[Run], awaited: Run | None) -> HeldBack:
        """Return what has to wait; whatever competes with an `awaited` run, which was first, waits for it."""

    def fits(self, run: Run, driven: Collection[Run]) -> bool:
        """Return whether there is room for a run that does not have to wait."""


class NoCaps:
    """Any runs beside each other."""

    def held(self, driven: Collection[Run], awaited: Run | None) -> HeldBack:
        """Hold nothing back."""
        return HeldBack()

    def fits(self, run: Run, driven: Collection[Run]) -> bool:
        """Take every run."""
        return True


class Worker:
    """Drives what was submitted, clients in turn and the oldest of each first; goes on with runs whose driver died."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        clock: Clock,
        *,
        most: int,
        leaves_out: frozenset[str] = frozenset(),
        caps: DriveCaps | None = None,
        on_end: Callable[[Run], Awaitable[None]],
        on_error: Callable[[RunId, MusterError], None],
    ) -> None:
        self._store, self._engine, self._clock = store, engine, clock
        self._most, self._on_end, self._on_error = most, on_end, on_error
        self._leaves_out = leaves_out  # workloads that others drive
        self._caps: DriveCaps = caps or NoCaps()
        self._driven: dict[RunId, Run] = {}
        self._tasks: dict[RunId, asyncio.Task[None]] = {}
        self._left_alone: dict[RunId, float] = {}  # runs that were let go of, and when they are taken up again
        self._served = ""  # the client whose run was taken last
        self._awaited: Run | None = None  # whose turn it was, and for which there was not enough room
        self._closing = False
        self._registered_at = 0.0

    async def serve(self, *, until_idle: bool = False) -> None:
        """Take runs until closed; with `until_idle` only until nothing is left to take."""
        try:
            while not self._closing:
                await self._register()
                await self._engine.sweep()
                await self._take()
                if until_idle and not self._tasks and not self._engine.canceling_batches:
                    break
                await self._wait()
            await self._over()
        except asyncio.CancelledError:
            self.close()
            if self._tasks:
                await self._engine.let_go("the worker was told to stop", set(self._tasks.values()))
            raise
        await self._store.workers.dismiss(self._engine.driver)

    def close(self) -> None:
        """Take nothing new."""
        self._closing = True

    @property
    def driving(self) -> Collection[RunId]:
        """The runs that were taken and are not over yet, or not concluded."""
        return self._driven.keys()

    async def _register(self) -> None:
        """Register the worker from time to time: every write wakes whoever waits for one, this worker too."""
        now = self._clock.now()
        if now - self._registered_at >= REGISTER_SECONDS:
            self._registered_at = now
            await self._store.workers.register(self._engine.driver, now)

    async def _over(self) -> None:
        """Wait until everything that was taken is over."""
        if self._tasks:
            await asyncio.wait(set(self._tasks.values()))

    async def _wait(self) -> None:
        change = asyncio.ensure_future(self._store.changes.wait(LOOK_SECONDS))
        await asyncio.wait({change, *self._tasks.values()}, return_when=asyncio.FIRST_COMPLETED)
        change.cancel()

    async def _take(self) -> None:
        while len(self._tasks) < self._most and not self._closing:
            run = await self._next()
            if run is None:
                return
            self._served = _client_of(run)
            self._driven[run.id] = run
            self._tasks[run.id] = asyncio.get_running_loop().create_task(self._drive(run.id))

    async def _next(self) -> Run | None:
        """Return the run that is to be driven next; one that needs more room than there is has the next turn."""
        driven = self._driven.values()
        await self._look_after_awaited()
        if self._awaited is not None and self._caps.fits(self._awaited, driven):
            run, self._awaited = self._awaited, None
            return run
        found = await self._due()
        if found is None or self._caps.fits(found, driven):
            return found
        self._awaited = found
        return await self._due()

    async def _look_after_awaited(self) -> None:
        """Forget the run that was awaited when it is over, driven elsewhere, or its client has enough others."""
        if self._awaited is None:
            return
        run = await self._store.runs.get(self._awaited.id)
        gone = run is None or run.state in TERMINAL or run.lease.driver is not None
        full = self._caps.held(self._driven.values(), None).clients
        self._awaited = None if gone or run is None or _client_of(run) in full else run

    async def _due(self) -> Run | None:
        held = self._caps.held(self._driven.values(), self._awaited)
        workloads = [one for one in await self._store.queue.workloads() if self._knows(one)]
        allowed = tuple(one for one in workloads if one not in held.workloads)
        if not allowed:
            return None
        now = self._clock.monotonic()
        left = {run for run, until in self._left_alone.items() if until > now}
        turn = QueueTurn(
            workloads=allowed, after=self._served, full=held.clients, passed=frozenset(left | self._tasks.keys())
        )
        return await self._store.queue.next(turn)

    def _knows(self, workload: str) -> bool:
        return workload not in self._leaves_out and self._engine.knows(workload)

    async def _drive(self, run_id: RunId) -> None:
        try:
            run = await self._engine.drive(run_id, leave=Leave.FOR_SIGNALS)
            if run.state is RunState.WAITING and run.ended_reason != AwaitsSignal.code:
                self._left_alone[run_id] = self._clock.monotonic() + AGAIN_SECONDS
            await self._on_end(run)
        except Conflict:
            return  # another worker was faster
        except MusterError as error:
            # Trying it again would fail again, unless it was the store, which may work again soon.
            later = self._clock.monotonic() + REGISTER_SECONDS
            self._left_alone[run_id] = later if isinstance(error, StoreFailed) else math.inf
            self._on_error(run_id, error)
        finally:
            del self._tasks[run_id], self._driven[run_id]


def _client_of(run: Run) -> str:
    return run.request.client if run.request is not None else ""
