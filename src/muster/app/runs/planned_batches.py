"""Planned batches as they stand: what was stored of one holds only as long as a process is about to send it.

A process that dies leaves behind that its batch waits for another, or is tried again. Whoever shows batches compares
that with the runs that are being executed and with the other batch.
"""

from collections.abc import Collection, Iterable

from muster.domain.batch import Batch, BatchState, unattended, without_past_wait
from muster.domain.ids import RunId
from muster.engine.base.clock import Clock
from muster.engine.engine import Engine
from muster.store.base import Store


class PlannedBatches:
    """Corrects what is stored of planned batches; all others are told as they are stored."""

    def __init__(self, store: Store, engine: Engine, clock: Clock) -> None:
        self._store, self._engine, self._clock = store, engine, clock

    async def corrected(self, batches: Iterable[Batch]) -> list[Batch]:
        """Return batches as they stand, in the same order."""
        found = list(batches)
        if not any(batch.state is BatchState.PLANNED for batch in found):  # nearly always
            return found
        driven = {run.id for run in await self._store.runs.driven() if not self._engine.is_abandoned(run)}
        return [await self._correct(batch, driven) for batch in found]

    async def _correct(self, batch: Batch, driven: Collection[RunId]) -> Batch:
        if batch.state is not BatchState.PLANNED:
            return batch
        runs = await self._store.batches.runs(batch.id)
        if runs.keys().isdisjoint(driven) and not self._engine.follows(batch.id):
            return unattended(batch)
        if batch.waits_for is None:
            return batch
        return without_past_wait(batch, await self._store.batches.get(batch.waits_for), self._clock.now())
