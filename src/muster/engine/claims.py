"""Claims on batches: one process at a time creates a batch, or finds out whether it was created.

A claim has an epoch, which every write under it carries, and a lease, which is renewed while the work goes on. The
claim of a process that died, froze or gave up ends, and whoever takes it over makes the older writes fail.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from muster.domain.batch import Batch, BatchState
from muster.domain.errors import Conflict
from muster.domain.run import Driver
from muster.engine.tools import Tools
from muster.store.base import Advance, BatchClaim

LEASE_SECONDS = 30.0
RENEW_SECONDS = 5.0
STOP_SECONDS = 8.0  # that a process which is told to stop waits for the work under a claim

T = TypeVar("T")


class Claims:
    """Takes, keeps and releases the claims of this process."""

    def __init__(self, tools: Tools) -> None:
        self._batches, self._book, self._clock = tools.store.batches, tools.store.batch_book, tools.clock
        self._driver, self._is_gone = tools.driver, tools.is_gone

    def holder(self, batch: Batch) -> Driver | None:
        """Return who holds the claim on a batch, unless its lease is over or its process is certainly dead."""
        if batch.driver is None or batch.lease_until <= self._clock.now() or self._is_gone(batch.driver):
            return None
        return batch.driver

    async def take(self, batch: Batch, *, alone: bool = False) -> Batch | None:
        """Claim a batch that nobody holds, and return it as it then is; None when that is not possible now."""
        if self.holder(batch) is not None:
            return None
        now = self._clock.now()
        claim = BatchClaim(batch=batch, driver=self._driver, at=now, until=now + LEASE_SECONDS, alone=alone)
        return await self._book.claim(claim)

    async def keep(self, claimed: Batch, work: Coroutine[Any, Any, T]) -> T:
        """Do the work under a claim that is renewed meanwhile and released afterwards.

        Raises Conflict when the claim is lost. Canceled, the work is given a moment to end: once a create has left,
        its answer is the only sure way to know its outcome.
        """
        task = asyncio.get_running_loop().create_task(work)
        renewal = asyncio.get_running_loop().create_task(self._renew(claimed))
        try:
            await asyncio.wait({task, renewal}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                renewal.result()
                raise lost(claimed)
            return task.result()
        except asyncio.CancelledError:
            await asyncio.wait({task}, timeout=STOP_SECONDS)
            raise
        finally:
            renewal.cancel()
            await _end(task)
            await self._book.release(claimed)

    async def change(self, claimed: Batch, kind: str, **changes: object) -> Batch:
        """Change a sent batch under the claim and return it; raises Conflict when the claim is lost."""
        stored = await self._batches.get(claimed.id) or claimed
        changed = replace(stored, epoch=claimed.epoch, **changes)  # type: ignore[arg-type]
        advance = Advance(batch=changed, was=BatchState.SENT, kind=kind, at=self._clock.now())
        if not await self._book.advance(advance):
            raise lost(claimed)
        return changed

    async def _renew(self, claimed: Batch) -> None:
        """Extend the lease again and again; returns when the claim is lost."""
        while True:
            await self._clock.sleep(RENEW_SECONDS)
            if not await self._book.renew(claimed, self._clock.now() + LEASE_SECONDS):
                return


def lost(batch: Batch) -> Conflict:
    """Say that another process has claimed a batch."""
    return Conflict(f"another process has claimed batch {batch.id}")


async def _end(task: "asyncio.Task[Any]") -> None:
    """Cancel what is not done, and wait until it is."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # whoever awaited the work has it
