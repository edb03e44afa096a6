"""A run in the hand of a Python program: its events, its result, and a way to cancel it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

from muster.domain.canonical import Json
from muster.domain.errors import Conflict, Overdraft, RunFailed
from muster.domain.event import Event
from muster.domain.ids import RunId
from muster.domain.run import Run, RunState
from muster.engine.bus import follow
from muster.store.base import Store

if TYPE_CHECKING:
    from muster.app.runs import Runs


class RunHandle:
    """Follows one run, whoever drives it; `driving` is set when this process does."""

    def __init__(
        self,
        runs: "Runs",
        store: Store,
        run: RunId,
        driving: "asyncio.Task[Run] | None",
        sweep: Callable[[], Awaitable[object]],
    ) -> None:
        self._runs, self._store, self._sweep = runs, store, sweep
        self.id = run
        self._driving = driving

    async def run(self) -> Run:
        """Return the run as it is stored now."""
        return await self._runs.get(self.id)

    def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Give the events after a number as they come, until the run is over or stands still."""
        return follow(self._store, self.id, after, self._sweep)

    async def wait(self) -> Run:
        """Wait until the run is over or stands still."""
        if self._driving is not None:
            return await self._driven(self._driving)
        async for _ in self.events((await self.run()).last_seq):
            pass
        return await self.run()

    async def _driven(self, driving: "asyncio.Task[Run]") -> Run:
        try:
            return await asyncio.shield(driving)
        except Conflict:
            run = await self.run()
            if run.state is RunState.CANCELED:
                return run  # somebody was faster than the driver
            raise

    async def result(self) -> Json:
        """Wait for the result; raises RunFailed when there is none, Overdraft with it when it exceeded a budget."""
        run = await self.wait()
        if run.state is RunState.COMPLETED and run.ended_reason != Overdraft.code:
            return run.result
        if run.state is RunState.COMPLETED:
            raise Overdraft.of(run.error or {}, run.result)
        raise RunFailed(run.id, str(run.state), run.ended_reason, run.error)

    async def cancel(self) -> None:
        """Ask for the run to be canceled and wait until it is."""
        await self._runs.cancel(self.id)
        await self.wait()
