"""What is looked for again and again beside a queue: runs that are due, and runs that other programs want canceled."""

from collections.abc import Collection, Iterable, Sequence

from muster.domain.errors import Conflict, NotFound
from muster.domain.ids import RunId
from muster.domain.run import Run, RunState
from muster.engine.clock import Clock
from muster.engine.queue.base import QUEUES, FleetKeys, queue_of
from muster.store.base import Store

PAGE = 200  # runs that are due, and runs that wait, read at a time
MOST_DRIVEN = 1_000  # whose keys are looked up at a time
SWEEP_SECONDS = 1.0


class DueRuns:
    """The runs of some queues that wait for a worker: the oldest at every look, those behind them page after page."""

    def __init__(self, store: Store, queues: Iterable[str] = QUEUES) -> None:
        self._store, self._queues = store, frozenset(queues)
        self._after: Run | None = None  # the last run of the page that was read last

    async def look(self) -> Sequence[Run]:
        """Return the oldest, and the next page of the others."""
        workloads = [name for name in await self._store.queue.workloads() if queue_of(name) in self._queues]
        if not workloads:
            return ()
        oldest = await self._store.runs.submitted(PAGE, workloads)
        if len(oldest) < PAGE:
            return oldest
        page = await self._store.runs.submitted(PAGE, workloads, self._after or oldest[-1])
        self._after = page[-1] if len(page) == PAGE else None
        known = {run.id for run in oldest}
        return [*oldest, *(run for run in page if run.id not in known)]


class CancelKeys:
    """Cancels the runs that other programs name in keys, whoever drives them."""

    def __init__(self, keys: FleetKeys, store: Store, clock: Clock) -> None:
        self._keys, self._store, self._clock = keys, store, clock
        self._due, self._looked_at = DueRuns(store), float("-inf")

    async def look(self) -> None:
        """Look at runs that are driven, due or waiting, once a second; raises QueueFailed while no key can be read."""
        if self._clock.monotonic() - self._looked_at >= SWEEP_SECONDS:
            self._looked_at = self._clock.monotonic()
            await self.heed(await self._due.look())

    async def heed(self, due: Iterable[Run]) -> None:
        """Cancel what is named of these runs, of those that are driven, children too, and of those that wait."""
        driven = (await self._store.runs.driven())[:MOST_DRIVEN]
        waiting = await self._store.runs.select([RunState.WAITING], PAGE)  # for a person, and so not due
        wanted = {run.id for run in (*driven, *due, *waiting) if not run.cancel_requested}
        await self.heed_only(sorted(wanted))

    async def heed_only(self, runs: Collection[RunId]) -> None:
        """Cancel what is named of these runs."""
        for run in await self._keys.canceled(runs):
            try:
                await self._store.commands.cancel(run, self._clock.now())
            except (Conflict, NotFound):
                continue  # it is over, or was never here
