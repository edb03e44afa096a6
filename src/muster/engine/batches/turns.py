"""Turns at a batch that the provider has: of all processes that wait for it, one polls it and reads its results.

A turn is a lease in the row of the batch. It keeps the others from asking the provider the same; it guards nothing
else, since polls change nothing and results are settled once. An operator does not wait for a process that may sleep
for minutes between two polls, and takes its turn.
"""

import asyncio

from muster.domain.batch import Batch, BatchState
from muster.engine.batches.base import BatchServices
from muster.engine.batches.follow import Step
from muster.engine.batches.resolve import RENEW_SECONDS, Claims
from muster.store.base import BatchClaim

TURN_SECONDS = 15.0  # after which a process that died elsewhere is replaced
LOOK_SECONDS = 1.0  # between two looks whether the one whose turn it is has died, or the batch has gone on


class TakesTurns:
    """A step that only one process does at a time; the others wait until the batch has gone on. Implements `Step`."""

    def __init__(self, step: Step, services: BatchServices, claims: Claims, *, by_hand: bool = False) -> None:
        self._step, self._claims, self._by_hand = step, claims, by_hand
        self._batches, self._clock, self._driver = services.store.batches, services.clock, services.driver

    async def __call__(self, batch: Batch, until: float) -> None:
        """Do the step if nobody else does, else wait for a moment; returns to be called again."""
        if batch.id in self._claims.turns or not await self._is_done(batch, until):
            await self._clock.sleep(max(0.0, min(LOOK_SECONDS, until - self._clock.monotonic())))

    async def _is_done(self, batch: Batch, until: float) -> bool:
        """Do the step; False when it is another's turn."""
        self._claims.turns.add(batch.id)
        try:
            if not await self._take(batch):
                return False
            await self._work_in_turn(batch, until)
            return True
        finally:
            self._claims.turns.discard(batch.id)

    async def _work_in_turn(self, batch: Batch, until: float) -> None:
        working = asyncio.get_running_loop().create_task(self._work(batch, until))
        keeping = asyncio.get_running_loop().create_task(self._keep(batch))
        try:
            done, _ = await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (keeping, working):
                task.cancel()
            await asyncio.wait({keeping, working})
            await self._batches.end_turn(batch.id, self._driver)

    async def _work(self, batch: Batch, until: float) -> None:
        await self._step(batch, until)

    async def _take(self, batch: Batch) -> bool:
        if self._claims.holder(batch) not in (None, self._driver) and not (self._by_hand and may_sleep(batch)):
            return False
        now = self._clock.now()
        until = now + TURN_SECONDS
        return await self._batches.take_turn(
            BatchClaim(batch=batch, driver=self._driver, at=now, until=until, by_hand=self._by_hand)
        )

    async def _keep(self, batch: Batch) -> None:
        """Extend the turn again and again; returns when it is another's."""
        while True:
            await self._clock.sleep(RENEW_SECONDS)
            if not await self._batches.keep_turn(batch.id, self._driver, self._clock.now() + TURN_SECONDS):
                return


def may_sleep(batch: Batch) -> bool:
    """Return whether whoever has the turn may sleep until the next poll: results that arrive are not disturbed."""
    return not batch.by_hand and (batch.state is BatchState.RUNNING or batch.stalled)
