"""A worker: takes queued runs out of the store and drives them, a few at a time."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection

from muster.domain.errors import AwaitsSignal, Conflict, MusterError
from muster.domain.ids import RunId
from muster.domain.run import Run, RunState
from muster.engine.clock import Clock
from muster.engine.drive import Leave
from muster.engine.engine import Engine
from muster.store.base import Store

LOOK_SECONDS = 2.0
REGISTER_SECONDS = 5.0
AGAIN_SECONDS = 300.0  # after which a run is taken up again that waits for a batch which could not be found or read


class Worker:
    """Drives what was submitted, oldest first; goes on with runs whose driver died."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        clock: Clock,
        *,
        most: int,
        leaves_out: frozenset[str] = frozenset(),
        admits: Callable[[Run, Collection[Run]], bool] = lambda run, driven: True,
        on_end: Callable[[Run], Awaitable[None]],
        on_error: Callable[[RunId, MusterError], None],
    ) -> None:
        self._store, self._engine, self._clock = store, engine, clock
        self._most, self._on_end, self._on_error = most, on_end, on_error
        self._leaves_out = leaves_out  # workloads that others drive
        self._admits = admits  # whether a run may be driven beside others; it is looked at again when one ends
        self._driven: dict[RunId, Run] = {}
        self._tasks: dict[RunId, asyncio.Task[None]] = {}
        self._left_alone: dict[RunId, float] = {}  # runs that were let go of, and when they are taken up again
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
        if len(self._tasks) >= self._most:
            return
        for run in await self._store.runs.submitted(limit=1000 + len(self._left_alone)):
            if len(self._tasks) < self._most and not self._closing and self._takes(run):
                self._driven[run.id] = run
                self._tasks[run.id] = asyncio.get_running_loop().create_task(self._drive(run.id))

    def _takes(self, run: Run) -> bool:
        due = self._left_alone.get(run.id, 0.0) <= self._clock.monotonic()
        ours = run.workload not in self._leaves_out and run.id not in self._tasks
        return due and ours and self._engine.knows(run.workload) and self._admits(run, self._driven.values())

    async def _drive(self, run_id: RunId) -> None:
        try:
            run = await self._engine.drive(run_id, leave=Leave.FOR_SIGNALS)
            if run.state is RunState.WAITING and run.ended_reason != AwaitsSignal.code:
                self._left_alone[run_id] = self._clock.monotonic() + AGAIN_SECONDS
            await self._on_end(run)
        except Conflict:
            return  # another worker was faster
        except MusterError as error:
            self._left_alone[run_id] = math.inf  # trying it again would fail again
            self._on_error(run_id, error)
        finally:
            del self._tasks[run_id], self._driven[run_id]
