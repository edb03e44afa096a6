"""Child runs that other workers may drive: announced like any run, and driven by the parent's process if nobody does.

To its parent a shared child is a drive like any other; `SharedChild` waits for its end in the store.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from muster.domain.dispatch import Mode
from muster.domain.errors import AwaitsSignal, Conflict, Interrupted, LeaseLost, QueueFailed, StopRun, StoreFailed
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL, Run, RunState
from muster.engine.base.clock import Clock
from muster.engine.queue.base import LazyQueue, queue_of
from muster.store.base import Store

CLAIM_SECONDS = 1.0  # that other workers have to take a child before its parent's process does
LOOK_SECONDS = 1.0
REST_SECONDS = 0.05  # between two looks, however much is written

_LEFT_TO_OTHERS = (Interrupted, LeaseLost, StoreFailed)  # stops after which the parent is taken up again


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSharing:
    """Which child runs are offered to other workers, and how."""

    queue: LazyQueue
    workloads: frozenset[str]

    async def announce(self, child: Run) -> None:
        """Tell workers of a child; raises QueueFailed when they cannot be told."""
        await self.queue.get().announce(child)

    def covers(self, parent: Run, child: Run) -> bool:
        """Return whether a child may be driven elsewhere: of a submitted run, with live calls.

        Calls in batches stay in one process, so that those that wait at the same time go into one batch.
        """
        return parent.submitted and child.workload in self.workloads and child.dispatch.mode is not Mode.BATCH


class ParentDrive(Protocol):
    """What a shared child needs of the drive that it is part of."""

    @property
    def stopping(self) -> bool:
        """Return whether it was told to stop, rather than has ended."""

    def drives(self, run: RunId) -> bool:
        """Return whether a child is driven here under it, which then answers for itself."""


class SharedChild:
    """Waits for a child that any worker may drive; drives it here when none does, or when it only waits for signals."""

    # What a parent asks of the drives of its children. A child that is driven here answers for itself.
    awaits_shortly = any_parked = False

    def __init__(
        self,
        child: Run,
        parent: ParentDrive,
        *,
        store: Store,
        clock: Clock,
        announce: Callable[[Run], Awaitable[None]] | None,
        served: Callable[[], Awaitable[Collection[str]]],
        is_abandoned: Callable[[Run], bool],
        drive_here: Callable[[Run], Awaitable[Run]],
    ) -> None:
        self._child, self._parent, self._store, self._clock = child, parent, store, clock
        self._announce, self._served = announce, served  # None: it is not offered to anybody
        self._is_abandoned, self._drive_here = is_abandoned, drive_here
        self._stop: StopRun | None = None
        self._stopped = asyncio.Event()
        self._announced: tuple[int, float] | None = None  # for which epoch, and when
        self._here = False
        self.over = asyncio.Event()

    @property
    def all_parked(self) -> bool:
        """Return False while another worker may be at work on it, or this one is about to claim it."""
        return self._here and self._parent.drives(self._child.id)

    @property
    def handed_in(self) -> bool:
        """Return False while another worker may be at work on it, or this one is about to claim it."""
        return self.all_parked

    def stop(self, error: StopRun, *, now: bool) -> None:
        """Wait no longer; the child ends with a parent that ends, and goes on for one that is taken up again."""
        self._stop = self._stop or error
        self._stopped.set()

    async def to_end(self) -> Run:
        """Return the child when it is over; raises what this was told to stop with."""
        try:
            return await self._to_end()
        finally:
            self.over.set()

    async def _to_end(self) -> Run:
        while True:
            seen = self._store.changes.commits
            run = await self._store.runs.get(self._child.id) or self._child
            if run.state in TERMINAL:
                return run
            if self._stop is not None:
                await self._leave()
                raise self._stop
            if await self._is_ours(run):
                self._here = True
                with contextlib.suppress(Conflict):  # a worker was faster
                    return await self._drive_here(run)
                self._here = False
            await self._wait(seen)

    async def _is_ours(self, run: Run) -> bool:
        """Return whether the child is to be driven here; announces it while others may still take it."""
        if run.lease.driver is not None and not self._is_abandoned(run):
            return False
        if run.state is RunState.WAITING and run.ended_reason == AwaitsSignal.code:
            return True  # here it lets go of its process together with its parent
        if self._announce is None or queue_of(run.workload) not in await self._served():
            return True
        now = self._clock.monotonic()
        if self._announced is None or self._announced[0] != run.lease.epoch:
            self._announced = (run.lease.epoch, now)
            try:
                await self._announce(run)
            except QueueFailed:
                return True
        return now - self._announced[1] >= CLAIM_SECONDS

    async def _leave(self) -> None:
        if self._parent.stopping and isinstance(self._stop, _LEFT_TO_OTHERS):
            return
        with contextlib.suppress(Conflict):  # it is over
            await self._store.runs.cancel(self._child.id, self._clock.now())

    async def _wait(self, seen: int) -> None:
        """Wait until something was written since, or this was told to stop."""
        stopped = asyncio.ensure_future(self._stopped.wait())
        change = asyncio.ensure_future(self._changed(seen))
        await asyncio.wait({stopped, change}, return_when=asyncio.FIRST_COMPLETED)
        for task in (stopped, change):
            task.cancel()

    async def _changed(self, seen: int) -> None:
        await self._store.changes.wait(LOOK_SECONDS, seen)
        await asyncio.sleep(REST_SECONDS)
