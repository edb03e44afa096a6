"""What a person does to batches: look, fetch, cancel, reconcile."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.domain.batch import OVER, UNDER_WAY, Batch, BatchState
from muster.domain.errors import BadArgument, BatchLost, BatchOpen, Conflict, MusterError, NotFound
from muster.domain.ids import BatchId
from muster.domain.run import Driver
from muster.engine.clock import Clock
from muster.engine.pool import Pool
from muster.store.base import Store

if TYPE_CHECKING:
    from muster.reports.batch_stats import BatchStats


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """A batch whose create was unresolved, as it is now."""

    batch: Batch
    error: MusterError | None = None  # why it is still open


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A batch that a process creates, or of which it finds out whether it was created."""

    batch: Batch
    by: Driver


OnHeld = Callable[[Held], None]


class BatchOffice:
    """The batches of an open Muster."""

    def __init__(self, store: Store, pool: Pool, clock: Clock) -> None:
        self._store, self._pool, self._clock = store, pool, clock

    async def find(self, reference: str) -> Batch:
        """Give the batch that an id, a unique beginning of one, the provider's id or `last` stands for."""
        if reference == "last":
            newest = await self._store.batches.select(limit=1)
            if not newest:
                raise NotFound(
                    "this store has no batches yet", suggestions=("muster ask AGENT PROMPT --dispatch batch",)
                )
            return newest[0]
        found = await self._store.batches.match(reference)
        exact = [batch for batch in found if reference in (batch.id, batch.provider_id)]
        if exact or len(found) == 1:
            return (exact or list(found))[0]
        if found:
            ids = ", ".join(batch.id for batch in found[:5])
            raise BadArgument(f"{reference!r} stands for {len(found)} batches: {ids}")
        raise NotFound(f"there is no batch {reference!r}", suggestions=("muster batch list",))

    async def list(self, states: Sequence[BatchState] = (), limit: int = 100) -> Sequence[Batch]:
        """Give the newest batches."""
        return await self._store.batches.select(states, limit)

    async def get(self, batch: BatchId) -> Batch:
        """Read a batch anew."""
        found = await self._store.batches.get(batch)
        if found is None:
            raise NotFound(f"there is no batch {batch}")
        return found

    async def fetch(self, batch: Batch) -> Batch:
        """Wait for a batch and bring its results into the store; one that is over stays as it is."""
        if batch.state not in OVER:
            await self._pool.fetch(batch.id)
        return await self.get(batch.id)

    async def cancel(self, batch: Batch) -> Batch:
        """Have the provider stop a batch, and bring what it produced into the store."""
        if not await self._pool.cancel(batch.id):
            raise Conflict(f"batch {batch.id} is {batch.state} already; there is nothing to cancel")
        return await self.get(batch.id)

    async def reconcile(self, *, resubmit: bool, on_held: OnHeld = lambda held: None) -> Sequence[Reconciled]:
        """Find out what became of batches whose create is unresolved, and of those that cannot be read any more.

        If told to, what cannot be found or read is given up. `on_held` hears of batches that another process is at.
        """
        unresolved = await self._store.batches.select((BatchState.SENT,), limit=1000)
        found = [await self._reconcile(batch, resubmit, on_held) for batch in reversed(unresolved)]
        submitted = await self._store.batches.select((BatchState.RUNNING, BatchState.ENDED), limit=1000)
        known = {each.batch.id for each in found}
        others = [batch for batch in reversed(submitted) if batch.id not in known]
        # Side by side: each may fetch its results again for a while.
        seen = await asyncio.gather(*(self._reconcile(batch, resubmit, on_held) for batch in others))
        return [*found, *(each for each in seen if each.error is not None or each.batch.state in OVER)]

    async def _reconcile(self, batch: Batch, resubmit: bool, on_held: OnHeld) -> Reconciled:
        holder = self._pool.holder(batch)
        if holder is not None:
            on_held(Held(batch=batch, by=holder))
        try:
            await self._find_out(batch, resubmit)
        except MusterError as error:
            return Reconciled(batch=await self.get(batch.id), error=error)
        return Reconciled(batch=await self.get(batch.id))

    async def _find_out(self, batch: Batch, resubmit: bool) -> None:
        try:
            if batch.state is BatchState.SENT:
                await self._pool.resolve(batch.id)
            else:
                await self._pool.look(batch.id)
        except (BatchOpen, BatchLost):
            if not resubmit:
                raise
            await self._pool.abandon(await self.get(batch.id))

    async def stats(self, since: float) -> "BatchStats":
        """Sum up the batches that were planned since then."""
        from muster.reports.batch_stats import batch_stats

        return batch_stats(await self._store.batches.since(since))

    async def under_way(self) -> Sequence[Batch]:
        """Give the batches that are not over."""
        return await self._store.batches.select(UNDER_WAY, limit=1000)
