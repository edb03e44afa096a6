"""Polling: a running batch is asked how it stands, ever more seldom, until it has ended."""

from dataclasses import replace
from functools import partial

from muster.domain.batch import Batch, BatchState, Phase, Progress
from muster.domain.errors import InvalidRequest, TryLater, UnknownModel
from muster.engine.dismissing import Dismisser
from muster.engine.tools import Tools
from muster.engine.trying import Asker, Pulse
from muster.store.base import Advance

CANCELING = "the provider was asked to cancel it"  # the note of a batch


class Poller:
    """Takes a batch from running to ended, or to refused when the provider finds it invalid."""

    def __init__(self, tools: Tools, *, asker: Asker, dismisser: Dismisser) -> None:
        self._store, self._directory, self._clock = tools.store, tools.directory, tools.clock
        self._random, self._kill, self._patience = tools.random, tools.kill, tools.patience
        self._timeouts = tools.timeouts
        self._asker, self._dismisser = asker, dismisser

    async def __call__(self, batch: Batch, until: float) -> None:
        """Ask until the batch has ended; a wish to cancel is passed on once."""
        agent = self._directory.reopen(batch.desk)
        pulse = Pulse(self._patience, self._random)
        told = False
        while True:
            batch = await self._store.batches.get(batch.id) or batch
            if batch.state is not BatchState.RUNNING:
                return
            if batch.cancel_requested and not told:
                told = await self.cancel(batch)
            question = partial(agent.poll, batch.provider_id or "", self._timeouts)
            progress = await self._asker.ask(question, f"batch {batch.provider_id}", until)
            self._kill.reach("batch.polled")
            if progress is None or await self._learn(batch, progress):
                return
            delay = pulse.delay()
            if self._clock.monotonic() + delay > until:
                await self._clock.sleep(max(0.0, until - self._clock.monotonic()))
                return
            await self._sleep(batch, delay, told)

    async def look(self, batch: Batch) -> Progress | None:
        """Ask how a batch stands; raises BatchLost when the provider has it no more."""
        agent = self._directory.reopen(batch.desk)
        question = partial(agent.poll, batch.provider_id or "", self._timeouts)
        until = self._clock.monotonic() + 2 * self._patience.grace + self._patience.poll_longest
        return await self._asker.ask(question, f"batch {batch.provider_id}", until)

    async def _sleep(self, batch: Batch, delay: float, told: bool) -> None:
        """Wait for the next question; somebody who cancels the batch meanwhile is heard at once."""
        until = self._clock.monotonic() + delay
        while (left := until - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(left, 1.0))
            if not told and left > 1.0:
                fresh = await self._store.batches.get(batch.id)
                if fresh is not None and fresh.cancel_requested:
                    return

    async def cancel(self, batch: Batch) -> bool:
        """Ask the provider to cancel a running batch; False when that must be tried again, or may be a stranger's."""
        if batch.note == CANCELING:  # it was, maybe by another process
            return True
        if batch.state is not BatchState.RUNNING or batch.adopted:
            return False
        try:
            await self._directory.reopen(batch.desk).cancel(batch.provider_id or "", self._timeouts)
        except (TryLater, UnknownModel):  # a 404 may pass, shortly after the creation
            return False
        await self._advance(replace(batch, note=CANCELING), "batch.canceling")
        return True

    async def _learn(self, batch: Batch, progress: Progress) -> bool:
        """Store what the provider says; True when it has ended."""
        now = self._clock.now()
        seen = replace(batch, word=progress.word, done=progress.done, polled_at=now)
        if progress.phase is Phase.FAILED:
            error = InvalidRequest(f"the provider refused the whole batch: {progress.message or progress.word}")
            await self._dismisser.refuse(seen, error, BatchState.RUNNING)
            return True
        if progress.phase is Phase.ENDED:
            note = f"the provider says {progress.word}"
            ended = now if progress.took is None else (batch.submitted_at or batch.created_at) + progress.took
            await self._advance(replace(seen, state=BatchState.ENDED, ended_at=ended, note=note), "batch.ended")
            return True
        if (progress.word, progress.done) != (batch.word, batch.done):
            await self._advance(seen, "batch.progress")
        return False

    async def _advance(self, batch: Batch, kind: str) -> None:
        await self._store.batch_book.advance(
            Advance(batch=batch, was=BatchState.RUNNING, kind=kind, at=self._clock.now())
        )
