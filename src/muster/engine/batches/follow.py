"""Following batches: each is taken from the state it is in to its end, by whichever process holds it in its hands.

Every step starts from what is stored, so a process that died is replaced by doing the same step again.
"""

import asyncio
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from muster.domain.batch import OVER, RESUBMIT, Batch, BatchProgress, BatchState, Phase
from muster.domain.errors import (
    BadConfiguration,
    BatchLost,
    BatchOverdue,
    InvalidRequest,
    LeftWaiting,
    MusterError,
    TryLater,
    UnknownModel,
    WireError,
)
from muster.domain.ids import BatchId, RunId
from muster.domain.observation import BatchBegan, BatchEnded, Observer
from muster.engine.base.clock import Clock
from muster.engine.batches.base import Asker, BatchServices, PollDelays
from muster.engine.batches.dismiss import Dismisser
from muster.engine.batches.parked_calls import Waiters
from muster.store.base import Advance, Store

UNSENT = frozenset({BatchState.PLANNED, BatchState.SENT})


class Step(Protocol):
    """Takes a batch out of one state; returns when the stored state has changed, or to be called again."""

    async def __call__(self, batch: Batch, until: float) -> None:
        """Work until the state changes or the clock (`monotonic`) reaches `until`."""


class Follower:
    """The batches that this process follows, a task each."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        waiters: Waiters,
        steps: Mapping[BatchState, Step],
        by_hand: Mapping[BatchState, Step],
        deadline: float,
        observe: Observer | None = None,
    ) -> None:
        self._store, self._clock, self._waiters, self._observe = store, clock, waiters, observe
        self._steps, self._by_hand, self._deadline = steps, by_hand, deadline
        self._tasks: dict[BatchId, asyncio.Task[None]] = {}
        self._unsent: dict[BatchId, set[RunId]] = {}  # of followed batches that the provider may not have yet
        self.on_change: Callable[[], None] = lambda: None

    def unsent(self, run: RunId) -> bool:
        """Return whether calls of a run are in a batch that the provider may not have yet."""
        return any(run in runs for runs in self._unsent.values())

    def follow(self, batch: BatchId, runs: Sequence[RunId] = (), *, by_hand: bool = False) -> "asyncio.Task[None]":
        """Follow a batch to its end, once; by hand, before other processes that wait for it."""
        if batch in self._unsent:
            self._unsent[batch].update(runs)
        if batch not in self._tasks:
            self._unsent[batch] = set(runs)
            if self._observe is not None:
                self._observe(BatchBegan(batch))
            steps = self._by_hand if by_hand else self._steps
            task = asyncio.get_running_loop().create_task(self._follow(batch, steps))
            self._tasks[batch] = task
            task.add_done_callback(lambda _: self._forget(batch))
        return self._tasks[batch]

    def follows(self, batch: BatchId) -> bool:
        """Return whether a batch is being followed."""
        return batch in self._tasks

    async def to_end(self, batch: BatchId, *, by_hand: bool = False) -> None:
        """Follow a batch to its end and wait for that; raises what stopped it."""
        await asyncio.shield(self.follow(batch, by_hand=by_hand))

    async def out_of(self, name: BatchId, states: Container[BatchState], seconds: float) -> None:
        """Take a batch out of some states by hand, and no further; raises BatchOverdue."""
        seconds = min(seconds, self._deadline)
        until = self._clock.monotonic() + seconds
        while (batch := await self._stored(name)).state in states:
            if self._clock.monotonic() >= until:
                raise overdue(batch, seconds)
            await self._by_hand[batch.state](batch, until)

    async def close(self) -> None:
        """Let go of all batches; what is stored is enough to go on."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, batch: BatchId, steps: Mapping[BatchState, Step]) -> None:
        found: Batch | None = None
        broke: Exception | None = None
        try:
            found = await self._to_end(batch, steps)
        except asyncio.CancelledError:
            raise
        except MusterError as error:
            broke = error
            self._waiters.end(batch, _for_runs(batch, error))
            raise
        except Exception as error:
            broke = error
            hint = f"try again with: muster batch fetch {batch}"
            broken = BatchLost(f"following batch {batch} failed: {error!r}", suggestions=(hint,))
            self._waiters.end(batch, broken)
            raise broken from error
        finally:
            if self._observe is not None:
                self._observe(BatchEnded(batch, found, broke))
        self._waiters.end(batch, None)

    async def _to_end(self, name: BatchId, steps: Mapping[BatchState, Step]) -> Batch:
        until = self._clock.monotonic() + self._deadline
        while True:
            batch = await self._stored(name)
            if batch.state not in UNSENT:
                self._unsent.pop(name, None)
                self.on_change()
            if batch.state in OVER:
                return batch
            if self._clock.monotonic() >= until:
                raise overdue(batch, self._deadline)
            await steps[batch.state](batch, until)

    async def _stored(self, name: BatchId) -> Batch:
        batch = await self._store.batches.get(name)
        if batch is None:
            raise BatchLost(f"batch {name} not found in this store")
        return batch

    def _forget(self, batch: BatchId) -> None:
        task = self._tasks.pop(batch)
        self._unsent.pop(batch, None)
        if not task.cancelled():
            task.exception()  # those who waited have been told
        self.on_change()


def unread(batch: Batch, why: str) -> BatchLost:
    """Return the error for a batch that has ended, and is paid for, without readable results."""
    return BatchLost(
        f"batch {batch.id} has ended and its results {why}; they are paid for, so their calls are not sent again "
        "automatically",
        suggestions=(
            f"look again later: muster batch fetch {batch.id}",
            RESUBMIT,
        ),
    )


def _for_runs(batch: BatchId, error: MusterError) -> MusterError:
    """Return the error that those who wait are told: their calls have not failed, only the way to the results."""
    if not isinstance(error, WireError | BadConfiguration):
        return error
    return BatchLost(
        f"batch {batch} cannot be read: {error.message}",
        suggestions=(*error.suggestions, f"try again with: muster batch fetch {batch}"),
    )


def overdue(batch: Batch, deadline: float) -> LeftWaiting:
    """Return the error for a batch that did not end in time."""
    if batch.state is BatchState.ENDED:
        return unread(batch, f"could not be read within {deadline:g} s")
    if batch.state in UNSENT:
        stands = f"batch {batch.id} is still {batch.state} after {deadline:g} s: {batch.note}"
    else:
        stands = f"batch {batch.id} did not end within {deadline:g} s; it continues there, and nothing is lost"
    return BatchOverdue(
        stands,
        suggestions=(f"go on later with: muster batch fetch {batch.id}",),
    )


CANCELING = "the provider was asked to cancel it"  # the note of a batch


class Poller:
    """Takes a batch from running to ended, or to refused when the provider finds it invalid."""

    def __init__(self, services: BatchServices, *, asker: Asker, dismisser: Dismisser) -> None:
        self._store, self._directory, self._clock = services.store, services.directory, services.clock
        self._random, self._kill, self._patience = services.random, services.kill, services.patience
        self._timeouts = services.timeouts
        self._asker, self._dismisser = asker, dismisser

    async def __call__(self, batch: Batch, until: float) -> None:
        """Ask until the batch has ended; a wish to cancel is passed on once."""
        agent = self._directory.reopen(batch.endpoint)
        delays = PollDelays(self._patience, self._random)
        told = False
        while True:
            batch = await self._store.batches.get(batch.id) or batch
            if batch.state is not BatchState.RUNNING:
                return
            if batch.cancel_requested and not told:
                told = await self.cancel(batch)
            question = partial(agent.poll, batch.provider_id or "", self._timeouts)
            trouble = partial(self._note_trouble, batch.id)
            progress = await self._asker.ask(question, f"batch {batch.provider_id}", until, trouble)
            self._kill.reach("batch.polled")
            if progress is None or await self._learn(batch, progress):
                return
            delay = delays.delay()
            if self._clock.monotonic() + delay > until:
                await self._clock.sleep(max(0.0, until - self._clock.monotonic()))
                return
            await self._sleep(batch, delay, told)

    async def look(self, batch: Batch) -> BatchProgress:
        """Ask for an operator how a batch stands, and store it while it runs.

        Raises BatchLost when the provider has it no more, BatchOverdue when it does not say.
        """
        agent, seconds = self._directory.reopen(batch.endpoint), self._patience.look_seconds
        question = partial(agent.poll, batch.provider_id or "", self._timeouts)
        until, trouble = self._clock.monotonic() + seconds, partial(self._note_trouble, batch.id)
        progress = await self._asker.ask(question, f"batch {batch.provider_id}", until, trouble)
        if progress is None:
            raise BatchOverdue(
                f"the provider did not say within {seconds:g} s what became of batch {batch.id}; it has the batch, "
                "so that is not given up",
                suggestions=(f"look again later: muster batch fetch {batch.id}",),
            )
        if progress.phase is Phase.RUNNING:
            await self._learn(batch, progress)
        return progress

    async def _sleep(self, batch: Batch, delay: float, told: bool) -> None:
        """Wait for the next poll; a cancellation of the batch ends the wait at once."""
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
            await self._directory.reopen(batch.endpoint).cancel(batch.provider_id or "", self._timeouts)
        except (TryLater, UnknownModel):  # a 404 may pass, shortly after the creation
            return False
        await self._advance(replace(batch, note=CANCELING), "batch.canceling")
        return True

    async def _note_trouble(self, name: BatchId, error: WireError) -> None:
        """Store once that the provider does not answer; the next answer clears it."""
        batch = await self._store.batches.get(name)
        if batch is not None and batch.state is BatchState.RUNNING and not batch.stalled:
            note = f"the provider does not say how far it is: {error.message}; it is asked again"
            await self._advance(replace(batch, note=note, stalled=True), "batch.unanswered")

    async def _learn(self, batch: Batch, progress: BatchProgress) -> bool:
        """Store what the provider says; True when it has ended."""
        now = self._clock.now()
        batch = await self._store.batches.get(batch.id) or batch
        seen = replace(batch, word=progress.word, done=progress.done, polled_at=now, stalled=False)
        if progress.phase is Phase.FAILED:
            error = InvalidRequest(f"the provider refused the whole batch: {progress.message or progress.word}")
            await self._dismisser.refuse(seen, error, BatchState.RUNNING)
            return True
        if progress.phase is Phase.ENDED:
            note = f"the provider says {progress.word}"
            ended = now if progress.took is None else (batch.submitted_at or batch.created_at) + progress.took
            await self._advance(replace(seen, state=BatchState.ENDED, ended_at=ended, note=note), "batch.ended")
            return True
        if batch.stalled:
            await self._advance(replace(seen, note=f"the provider says {progress.word}"), "batch.answered")
        elif (progress.word, progress.done) != (batch.word, batch.done):
            await self._advance(seen, "batch.progress")
        return False

    async def _advance(self, batch: Batch, kind: str) -> None:
        await self._store.batches.advance(Advance(batch=batch, was=BatchState.RUNNING, kind=kind, at=self._clock.now()))
