"""The branch of the call path for batches: a call waits for the batch that holds it, or is parked for the next one.

A parked call takes no place in its run, at the limiter or in a map, and its run's clock may stop.
"""

import asyncio
from collections.abc import Awaitable
from functools import partial

from muster.agents.base import Batching
from muster.domain.call import Reply
from muster.domain.dispatch import Fallback
from muster.domain.entry import AttemptId, Entry, EntryState, Replied
from muster.domain.entry import Outcome as AttemptOutcome
from muster.domain.errors import LeftWaiting, RecordedFailure, RetriesExhausted, TryLater, WireError
from muster.domain.ids import BatchId
from muster.domain.money import Microdollars
from muster.domain.observation import AttemptEnded, Observer
from muster.engine.base.driven_run import CallGuard, CallJournal, DrivenRun
from muster.engine.base.mapping import item_under_way
from muster.engine.batches.parked_calls import Outcome, Parked
from muster.engine.calls.state import CallServices, CallState, failed_of, require_unicode


class BatchPath:
    """The batch calls of one run under one driver."""

    def __init__(self, services: CallServices, driven: DrivenRun, journal: CallJournal, guard: CallGuard) -> None:
        self._with, self._batcher = services, services.batcher.get()
        self._run, self._epoch, self._dispatch = driven.run.id, driven.epoch, driven.run.dispatch
        self._levels, self._inheritance, self._activity = driven.levels, driven.inheritance, driven.activity
        self._journal, self._guard = journal, guard

    async def ask(self, asking: CallState, batching: Batching) -> Reply | None:
        """Return the reply from the journal or from batches; None when the call is to be sent live after all."""
        last: TryLater | None = None
        waited = False
        while True:
            outcome = await self._look(asking, batching, waited)
            if isinstance(outcome, Reply):
                return outcome
            if outcome is None:
                break
            # Spelled out instead of context managers: they would be most of what a parked call takes in memory.
            waited, item = True, item_under_way()
            self._activity.begin_park()
            if item is not None:
                item.park()
            try:
                reply = await outcome
                if reply is not None:
                    self._check_cost(asking, batching, reply)
                    return reply
            except TryLater as error:
                last = error
            except LeftWaiting as error:
                self._guard.halt.tell(error)
                self._batcher.leave(self._run, error)
                raise
            finally:
                self._activity.end_park()
                if item is not None:
                    item.unpark()
        await self._after_batches(asking, last)
        return None

    async def _look(self, asking: CallState, batching: Batching, waited: bool) -> Reply | Awaitable[Outcome] | None:
        """Look the call up: gives its reply, or what to wait for, or nothing when it was in enough batches."""
        with self._batcher.moving():
            while True:
                entry = await self._journal.find(asking.key, asking.identity.digest)
                if entry is not None and entry.reply is not None:
                    return entry.reply
                if waited and entry is not None and entry.error is not None:
                    raise RecordedFailure(entry.error)  # another process collected the batch, and this is what it found
                self._guard.check()
                await self._remember(asking, entry)
                held = await self._held(asking)
                if held is not None or not await self._settled_meanwhile(asking, entry):
                    break
        if held is not None:
            attempt = self._attempt(asking, asking.attempts)
            waiting = self._batcher.rejoin(attempt, *held)
            return self._observed(attempt, waiting) if asking.known else _then_look(waiting)
        if asking.turn >= self._dispatch.batches:
            return None
        require_unicode(asking)
        if asking.request.has_media:
            asking.request = await self._with.media.keep(self._run, asking.request)
        return self._park(asking, batching)

    async def _settled_meanwhile(self, asking: CallState, entry: Entry | None) -> bool:
        """Return whether the call was in a batch at the first look and settled at the second: send nothing twice."""
        if entry is None and self._inheritance.empty:
            return False
        return await self._journal.find(asking.key, asking.identity.digest) != entry

    async def _remember(self, asking: CallState, entry: Entry | None) -> None:
        """Learn from the journal how often the call was tried; what failed for good starts anew."""
        if entry is None:
            return
        if asking.turn == 0 and entry.state is EntryState.FAILED:
            asking.base = entry.attempts
        asking.learn(entry)
        asking.turn = entry.attempts - asking.base
        if asking.turn:  # a batch that a person gave up says nothing about the call
            asking.turn -= await self._with.store.batches.abandoned(self._run, asking.key, asking.base)

    async def _held(self, asking: CallState) -> tuple[BatchId, int] | None:
        """Return the batch that holds the call, in this run or in one that it comes from."""
        if asking.known:
            return await self._with.store.batches.parked(self._run, asking.key)
        return await self._inheritance.parked(asking.key, asking.identity.digest)

    def _park(self, asking: CallState, batching: Batching) -> Awaitable[Outcome]:
        if self._levels.call_cap is not None:
            self._levels.require_call(_most(asking, batching))
        attempt = self._attempt(asking, asking.attempts + 1)
        waiting = self._batcher.park(
            Parked(
                batching=batching,
                request=asking.request,
                text=asking.identity.text,
                attempt=attempt,
                digest=asking.identity.digest,
                agent=asking.agent.profile.name,
                first=not asking.known,
                reopens=asking.failed,
                cache=self._dispatch.cache,
                levels=partial(asking.levels, self._levels),
                since=self._with.clock.monotonic(),
                future=asyncio.get_running_loop().create_future(),
                media_tokens=asking.agent.profile.media_tokens(asking.request),
            )
        )
        return self._observed(attempt, waiting)

    def _attempt(self, asking: CallState, n: int) -> AttemptId:
        return AttemptId(run=self._run, key=asking.key, n=n, epoch=self._epoch)

    def _observed(self, attempt: AttemptId, waiting: Awaitable[Outcome]) -> Awaitable[Outcome]:
        """Have the end of an attempt observed; without an observer a parked call takes no more memory for it."""
        return waiting if self._with.observe is None else self._observe_end(self._with.observe, attempt, waiting)

    async def _observe_end(self, observe: Observer, attempt: AttemptId, waiting: Awaitable[Outcome]) -> Outcome:
        outcome: AttemptOutcome | None = None
        try:
            reply = await waiting
            outcome = None if reply is None else Replied(reply)
            return reply
        except WireError as error:
            outcome = failed_of(error)
            raise
        finally:
            observe(AttemptEnded(attempt, outcome))

    def _check_cost(self, asking: CallState, batching: Batching, reply: Reply) -> None:
        """Report a reply that cost more than was reserved for it."""
        if not self._guard.capped:
            return
        most = _most(asking, batching)
        if reply.cost > most:
            self._guard.add_excess(asking.key, reply.cost, most)

    async def _after_batches(self, asking: CallState, last: TryLater | None) -> None:
        """Leave the call to be sent live, or give it up."""
        if self._dispatch.fallback is Fallback.LIVE:
            asking.turn = 0
            return
        reason = last.message if last else "no batch returned an answer"
        error = RetriesExhausted(
            f"call {asking.key!r} failed in {asking.turn} batches: {reason}",
            last=last or TryLater(reason),
        )
        await self._with.store.batches.give_up(
            self._run, self._epoch, asking.key, error.record(), self._with.clock.now()
        )
        raise error


async def _then_look(waiting: Awaitable[Outcome]) -> Outcome:
    """Wait for a call of the run that this one comes from; its reply is then taken over from that run's journal."""
    await waiting
    return None


def _most(asking: CallState, batching: Batching) -> Microdollars:
    """Return the most that a call can cost in a batch."""
    size = len(batching.encode(asking.request, True)) + asking.agent.profile.media_tokens(asking.request)
    return batching.quote(asking.request, size).most
