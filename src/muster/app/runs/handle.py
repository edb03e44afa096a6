"""A run in the hand of a Python program: its events, its result and a way to cancel it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from copy import copy
from typing import Any, Generic

from muster.app.runs.actions import RunActions
from muster.domain.canonical import DataT_co
from muster.domain.entry import Event
from muster.domain.errors import Conflict, Overdraft, RecordedFailure, RunFailed
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL, Run, RunState
from muster.engine.values import PLAIN, ValueType
from muster.store.base import Store

GoesOn = Callable[[Run], Awaitable[bool]]


class RunHandle(Generic[DataT_co]):
    """Follows one run, whoever drives it; `driving` is set when this process does.

    Its result is JSON, or of the type that the workload declares if the run was started from its function.
    """

    def __init__(
        self,
        runs: RunActions,
        store: Store,
        run: RunId,
        driving: "asyncio.Task[Run] | None",
        sweep: Callable[[], Awaitable[object]],
        raised: Sequence[Exception] = (),
        *,
        shared: bool = False,
        goes_on: GoesOn | None = None,
    ) -> None:
        self._raised = raised  # by the workload, while it is driven here
        self._runs, self._store, self._sweep = runs, store, sweep
        self._type = PLAIN  # of its result
        self.id: RunId = run
        self._driving, self._shared = driving, shared
        self._goes_on = goes_on  # whether workers go on with it while it stands still

    async def run(self) -> Run:
        """Return the run as it is stored now."""
        return await self._runs.get(self.id)

    def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Return the events after a number as they come, until the run is over or stands still.

        One that was submitted stands still for no longer than workers are away: its events end with the run.
        """
        return follow(self._store, self.id, after, self._sweep, self._driving, self._goes_on)

    async def wait(self) -> Run:
        """Wait until the run is over or stands still."""
        if self._driving is not None:
            run = await self._driven(self._driving)
            if run is not None:
                return run
        async for _ in self.events((await self.run()).last_seq):
            pass
        return await self.run()

    async def _driven(self, driving: "asyncio.Task[Run]") -> Run | None:
        """Return the run as its driving left it; None when somebody else drives a run that is shared."""
        try:
            return await asyncio.shield(driving)
        except Conflict:
            run = await self.run()
            if run.state in TERMINAL:
                return run  # somebody was faster than this driver: canceled it, or drove it to its end
            if not self._shared or not run.is_driven:
                raise
            self._driving = None
            return None

    async def result(self) -> DataT_co:
        """Wait for the result; raises RunFailed when there is none, Overdraft with it when it exceeded a budget.

        The cause of RunFailed is what the workload raised here; of a run driven elsewhere it is what was recorded.
        """
        run = await self.wait()
        if run.state is RunState.COMPLETED:
            result: DataT_co = self._type.read(run.result, f"the result of run {run.id}")
            if run.ended_reason == Overdraft.code:
                raise Overdraft.of(run.error or {}, result)
            return result
        failed = RunFailed(run.id, str(run.state), run.ended_reason, run.error)
        recorded = None if run.error is None else RecordedFailure(run.error)
        raise failed from (self._raised[-1] if self._raised else recorded)

    async def cancel(self) -> None:
        """Ask for the run to be canceled and wait until it is."""
        await self._runs.cancel(self.id)
        await self.wait()


def returning(handle: RunHandle, result: ValueType) -> RunHandle[Any]:
    """Return the handle of the same run, which gives its result as a type."""
    typed = copy(handle)
    typed._type = result
    return typed


PAGE = 500
LOOK_SECONDS = 1.0


async def follow(
    store: Store,
    run: RunId,
    after: int,
    sweep: Callable[[], Awaitable[object]],
    driving: "asyncio.Task[Run] | None" = None,
    goes_on: GoesOn | None = None,
) -> AsyncIterator[Event]:
    """Yield every event after a number, in order, until the run is over or stands still and nobody `goes_on` with it.

    A run that this process is `driving` stands still only when that has ended: before it is claimed, it is stored as
    it was. When nothing is told for a while, `sweep` finds out whether the run's driver is still alive.
    """
    while True:
        seen = store.changes.commits
        under_way = driving if driving is not None and not driving.done() else None
        before = await store.runs.get(run)
        events = await store.events.read(run, after, PAGE)
        for event in events:
            after = event.seq
            yield event
        if events:
            continue
        # Read before the events: whatever was told before it came to rest has been given by now.
        if before is None or before.state in TERMINAL:
            return
        if under_way is None and _stands_still(before) and not (goes_on and await goes_on(before)):
            return
        if not await _changed(store, seen, under_way):
            await sweep()


async def _changed(store: Store, seen: int, driving: "asyncio.Task[Run] | None") -> bool:
    """Wait until something was written or the driving has ended; returns False when neither happens for a while."""
    if driving is None:
        return await store.changes.wait(LOOK_SECONDS, seen)
    change = asyncio.ensure_future(store.changes.wait(LOOK_SECONDS, seen))
    try:
        await asyncio.wait({change, driving}, return_when=asyncio.FIRST_COMPLETED)
        return driving.done() or change.result()
    finally:
        change.cancel()


def _stands_still(run: Run) -> bool:
    left = run.state is RunState.WAITING and run.lease.driver is None
    return left or run.state is RunState.INTERRUPTED
