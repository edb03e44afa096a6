"""Batches: found, fetched, watched, canceled and reconciled. `Muster.batches`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

from muster.app.base.backend import Backend
from muster.app.runs.options import require_limit, require_moment, require_reference, state_of
from muster.app.runs.planned_batches import PlannedBatches
from muster.domain.batch import OVER, UNDER_WAY, Batch, BatchState
from muster.domain.errors import BadArgument, BatchLost, BatchOpen, Conflict, MusterError, NotFound
from muster.domain.ids import BatchId, RunId
from muster.domain.run import TERMINAL, Driver, Run
from muster.statistics.batches import BatchStats, Durations, batch_stats

__all__ = ["BatchLook", "BatchStats", "Batches", "Durations", "OnLook", "Reconciled"]

LOOK_SECONDS = 0.25  # between two looks at a batch that is watched
MAX_BATCHES = 1000  # batches that are looked through


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """A batch whose create was unresolved, as it is now."""

    batch: Batch
    error: MusterError | None = None  # why it is still open


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLook:
    """A batch of which somebody begins to find out what became of it."""

    batch: Batch
    until: float  # seconds since 1970: a provider that does not answer is asked no longer
    holder: Driver | None = None  # another process that creates it, or looks for it


OnLook = Callable[[BatchLook], None]


class Batches:
    """The batches of an open Muster."""

    def __init__(self, backend: Backend) -> None:
        self._store, self._engine = backend.store, backend.engine
        self._planned = PlannedBatches(backend.store, backend.engine, backend.clock)

    async def find(self, reference: str) -> Batch:
        """Return the batch that an id, a unique beginning of one, the provider's id or `last` stands for."""
        require_reference(reference)
        if reference == "last":
            newest = await self.list(limit=1)
            if not newest:
                raise NotFound(
                    "this store has no batches yet", suggestions=("muster ask AGENT PROMPT --dispatch batch",)
                )
            return newest[0]
        found = await self._planned.corrected(await self._store.batches.match(reference))
        exact = [batch for batch in found if reference in (batch.id, batch.provider_id)]
        if exact or len(found) == 1:
            return (exact or found)[0]
        if found:
            ids = ", ".join(batch.id for batch in found[:5])
            raise BadArgument(f"{reference!r} matches {len(found)} batches: {ids}")
        raise NotFound(f"batch {reference!r} not found", suggestions=("muster batch list",), given=reference)

    async def list(
        self, states: Sequence[BatchState | str] = (), limit: int = 100, *, after: str | None = None
    ) -> Sequence[Batch]:
        """Return the newest batches; `after` is the id of the last batch of the page before."""
        require_limit(limit)
        last = None if after is None else await self.get(BatchId(after))
        before = None if last is None else (last.created_at, last.id)
        wanted = [state_of(BatchState, state) for state in states]
        return await self._planned.corrected(await self._store.batches.select(wanted, limit, before))

    async def get(self, batch: BatchId) -> Batch:
        """Read a batch anew."""
        found = await self._store.batches.get(batch)
        if found is None:
            raise NotFound(f"batch {batch} not found", given=batch)
        [corrected] = await self._planned.corrected([found])
        return corrected

    async def fetch(self, batch: Batch) -> Batch:
        """Wait for a batch and bring its results into the store; one that is over stays as it is.

        It is polled at once, whichever process waited for it before.
        """
        if batch.state not in OVER:
            await self._engine.batcher.fetch(batch.id, by_hand=True)
        return await self.get(batch.id)

    async def cancel(self, batch: Batch) -> Batch:
        """Have the provider stop a batch, and bring what it produced into the store."""
        if not await self._engine.batcher.cancel(batch.id):
            raise Conflict(f"batch {batch.id} is already {batch.state}; there is nothing to cancel")
        return await self.get(batch.id)

    async def reconcile(self, *, resubmit: bool = False, on_look: OnLook = lambda look: None) -> Sequence[Reconciled]:
        """Find out what became of batches whose create is unresolved, and of those that cannot be read any more.

        If told to, what cannot be found or read is given up. `on_look` hears of each batch when that begins.
        """
        unresolved = await self._store.batches.select((BatchState.SENT,), limit=MAX_BATCHES)
        found = [await self._reconcile(batch, resubmit, on_look) for batch in reversed(unresolved)]
        submitted = await self._store.batches.select((BatchState.RUNNING, BatchState.ENDED), limit=MAX_BATCHES)
        known = {each.batch.id for each in found}
        others = [batch for batch in reversed(submitted) if batch.id not in known]
        # Side by side: each may fetch its results again for a while.
        seen = await asyncio.gather(*(self._reconcile(batch, resubmit, on_look) for batch in others))
        return [*found, *(each for each in seen if each.error is not None or each.batch.state in OVER)]

    async def _reconcile(self, batch: Batch, resubmit: bool, on_look: OnLook) -> Reconciled:
        batcher = self._engine.batcher
        on_look(BatchLook(batch=batch, until=batcher.look_until, holder=batcher.holder(batch)))
        try:
            await self._find_out(batch, resubmit)
        except MusterError as error:
            return Reconciled(batch=await self.get(batch.id), error=error)
        return Reconciled(batch=await self.get(batch.id))

    async def _find_out(self, batch: Batch, resubmit: bool) -> None:
        try:
            if batch.state is BatchState.SENT:
                await self._engine.batcher.resolve(batch.id)
            else:
                await self._engine.batcher.look(batch.id)
        except (BatchOpen, BatchLost):
            if not resubmit:
                raise
            await self._engine.batcher.abandon(await self.get(batch.id))

    async def stats(self, since: float) -> BatchStats:
        """Return the figures of the batches that were planned since then."""
        return batch_stats(await self._store.batches.since(require_moment(since)))

    async def under_way(self) -> Sequence[Batch]:
        """Return the batches that are not over."""
        return await self._planned.corrected(await self._store.batches.select(UNDER_WAY, limit=MAX_BATCHES))

    async def stalled(self) -> Sequence[Batch]:
        """Return the batches that do not get on, the oldest first; the note of each says why."""
        return [
            batch
            for batch in await self._planned.corrected(await self._store.batches.stalled(MAX_BATCHES))
            if batch.stalled
        ]

    async def unclear(self) -> int:
        """Return how many batches there are for `reconcile` to find out about."""
        return len(await self.list((BatchState.SENT, BatchState.ENDED), limit=MAX_BATCHES))

    async def awaited_here(self) -> Sequence[Batch]:
        """Return the batches under way with calls of runs that this process drives, children too."""
        return [
            batch
            for batch in await self.under_way()
            if not self._engine.driving.isdisjoint(await self._store.batches.runs(batch.id))
        ]

    async def runs(self, batch: BatchId) -> Mapping[RunId, int]:
        """Return how many calls of which runs a batch holds."""
        return await self._store.batches.runs(batch)

    async def lines(self, reference: str) -> AsyncIterator[bytes]:
        """Return the results of a batch as the provider wrote them, in pieces."""
        found = await self.find(reference)
        async for line in self._store.batches.lines(found.id):
            yield line

    async def resumable(self, batch: BatchId) -> Sequence[RunId]:
        """Return the runs with calls in a batch that stand still; of a child, the run that it belongs to."""
        roots = [await self._root(run) for run in await self._store.batches.runs(batch)]
        return list(
            dict.fromkeys(
                run.id for run in roots if run is not None and run.state not in TERMINAL and not run.is_driven
            )
        )

    async def _root(self, name: RunId) -> Run | None:
        run = await self._store.runs.get(name)
        while run is not None and run.parent is not None:
            run = await self._store.runs.get(run.parent)
        return run

    async def watch(self, batch: Batch) -> AsyncIterator[Batch]:
        """Return a batch repeatedly until it has ended; it is fetched here when no other process drives a run of it."""
        fetching: asyncio.Task[Batch] | None = None
        try:
            while batch.state not in OVER:
                yield batch
                if fetching is None and not await self._is_driven(batch.id):
                    fetching = asyncio.ensure_future(self.fetch(batch))
                await _pause(fetching)
                batch = await self.get(batch.id)
            yield batch
        finally:
            if fetching is not None:
                fetching.cancel()

    async def _is_driven(self, batch: BatchId) -> bool:
        """Return whether a living process drives a run with calls in the batch."""
        await self._engine.sweep()
        found = [await self._store.runs.get(run) for run in await self._store.batches.runs(batch)]
        return any(run is not None and run.is_driven for run in found)


async def _pause(fetching: "asyncio.Task[Batch] | None") -> None:
    """Wait for the next look; raises what stopped the fetching."""
    if fetching is None:
        await asyncio.sleep(LOOK_SECONDS)
        return
    await asyncio.wait({fetching}, timeout=LOOK_SECONDS)
    if fetching.done():
        fetching.result()
