"""The call path: every call to an agent passes through here, so that it is answered once and paid once.

  1 journal   reply known → return it; known in the run this one comes from → take it over
  2 limiter   its turn, in the run and at the provider
  3 ledger    reserve the most this attempt can cost and write "attempt n started": durable before the wire
  4 agent     on the wire as soon as there is a place, and send: `exchange`
  5 settle    reply, cost and event in one transaction: `state`
  6 retry     a pure decision from the error: again, give up, stop the run

A call that is parked in a batch leaves after step 1 (`batches`), and so does one to a person, which has no attempt and
costs nothing (`people`).

Writes are queued in order and cannot be canceled. After step 3 cancellation is honoured only at the wire, and an
answer that arrived is always settled.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from muster.agents.base import Agent, OnDelta
from muster.domain.agent import AskedLive, Command, Quote, cut_answers
from muster.domain.budget import GRANTED, Allowance, Granted, Level, Refused, Wait, held_by_others, part_level
from muster.domain.call import Reply, Request, identify, require_key
from muster.domain.canonical import Json, digest
from muster.domain.content import AgentNote
from muster.domain.dispatch import Fallback, Mode, mode_of
from muster.domain.entry import AttemptId, EntryKind, Opening, Replied, Unsent
from muster.domain.errors import (
    AgentUnusable,
    BadConfiguration,
    BudgetExhausted,
    KeyTaken,
    Overdraft,
    ReplayMiss,
    RetriesExhausted,
    StopRun,
    WireError,
)
from muster.domain.observation import AttemptBegan
from muster.engine.base.driven_run import CallGuard, CallJournal, DrivenRun, StopState, first_excess, overdraft_of
from muster.engine.base.signals import CallInbox, Receiver
from muster.engine.calls.admission import Admission, BudgetTurn, RunPlaces
from muster.engine.calls.content import fit_content, with_place
from muster.engine.calls.exchange import Exchange, RunExchanges
from muster.engine.calls.flow import Passage
from muster.engine.calls.parking import BatchPath
from muster.engine.calls.people import PeoplePath
from muster.engine.calls.retry import Again, GiveUp, RetryDecision, decide
from muster.engine.calls.state import (
    AttemptBooking,
    CallServices,
    CallState,
    OpenCalls,
    Started,
    failed_of,
    require_unicode,
)
from muster.store.base import Record


class CallPath:
    """The path of one run under one driver."""

    def __init__(
        self, services: CallServices, driven: DrivenRun, receiver: Receiver, places: RunPlaces | None = None
    ) -> None:
        """Take the places of the run above, which a child shares; without them the run has its own."""
        self._with, self._driven, self._receiver = services, driven, receiver
        self._run, self._epoch, self._levels = driven.run.id, driven.epoch, driven.levels
        self._rules, self._told = driven.rules, set[tuple[str, str]]()
        self._dispatch, self._inheritance, self._activity = driven.run.dispatch, driven.inheritance, driven.activity
        self.places = places or RunPlaces(driven.run.concurrency)
        self._guard = CallGuard(driven.levels)
        self._journal = CallJournal(driven, services.store, services.clock)
        self.wires = RunExchanges(services.wire_count)
        self._exchange = Exchange(services, self.wires, self._guard)
        self._open_calls = OpenCalls(self._run, driven.activity, services.observe)
        self._book = AttemptBooking(services).book
        # Nothing can be known in a run that starts now: the unique key in the journal tells when that was wrong.
        self._fresh = driven.epoch == 1 and driven.inheritance.empty

    @cached_property
    def _batches(self) -> BatchPath:
        """The branch for batches; made by the first call that takes it."""
        return BatchPath(self._with, self._driven, self._journal, self._guard)

    @cached_property
    def _people(self) -> PeoplePath:
        """The branch for people; made by the first call that takes it."""
        return PeoplePath(self._with, self._driven, self._journal, self._guard, self._receiver)

    @property
    def halt(self) -> StopState:
        """Refuses new work of the run."""
        return self._guard.halt

    def call(
        self, agent: str | Command | Agent, request: Request, key: str, **options: Any
    ) -> Coroutine[Any, Any, Reply]:
        """Get the reply to a request, from the journal or from the agent; a second call with the same key waits."""
        calling = self._call(agent, request, key, **options)
        return calling if request.schema is None else self._parsed(calling, request.schema)

    async def _parsed(self, calling: Coroutine[Any, Any, Reply], schema: Mapping[str, Json]) -> Reply:
        """Return a reply with its data: whether it came live, from a batch or from the journal."""
        try:
            await self._with.schemas.require(schema)
        except BaseException:
            calling.close()
            raise
        return await self._with.schemas.parse(await calling, schema)

    async def _call(
        self,
        agent: str | Command | Agent,
        request: Request,
        key: str,
        *,
        timeout: float | None = None,
        on_delta: OnDelta | None = None,
        stream: bool = False,
        shown: Callable[[str], str] | None = None,
        mode: str | None = None,
        known: bool = False,
        allowance: Allowance | None = None,
        final_failures: Collection[str] = (),
        inbox: CallInbox | None = None,
        optional: bool = False,
        passage: Passage | None = None,
    ) -> Reply:
        require_key(key)
        if self.halt.error is not None:
            await self.halt.admit()
        asking = self._asking(agent, request, key, timeout)
        await self._tell(asking.notes)
        asking.on_delta, asking.streams, asking.shown = on_delta, stream or on_delta is not None, shown
        asking.part = self._part(allowance)
        asking.final_failures = final_failures
        asking.inbox, asking.optional, asking.passage = inbox, optional, passage
        if key in self._open_calls:
            joined = await self._open_calls.join(key, asking.identity.digest)
            if joined is not None:
                return joined
        self._open_calls.begin(asking)
        outcome: Reply | Exception | None = None
        try:
            if known:
                reply = await self._recall(asking)
            elif isinstance(agent, Command):
                reply = await self._ask_live(asking)
            else:
                found = await self._look_and_ask(asking, mode_of(mode) if mode else self._dispatch.mode)
                reply = found if found is not None else await self._ask(asking)
            outcome = reply = reply if reply.content is None else with_place(reply, asking.request)
            await self._tell(cut_answers(asking.agent.profile.name, asking.request, reply))
            if asking.over is not None:
                asking.over.set_result(reply)
            return reply
        except Exception as error:
            outcome = error
            if isinstance(error, StopRun):
                await self._note_stop(asking, error)
            if asking.over is not None:
                asking.over.set_exception(error)
                asking.over.exception()  # whoever waited may be gone
            raise
        finally:
            self._open_calls.end(asking, outcome)

    async def _note_stop(self, asking: CallState, error: StopRun) -> None:
        """Note what is raised to the workload now, unless it concerns only this call."""
        await self.halt.wait()
        if not _is_of_call(asking, error):
            self.halt.note(error)

    def on_wire(self, key: str) -> bool:
        """Return whether the agent of a call is at work on it."""
        return self._open_calls.on_wire(key)

    async def drain(self) -> None:
        """Close what a workload left behind."""
        await self._open_calls.drain()

    async def overdraft(self) -> Overdraft | None:
        """Return how the run exceeded a budget, if it did."""
        store, excess = self._with.store, self._guard.excess
        if excess is None and self._epoch > 1:
            excess = await first_excess(store, self._run)
        return await overdraft_of(store, self._run, self._levels, excess, self._with.clock.now())

    async def _tell(self, notes: Sequence[AgentNote]) -> None:
        """Write once in the run what is to be known of what an agent is asked."""
        for note in notes:
            if (note.event, note.agent) not in self._told:
                self._told.add((note.event, note.agent))
                await self._write(note)

    async def _write(self, note: AgentNote) -> None:
        self._with.notes.setdefault((note.event, note.agent), note)
        await self._with.store.journal.record(
            Record(
                run=self._run,
                epoch=self._epoch,
                key=f"{note.event}/{note.agent}",
                kind=EntryKind.EMIT,
                digest=digest({"kind": str(EntryKind.EMIT)}),
                value=note.told(),
                at=self._with.clock.now(),
                kind_of_event=note.event,
            )
        )

    def _part(self, allowance: Allowance | None) -> Level | None:
        if allowance is None:
            return None
        return Level(id=part_level(self._levels.lineage.id, allowance.name), cap=allowance.cap)

    def _asking(self, who: str | Command | Agent, request: Request, key: str, timeout: float | None) -> CallState:
        agent = self._find(who)
        timeouts = agent.profile.allow(request, self._with.timeouts, timeout)
        lowered = agent.profile.lowered(request, self._rules)
        request, unsent = (agent.profile.complete(request, self._rules) if request.wire is None else request), None
        if request.has_blocks:
            request, unsent = fit_content(request, agent.profile, self._rules)
        if self._driven.attached:
            request = request.attach(self._driven.attached)
        identity = identify(agent.profile.name, request)
        if isinstance(who, Command):  # it may say nothing until it is done, and takes any text
            timeouts, identity = replace(timeouts, idle=timeouts.call), replace(identity, half="")
        notes = tuple(note for note in (lowered, unsent) if note is not None)
        return CallState(agent=agent, request=request, key=key, identity=identity, timeouts=timeouts, notes=notes)

    def _find(self, who: str | Command | Agent) -> Agent:
        """Return who is asked; where that cannot be, the run stops, whatever its workload makes of the error."""
        directory = self._with.directory
        if not isinstance(who, str | Command):
            return who
        try:
            return directory.command(who) if isinstance(who, Command) else directory.find(who)
        except BadConfiguration as error:
            unusable = AgentUnusable.of(error, who.name if isinstance(who, Command) else who)
            self.halt.note(unusable)
            raise unusable from None

    def _look_and_ask(self, asking: CallState, mode: Mode) -> Coroutine[Any, Any, Reply | None]:
        """Choose the way of a call; no coroutine of its own, because thousands of calls may be parked below it."""
        if asking.agent.profile.person:
            return self._people.ask(asking)
        if mode is Mode.BATCH and not self._inheritance.replays:
            batching = self._with.directory.batching(asking.agent.profile.name)
            if batching is not None:
                return self._batches.ask(asking, batching.of(asking.request))
        if mode is Mode.FLEX and not self._inheritance.replays:
            return self._ask_in_flex(asking)
        return self._ask_live(asking)

    async def _ask_in_flex(self, asking: CallState) -> Reply:
        """Ask in the tier flex; where it refuses or takes too long, in the standard one if the run says so."""
        agent = asking.agent.profile
        flex = self._with.directory.flex(agent.name)
        if flex is not None:
            asking.ask_in_flex(flex, falls_back=self._dispatch.fallback is Fallback.LIVE)
        elif agent.provider:
            await self._tell([AskedLive(agent=agent.name)])
        return await self._ask_live(asking)

    async def _ask_live(self, asking: CallState) -> Reply:
        if self._fresh:
            try:
                return await self._ask(asking)
            except KeyTaken:
                self._fresh = False  # this workload comes back to its keys: look before asking, from now on
        entry = await self._journal.find(asking.key, asking.identity.digest, failures=asking.final_failures)
        if entry is not None and entry.reply is not None:
            return entry.reply
        asking.turn = 0
        if entry is not None:
            asking.learn(entry)
        return await self._ask(asking)

    async def _recall(self, asking: CallState) -> Reply:
        """Return a reply that is known, and ask nobody."""
        entry = await self._journal.find(asking.key, asking.identity.digest, final=True)
        if entry is None or entry.reply is None:
            raise ReplayMiss(f"the answer to {asking.key!r} is not known, and nobody is to be asked for it")
        return entry.reply

    async def _ask(self, asking: CallState) -> Reply:
        require_unicode(asking)
        if asking.request.has_media:
            asking.request = await self._with.media.keep(self._run, asking.request)
        while True:
            asking.turn += 1
            asking.attempts += 1
            result = await self._attempt(asking)
            if isinstance(result, Reply):
                return result
            with self._activity.waiting():
                await self._with.clock.sleep(result.delay)
            asking.paused += result.delay
            self._guard.check()

    async def _attempt(self, asking: CallState) -> Reply | Again:
        """Steps 2 to 6, once; money that may still come back is waited for without holding a place."""
        quote = _quote(asking)
        self._levels.require_call(quote.most)
        began = self._with.clock.monotonic()
        turn = self._with.budget_queue.turn()
        try:
            while True:
                levels = asking.levels(self._levels, self._with.clock.now())
                async with self._admission(asking, quote, levels, turn) as admission:
                    self._guard.check()
                    waited = self._with.clock.monotonic() - began
                    seen = self._with.budget_queue.commits
                    started = await self._open(asking, quote, levels, turn, waited)
                    if isinstance(started, Started):
                        answer = await self._exchange.send(asking, started, admission)
                        break
                with self._activity.waiting():
                    await self._wait_for_money(asking, turn, started, seen, began)
        finally:
            turn.end()
        return await self._settle(asking, started, answer)

    async def _wait_for_money(self, asking: CallState, turn: BudgetTurn, wait: Wait, seen: int, began: float) -> None:
        """Wait until money may have come back; an exchange, whose client waits too, only as long as it may."""
        if asking.passage is None:
            await turn.wait(wait.level, seen)
            return
        left = asking.passage.patience - (self._with.clock.monotonic() - began)
        waiting = asyncio.ensure_future(turn.wait(wait.level, seen))
        timer = asyncio.ensure_future(self._with.clock.sleep(max(left, 0.0)))
        try:
            await asyncio.wait({waiting, timer}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise held_by_others(wait.level, asking.passage.patience)
        finally:
            timer.cancel()
            waiting.cancel()
            await asyncio.wait({waiting, timer})

    def _admission(self, asking: CallState, quote: Quote, levels: tuple[Level, ...], turn: BudgetTurn) -> Admission:
        """Step 2: a place in the run and a place at the provider."""
        profile = asking.agent.profile
        return Admission(
            limiter=self._with.limiters.get(profile.limiter, profile.pace),
            tokens=quote.tokens,
            places=self.places,
            turn=turn,
            levels=levels,
            activity=self._activity,
        )

    async def _open(
        self, asking: CallState, quote: Quote, levels: tuple[Level, ...], turn: BudgetTurn, waited: float
    ) -> Started | Wait:
        """Step 3: reserve the money and write that the attempt starts."""
        started = Started(
            id=AttemptId(run=self._run, key=asking.key, n=asking.attempts, epoch=self._epoch),
            most=quote.most,
            levels=levels,
            waited=waited,
            standard=quote.standard,
        )
        self._with.kill.reach("call.before_open")
        written = asyncio.ensure_future(
            self._with.store.journal.open(
                Opening(
                    attempt=started.id,
                    digest=asking.identity.digest,
                    agent=asking.agent.profile.name,
                    request=asking.identity.text,
                    most=quote.most,
                    levels=levels,
                    at=self._with.clock.now(),
                    first=not asking.known,
                    reopens=asking.failed,
                )
            )
        )
        try:
            decision = await written
        except asyncio.CancelledError:
            # It is written all the same, and by now: take it back.
            if written.exception() is None and written.result() == GRANTED:
                self._tell_begin(started)
                self._book(started, Unsent())
            raise
        if isinstance(decision, Granted):
            asking.known, asking.failed = True, False
            self._tell_begin(started)
            turn.end(levels)
            self._with.kill.reach("call.opened")
            return started
        if isinstance(decision, Refused):
            turn.end(levels)
            raise decision.error
        return decision

    def _tell_begin(self, started: Started) -> None:
        if self._with.observe is not None:
            self._with.observe(AttemptBegan(started.id, started.waited))

    async def _settle(self, asking: CallState, started: Started, answer: Reply | WireError) -> Reply | Again:
        """Steps 5 and 6: decide what an error means, write the outcome, then return, raise or try again."""
        self._with.kill.reach("call.answered")
        if isinstance(answer, Reply):
            reply = started.finish(answer, asking.wire)
            settled = await self._book(started, Replied(reply=reply), asking)
            self._with.kill.reach("call.settled")
            return reply if settled.kept else await self._stored_reply(asking, reply)
        decision = self._decide(asking, answer)
        failed = replace(
            failed_of(answer),
            again_in=decision.delay if isinstance(decision, Again) else None,
            gives_up=isinstance(decision, GiveUp) and self._guard.refusal is None,
        )
        settled = await self._book(started, failed, asking)
        self._with.kill.reach("call.settled")
        if settled.overdraft:
            self._guard.add_excess(asking.key, settled.cost, started.most)
        self._guard.check()
        if isinstance(decision, Again):
            return decision
        raise _last_word(asking, answer, decision)

    async def _stored_reply(self, asking: CallState, reply: Reply) -> Reply:
        """Return the reply that stands in the journal: a late one of a driver before may have been faster."""
        entry = await self._with.store.journal.find(self._run, asking.key)
        return reply if entry is None or entry.reply is None else entry.reply

    def _decide(self, asking: CallState, error: WireError) -> RetryDecision:
        if asking.passage is not None:
            return GiveUp(exhausted=False)  # whoever sent it knows best whether to send it again
        decision = decide(error, asking.turn, self._with.policy, self._with.random)
        over = self._guard.refusal is not None or asking.wire >= asking.timeouts.call
        if not over and asking.standard is not None and error.retryable and _is_late(asking, decision):
            asking.leave_flex()
            return Again(delay=0.0)
        return GiveUp(exhausted=True) if over and isinstance(decision, Again) else decision


def _quote(asking: CallState) -> Quote:
    try:
        return asking.agent.quote(asking.request)
    except BadConfiguration as error:  # no price is known
        raise AgentUnusable.of(error, asking.agent.profile.name) from None


def _is_late(asking: CallState, decision: RetryDecision) -> bool:
    """Return whether another attempt in the tier flex would begin too late, or is one too many."""
    return not isinstance(decision, Again) or asking.time_left <= decision.delay


def _is_of_call(asking: CallState, error: StopRun) -> bool:
    """Return whether a refusal concerns one call and not the run: of its allowance, of an optional one, an exchange."""
    if asking.passage is not None and isinstance(error, WireError):
        return True  # a key that the provider refuses: whoever sent the request is told
    of_part = asking.part is not None and isinstance(error, BudgetExhausted) and error.level == asking.part.id
    return of_part or (asking.optional and isinstance(error, BudgetExhausted))


def _last_word(asking: CallState, error: WireError, decision: RetryDecision) -> WireError:
    if isinstance(decision, GiveUp) and decision.exhausted:
        attempts = "1 attempt" if asking.turn == 1 else f"{asking.turn} attempts"
        message = f"call {asking.key!r} failed after {attempts}: {error.message}"
        return RetriesExhausted(message, last=error)
    return error
