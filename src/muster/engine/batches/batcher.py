"""The batcher: gathers calls that wait at the same time, puts them into as few batches as possible, has them followed.

When it flushes is decided in `quietness`.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from muster.agents.base import BatchAgent
from muster.domain.batch import UNDER_WAY, Batch, BatchEndpoint, BatchLimits, BatchState, Phase
from muster.domain.budget import Decision, Granted, Refused, Wait
from muster.domain.entry import AttemptId
from muster.domain.errors import BatchLost, BatchOverdue, KeyTaken, LeftWaiting, MusterError, StoreFailed
from muster.domain.ids import BatchId, RunId, new_batch_id, new_nonce
from muster.domain.observation import AttemptBegan
from muster.domain.run import Driver
from muster.engine.batches.base import BatchServices
from muster.engine.batches.dismiss import Dismisser
from muster.engine.batches.follow import Follower, Poller
from muster.engine.batches.parked_calls import Outcome, Parked, Waiters
from muster.engine.batches.quietness import Quietness, QuietWatch, let_ready_tasks_run
from muster.engine.batches.resolve import Claims, lost, still_open
from muster.engine.batches.send import Composition, compose

LOOK_SECONDS = 2.0
TAKE_OVER_TRIES = 5
CANCEL_SECONDS = 5.0  # that a process which ends waits for a provider to take a cancel


class Batcher:
    """The parked calls of this process."""

    def __init__(
        self,
        services: BatchServices,
        *,
        claims: Claims,
        follower: Follower,
        waiters: Waiters,
        dismisser: Dismisser,
        poller: Poller,
    ) -> None:
        self._store, self._clock, self._random = services.store, services.clock, services.random
        self._kill, self._patience, self._observe = services.kill, services.patience, services.observe
        self._follower, self._waiters = follower, waiters
        self._claims, self._dismisser, self._poller = claims, dismisser, poller
        self._queues: dict[BatchEndpoint, deque[Parked]] = {}
        self._agents: dict[BatchEndpoint, BatchAgent] = {}
        self._short: list[Parked] = []  # what did not fit under a budget the last time
        self._watch = QuietWatch(waiters, services.clock)
        self._inside = 0
        self._unsent: Counter[RunId] = Counter()  # parked, and not known to be at the provider
        self._room = asyncio.Condition()
        self._gathering: asyncio.Task[None] | None = None
        self._left: dict[RunId, LeftWaiting] = {}  # runs that stop because a batch of theirs cannot be waited for
        self._orphans: dict[BatchId, asyncio.Task[None]] = {}  # batches of canceled runs, canceled by this process
        follower.on_change = waiters.on_answered = self._watch.change

    def moving(self) -> AbstractContextManager[None]:
        """Count a batch call that is on its way to be parked: nothing is flushed without it."""
        return self._watch.moving()

    @property
    def parked(self) -> int:
        """How many calls of this process are parked."""
        return self._inside

    async def park(self, parked: Parked) -> Outcome:
        """Wait for the next batch and for its result; raises the error that the call met there."""
        await self._enter()
        try:
            endpoint = parked.batching.agent.endpoint
            self._agents[endpoint] = parked.batching.agent
            self._queues.setdefault(endpoint, deque()).append(parked)
            self._unsent[parked.attempt.run] += 1
            self._watch.change()
            self._begin_to_gather()
            return await parked.future
        finally:
            await self._leave()

    async def rejoin(self, attempt: AttemptId, batch: BatchId, place: int) -> Outcome:
        """Wait for the result of an attempt that a batch holds already; its number is 0 if it is another run's."""
        await self._enter()
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiters.add(batch, place, future)
        self._follower.follow(batch, (attempt.run,))
        if self._observe is not None and attempt.n:
            self._observe(AttemptBegan(attempt, batch=batch))
        try:
            return await future
        finally:
            self._waiters.remove(batch, place, future)
            await self._leave()

    def handed_in(self, run: RunId) -> bool:
        """Return whether the provider has every parked call of a run, and nothing is about to change that."""
        settled = self._watch.look().settled(self._patience)
        return settled and self._unsent[run] == 0 and not self._follower.unsent(run)

    def leave(self, run: RunId, error: LeftWaiting) -> None:
        """Put no further call of a run into a batch: one of its batches cannot be waited for any longer.

        Calls that wait for money would wait for ever, since that batch keeps what was reserved for its members.
        """
        self._left[run] = error
        parked = [*self._short, *(parked for queue in self._queues.values() for parked in queue)]
        for each in parked:
            if each.attempt.run == run and not each.future.done():
                each.future.set_exception(error)
                each.future.exception()

    async def cancel_batches(self, run: RunId) -> Sequence[BatchId]:
        """Wait until the batches that were canceled with a run have ended and their results are here."""
        batches = await self._store.batches.of_run(run)
        canceled = [batch.id for batch in batches if batch.state in UNDER_WAY and batch.cancel_requested]
        await asyncio.gather(*(self._follower.to_end(batch) for batch in canceled))
        return canceled

    def cancel_orphans(self, orphans: Iterable[BatchId]) -> None:
        """Cancel the batches of canceled runs whose driver died before it could; each is followed here once."""
        for batch in orphans:
            if batch not in self._orphans:
                self._orphans[batch] = asyncio.get_running_loop().create_task(self._cancel_orphan(batch))

    @property
    def canceling(self) -> bool:
        """Return whether batches of canceled runs are still being followed to their ends."""
        return any(not task.done() or self._follower.follows(batch) for batch, task in self._orphans.items())

    async def _cancel_orphan(self, name: BatchId) -> None:
        """Cancel it at the provider at once; the batch is followed as long as this process lives."""
        batch = await self._store.batches.get(name)
        with contextlib.suppress(MusterError):  # it stays to be canceled, and the next process tries again
            if batch is not None:
                await self._poller.cancel(batch)
            self._follower.follow(name)

    async def round_off(self, run: RunId, batches: Iterable[Batch]) -> None:
        """Close those batches of a run whose members all have their outcome; no request is sent."""
        self._left.pop(run, None)
        for batch in batches:
            if batch.state is BatchState.ENDED and batch.tally.over == batch.requests:
                await self._follower.to_end(batch.id)

    def follows(self, batch: BatchId) -> bool:
        """Return whether a batch is being taken to its end here."""
        return self._follower.follows(batch)

    async def fetch(self, batch: BatchId, *, by_hand: bool = False) -> None:
        """Take a batch to its end, whoever's calls are in it; raises what stopped it.

        By hand, it is not waited for a process that sleeps between two polls, or looks for the batch.
        """
        await self._follower.to_end(batch, by_hand=by_hand)

    async def cancel(self, batch: BatchId) -> bool:
        """Ask the provider to stop a batch and wait until what it produced is here; False when it is over."""
        if not await self._store.batches.ask_cancel(batch):
            return False
        await self._follower.to_end(batch, by_hand=True)
        return True

    async def resolve(self, batch: BatchId) -> None:
        """Find out for an operator whether a batch was created; raises BatchOpen when that is unknown."""
        try:
            await self._follower.out_of(batch, {BatchState.SENT}, self._patience.look_seconds)
        except BatchOverdue as error:  # the provider's list could not be read
            found = await self._store.batches.get(batch)
            raise error if found is None else still_open(found) from error

    async def look(self, batch: BatchId) -> None:
        """Look whether the provider still has a batch, and collect it if it has ended; raises BatchLost otherwise.

        One that another process is reading, and that gets on, is not lost: raises BatchOverdue.
        """
        found, submitted = await self._store.batches.get(batch), (BatchState.RUNNING, BatchState.ENDED)
        if found is None or found.state not in submitted:
            return
        progress = await self._poller.look(found)
        if progress.phase is Phase.RUNNING:
            return
        try:
            # What nobody has failed to read yet is read first, however short the grace is.
            least = 0.0 if found.stalled else self._patience.least_look
            await self._follower.out_of(batch, submitted, max(self._patience.grace, least))
        except BatchLost as error:
            fresh = await self._store.batches.get(batch) or found
            holder = self._claims.holder(fresh)
            if fresh.stalled or holder is None:
                raise
            raise BatchOverdue(
                f"batch {batch} is being read by {holder}, and nothing keeps it from getting on",
                suggestions=(f"muster batch show {batch}",),
            ) from error

    @property
    def look_until(self) -> float:
        """Return until when at most an operator who begins now waits for a provider that does not answer."""
        return self._clock.now() + self._patience.look_seconds

    def holder(self, batch: Batch) -> Driver | None:
        """Return the process that creates a batch, or finds out whether it was created."""
        return self._claims.holder(batch) if batch.state is BatchState.SENT else None

    async def abandon(self, batch: Batch) -> None:
        """Abandon a batch that cannot be found or read; its calls can be sent again. Raises Conflict if it is held."""
        found: Batch | None = batch
        if batch.state is BatchState.SENT:
            found = await self._take_over(batch.id)
        note = "given up by hand; it was paid for"
        if batch.state is BatchState.SENT:
            note = f"given up by hand; if it was created after all, it was paid for ({batch.note})"
        if found is None or not await self._dismisser.abandon(found, note):
            raise lost(batch)

    async def _take_over(self, name: BatchId) -> Batch | None:
        """Claim a batch for an operator; a worker may just have renewed its claim, and does so every few seconds."""
        for _ in range(TAKE_OVER_TRIES):
            batch = await self._store.batches.get(name)
            claimed = None if batch is None else await self._claims.take(batch, by_hand=True)
            if claimed is not None:
                return claimed
        return None

    async def close(self) -> None:
        """Gather no more; a create that is under way is waited for, and a cancel for a moment."""
        if self._orphans:
            await asyncio.wait(self._orphans.values(), timeout=CANCEL_SECONDS)
            for canceling in self._orphans.values():
                canceling.cancel()
        if self._gathering is not None:
            self._gathering.cancel()
            await asyncio.wait({self._gathering})
        await self._follower.close()

    async def _enter(self) -> None:
        async with self._room:
            await self._room.wait_for(lambda: self._inside < self._patience.max_parked)
            self._inside += 1

    async def _leave(self) -> None:
        self._inside -= 1
        async with self._room:
            self._room.notify()

    def _begin_to_gather(self) -> None:
        if self._gathering is None or self._gathering.done():
            self._gathering = asyncio.get_running_loop().create_task(self._gather())

    async def _gather(self) -> None:
        try:
            await self._keep_flushing()
        except MusterError as error:
            self._fail_all(error)
        except Exception as error:
            self._fail_all(StoreFailed(f"collecting calls into batches failed: {error!r}"))

    def _fail_all(self, error: MusterError) -> None:
        """End all waits for a batch that will never be created."""
        for parked in [*self._short, *(parked for queue in self._queues.values() for parked in queue)]:
            self._fail(parked, error)
        self._short.clear()
        self._queues.clear()
        self._unsent.clear()

    async def _keep_flushing(self) -> None:
        seen = self._store.changes.commits
        while any(self._queues.values()) or self._short:
            if not any(self._queues.values()):
                await self._store.changes.wait(LOOK_SECONDS, seen)  # only money is missing: every write may free some
                self._again()
            await self._until_due()
            seen = self._store.changes.commits
            for endpoint in list(self._queues):
                await self._flush(endpoint)

    async def _until_due(self) -> None:
        """Wait until it is time to flush, and still is after everything that is ready to run has run."""
        while True:
            while (seconds := self._quietness().seconds_left(self._patience)) > 0:
                await self._watch.wait(seconds)
            await let_ready_tasks_run()
            if self._quietness().seconds_left(self._patience) <= 0:
                return

    def _quietness(self) -> Quietness:
        return self._watch.look(
            oldest=min((queue[0].since for queue in self._queues.values() if queue), default=None),
            full=any(len(queue) >= self._most(endpoint).requests for endpoint, queue in self._queues.items()),
        )

    def _again(self) -> None:
        for parked in self._short:
            parked.since = self._clock.monotonic()
            self._unsent[parked.attempt.run] += 1
            self._queues[parked.batching.agent.endpoint].append(parked)
        self._short.clear()

    async def _flush(self, endpoint: BatchEndpoint) -> None:
        queue = self._queues[endpoint]
        self._forget_canceled(queue)
        while queue:
            composition = await self._compose(endpoint, queue)
            for parked, error in composition.refused:
                self._fail(parked, error)
            if composition.members:
                await self._store_plan(composition, queue)
            self._forget_canceled(queue)

    async def _compose(self, endpoint: BatchEndpoint, queue: deque[Parked]) -> Composition:
        nonce = await self._store.batches.nonce(new_nonce(self._random))
        name = new_batch_id(self._clock.now(), self._random)
        composition = Composition(id=name, nonce=nonce, agent=self._agents[endpoint], most=self._most(endpoint))
        return await compose(composition, queue, self._clock.now(), self._store.batches)

    def _most(self, endpoint: BatchEndpoint) -> BatchLimits:
        limits, patience = self._agents[endpoint].limits, self._patience
        return BatchLimits(
            requests=min(limits.requests, patience.most_requests or limits.requests),
            bytes=min(limits.bytes, patience.most_bytes or limits.bytes),
        )

    async def _store_plan(self, composition: Composition, queue: deque[Parked]) -> None:
        """Reserve the money and store the batch; calls without money wait, and the others are composed anew."""
        self._kill.reach("batch.before_plan")
        try:
            decisions = await self._store.batches.plan(composition.plan(self._clock.now()))
        except MusterError as error:
            for parked in composition.parked:
                self._fail(parked, error)
            return
        if all(isinstance(decision, Granted) for decision in decisions):
            self._kill.reach("batch.planned")
            self._launch(composition)
            return
        for parked, decision in reversed(list(zip(composition.parked, decisions, strict=True))):
            self._sort(parked, decision, queue)

    def _launch(self, composition: Composition) -> None:
        for member, parked in zip(composition.members, composition.parked, strict=True):
            self._unsent[parked.attempt.run] -= 1
            self._waiters.add(composition.id, member.place, parked.future)
        self._follower.follow(composition.id, [parked.attempt.run for parked in composition.parked])
        if self._observe is not None:
            now = self._clock.monotonic()
            for parked in composition.parked:
                self._observe(AttemptBegan(parked.attempt, now - parked.since, composition.id))

    def _sort(self, parked: Parked, decision: Decision | MusterError, queue: deque[Parked]) -> None:
        if isinstance(decision, Granted):
            queue.appendleft(parked)
        elif isinstance(decision, Wait) and parked.attempt.run in self._left:
            self._fail(parked, self._left[parked.attempt.run])
        elif isinstance(decision, Wait):
            self._unsent[parked.attempt.run] -= 1  # nobody waits for it to be handed in before there is money
            self._short.append(parked)
        elif isinstance(decision, Refused):
            self._fail(parked, decision.error)
        elif isinstance(decision, KeyTaken):
            self._look_again(parked)
        else:
            self._fail(parked, decision)

    def _fail(self, parked: Parked, error: MusterError) -> None:
        self._unsent[parked.attempt.run] -= 1
        if not parked.future.done():
            parked.future.set_exception(error)
            parked.future.exception()

    def _look_again(self, parked: Parked) -> None:
        self._unsent[parked.attempt.run] -= 1
        if not parked.future.done():
            parked.future.set_result(None)

    def _forget_canceled(self, queue: deque[Parked]) -> None:
        gone = [parked for parked in queue if parked.future.done()]
        if gone:
            kept = [parked for parked in queue if not parked.future.done()]
            queue.clear()
            queue.extend(kept)
            self._unsent.subtract(parked.attempt.run for parked in gone)
