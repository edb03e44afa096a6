"""What is looked for again and again beside a queue: runs that are due, and runs that other programs want canceled."""

from collections.abc import Collection, Iterable

from muster.domain.errors import Conflict, NotFound
from muster.domain.ids import RunId
from muster.engine.base.clock import Clock
from muster.engine.queue.base import QUEUES, FleetKeys, queue_of
from muster.store.base import Store, UnfinishedRuns

PAGE = 200  # runs that are due, and runs that wait, read at a time
MAX_DRIVEN = 1_000  # whose keys are looked up at a time
SWEEP_SECONDS = 1.0
QUIET_SECONDS = 5.0  # between two looks into the store while nothing is due or driven, and nothing was told


class FleetRuns:
    """The runs that a fleet has before it, due ones only of some queues; read again when they may have changed."""

    def __init__(self, store: Store, clock: Clock, queues: Iterable[str] = QUEUES) -> None:
        self._store, self._clock, self._queues = store, clock, frozenset(queues)
        self._seen, self._read_at = UnfinishedRuns(), float("-inf")
        self._offered = False

    async def look(self, *, offered: bool) -> UnfinishedRuns:
        """Return the runs that are not over; `offered` says that one may have become due since the last look."""
        self._offered = self._offered or offered
        busy = self._offered or self._seen.due or self._seen.driven
        if self._clock.monotonic() - self._read_at >= (SWEEP_SECONDS if busy else QUIET_SECONDS):
            self._offered, self._read_at = False, self._clock.monotonic()
            self._seen = await self._store.queue.unfinished(self._is_ours, PAGE, self._seen.after)
        return self._seen

    def forget(self) -> None:
        """Read them again at the next look."""
        self._read_at = float("-inf")

    def _is_ours(self, workload: str) -> bool:
        return queue_of(workload) in self._queues


class CancelKeys:
    """Cancels the runs of a fleet that other programs name in keys, whoever drives them."""

    def __init__(self, keys: FleetKeys, store: Store, clock: Clock, runs: FleetRuns) -> None:
        self._keys, self._store, self._clock, self._runs = keys, store, clock, runs
        self._looked_at = float("-inf")

    async def look(self, *, offered: bool) -> UnfinishedRuns:
        """Return the runs that are not over, their keys heeded once a second; raises QueueFailed.

        `offered` says that a run may have become due since the last look.
        """
        runs = await self._runs.look(offered=offered)
        if self._clock.monotonic() - self._looked_at >= SWEEP_SECONDS:
            self._looked_at = self._clock.monotonic()
            unfinished = (*runs.driven[:MAX_DRIVEN], *runs.due, *runs.waiting)
            if await self.heed(sorted({run.id for run in unfinished if not run.cancel_requested})):
                self._runs.forget()
        return runs

    async def heed(self, runs: Collection[RunId]) -> bool:
        """Cancel what is named of these runs; return whether any is."""
        named = await self._keys.canceled(runs)
        for run in named:
            try:
                await self._store.runs.cancel(run, self._clock.now())
            except (Conflict, NotFound):
                continue  # it is over, or was never here
        return bool(named)
