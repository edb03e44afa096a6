"""A call under way: what is asked, how far it is, what all calls of a process share, and how an attempt is booked."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, NamedTuple, Protocol

from muster.agents.base import Agent, Directory, OnDelta
from muster.domain.agent import Timeouts
from muster.domain.budget import Level
from muster.domain.call import Identity, Reply, Request
from muster.domain.canonical import Json
from muster.domain.content import AgentNote
from muster.domain.entry import AttemptId, Entry, EntryState, Failed, Outcome, Replied, Settled, Settlement
from muster.domain.errors import InvalidRequest, Paid, WireError
from muster.domain.ids import RunId
from muster.domain.money import NOTHING, Lane, Microdollars
from muster.domain.observation import AttemptEnded, CallBegan, CallEnded, Observer
from muster.domain.price import Price, ServiceTier
from muster.domain.run import Driver
from muster.engine.base.clock import Activity, Clock
from muster.engine.base.driven_run import Levels, require_same
from muster.engine.base.killpoints import KillPoints
from muster.engine.base.media import MediaFiles
from muster.engine.base.signals import CallInbox
from muster.engine.calls.admission import BudgetQueue
from muster.engine.calls.flow import Passage
from muster.engine.calls.limiter import Limiters
from muster.engine.calls.retry import RetryPolicy
from muster.store.base import Store

if TYPE_CHECKING:
    from muster.engine.batches.batcher import Batcher  # loaded when it is made


class Schemas(Protocol):
    """JSON Schemas of requests: checked before a call is made, and applied to every reply that leaves the call path."""

    async def require(self, schema: Mapping[str, Json]) -> None:
        """Raise InvalidRequest for a mapping that is not a JSON Schema."""

    async def parse(self, reply: Reply, schema: Mapping[str, Json]) -> Reply:
        """Return the reply with its answer as data, or with the reason why that does not fit the schema."""


@dataclass(slots=True)
class WireCount:
    """How many calls of this process wait for their agents: counted where they are sent, asked by whoever shows it."""

    open: int = 0


class LazyBatcher:
    """The batcher of a process, made when a call is first parked or a batch is taken up: live calls need none."""

    def __init__(self, make: "Callable[[], Batcher]") -> None:
        self._make = make
        self.made: Batcher | None = None

    def get(self) -> "Batcher":
        """Return the batcher; the first time it is made."""
        if self.made is None:
            self.made = self._make()
        return self.made

    async def close(self) -> None:
        """Close the batcher, if there is one."""
        if self.made is not None:
            await self.made.close()


@dataclass(frozen=True, kw_only=True)  # without slots: one of them is made when it is first used
class CallServices:
    """What the call paths of all runs of a process share."""

    store: Store
    directory: Directory
    limiters: Limiters
    budget_queue: BudgetQueue
    clock: Clock
    random: Random
    kill: KillPoints
    policy: RetryPolicy
    timeouts: Timeouts
    batcher: LazyBatcher
    is_gone: Callable[[Driver], bool]  # whether a driver is certainly dead
    sees: Callable[[Driver], bool]  # whether this process can tell; if not, the lease decides
    reap: Callable[[], Awaitable[object]]  # ends the processes that dead drivers left behind
    schemas: Schemas
    wire_count: WireCount = field(default_factory=WireCount)
    notes: dict[tuple[str, str], AgentNote] = field(default_factory=dict)  # by event and agent, of all runs here
    observe: Observer | None = None

    @cached_property
    def media(self) -> MediaFiles:
        """The images and documents of the store, some of them at hand."""
        return MediaFiles(self.store)


FLEX_SECONDS = 120.0  # that a call waits for the tier flex before it is asked in the standard one


@dataclass(slots=True, kw_only=True)
class CallState:
    """One call under way."""

    agent: Agent  # who is asked next
    request: Request
    key: str
    identity: Identity
    timeouts: Timeouts
    notes: tuple[AgentNote, ...] = ()  # what the run says about what is asked
    part: Level | None = None  # a budget of its own, below those of the run
    on_delta: OnDelta | None = None
    streams: bool = False
    shown: Callable[[str], str] | None = None  # what is told of the text so far
    final_failures: Collection[str] = ()  # codes of those that are not tried again
    inbox: CallInbox | None = None  # what reaches the agent while it works
    optional: bool = False  # its workload can do without it when a budget does not cover it
    passage: Passage | None = None  # of an exchange, which is sent once and never again
    attempts: int = 0  # made so far, by older drivers too
    known: bool = False  # the call is in the journal
    failed: bool = False  # the journal says it failed
    turn: int = 0  # attempts made by this driver; in batches also by older ones
    base: int = 0  # attempts made before the call was given up the last time
    wire: float = 0.0  # seconds on the wire so far
    standard: Agent | None = None  # who is asked where the tier flex refuses or takes too long
    paused: float = 0.0  # seconds between the attempts
    sent_at: float = 0.0  # when it last went on the wire
    on_wire: bool = False  # its agent is at work
    task: "asyncio.Task[object] | None" = None  # who waits for it
    over: "asyncio.Future[Reply] | None" = None  # made when somebody else waits for this call

    @property
    def time_left(self) -> float:
        """How many seconds it may still be on the wire; in the tier flex, while there is another, at most half."""
        left = self.timeouts.call - self.wire
        if self.standard is None:
            return left
        return min(FLEX_SECONDS, self.timeouts.call / 2) - self.wire - self.paused

    def ask_in_flex(self, agent: Agent, *, falls_back: bool) -> None:
        """Ask in the tier flex first, and in the standard one later where the run says so."""
        self.agent, self.standard = agent, self.agent if falls_back else None

    def leave_flex(self) -> None:
        """Ask in the standard tier from now on, with as many attempts as a call that was never asked otherwise."""
        if self.standard is not None:
            self.agent, self.standard, self.turn = self.standard, None, 0

    def learn(self, entry: Entry) -> None:
        """Take over what the journal says of the call."""
        self.known, self.attempts = True, entry.attempts
        self.failed = entry.state is EntryState.FAILED

    def levels(self, run: Levels, at: float) -> tuple[Level, ...]:
        """Return the budgets that it counts under, in the order in which they are locked."""
        levels = run.now(at)
        return levels if self.part is None else tuple(sorted((*levels, self.part), key=lambda level: level.id))

    async def wait(self) -> "asyncio.Future[Reply]":
        """Wait until the call is over, and return its outcome; canceled when the call was."""
        if self.over is None:
            self.over = asyncio.get_running_loop().create_future()
        await asyncio.wait({self.over})
        return self.over


class OpenCalls:
    """The calls of a run that are under way, one for each key."""

    def __init__(self, run: RunId, activity: Activity, observe: Observer | None) -> None:
        self._run, self._activity, self._observe = run, activity, observe
        self._by_key: dict[str, CallState] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def on_wire(self, key: str) -> bool:
        """Return whether the agent of a call is at work on it."""
        asking = self._by_key.get(key)
        return asking is not None and asking.on_wire

    async def join(self, key: str, digest: str) -> Reply | None:
        """Wait for the call under this key and return its reply; None when it was canceled and the turn is ours."""
        while key in self._by_key:
            asking = self._by_key[key]
            require_same(key, asking.identity.digest, digest)
            over = await asking.wait()
            if not over.cancelled():
                return over.result()
        return None

    def begin(self, asking: CallState) -> None:
        """Count a call of the current task."""
        self._by_key[asking.key] = asking
        asking.task = asyncio.current_task()
        self._activity.open_call()
        if self._observe is not None:
            self._observe(CallBegan(self._run, asking.key, asking.agent.profile, asking.request))

    def end(self, asking: CallState, outcome: Reply | Exception | None) -> None:
        """Count a call no longer; whoever waits for one without an outcome learns that it was canceled."""
        if self._observe is not None:
            self._observe(CallEnded(self._run, asking.key, outcome))
        self._activity.close_call()
        del self._by_key[asking.key]
        if asking.over is not None:
            asking.over.cancel()  # does nothing to one that has an outcome

    async def drain(self) -> None:
        """Cancel all calls and wait until they are over, so that no attempt stays without settlement."""
        while self._by_key:  # looked at anew each time: others may end while one is waited for
            asking = next(iter(self._by_key.values()))
            if asking.task is not None:
                asking.task.cancel()
            await asking.wait()


def require_unicode(asking: CallState) -> None:
    """Refuse a request that is not Unicode before anything is sent: a provider would refuse its whole batch."""
    if asking.identity.half:
        raise InvalidRequest(
            f"call {asking.key!r}: {asking.identity.half} has half of a surrogate pair, which is not valid Unicode",
            suggestions=("remove it, or replace it: text.encode('utf-8', 'replace').decode()",),
        )


class Started(NamedTuple):
    """An attempt whose money is reserved."""

    id: AttemptId
    most: Microdollars
    levels: tuple[Level, ...]
    waited: float
    standard: Price | None = None  # what the standard tier costs, where flex may serve instead

    def live_cost(self, outcome: Outcome) -> Microdollars:
        """Return what an answer of the tier flex would have cost in the standard one; nothing of any other answer."""
        if self.standard is None or not isinstance(outcome, Replied):
            return NOTHING
        reply = outcome.reply
        is_compared = reply.tier == ServiceTier.FLEX and reply.lane is not Lane.UNCERTAIN
        return self.standard.cost(reply.usage) if is_compared else NOTHING

    def finish(self, answer: Reply, wire: float) -> Reply:
        """Return an answer as the reply that is booked for this attempt."""
        return answer.booked(self.most).finished(self.id.n, self.waited, wire)


class AttemptBooking:
    """Books attempts of live calls."""

    def __init__(self, services: CallServices) -> None:
        self._with = services

    def book(self, started: Started, outcome: Outcome, asking: CallState | None = None) -> "asyncio.Future[Settled]":
        """Queue the settlement of an attempt; it is written even if nothing waits for it."""
        if self._with.observe is not None:
            self._with.observe(AttemptEnded(started.id, outcome))
        return asyncio.ensure_future(
            self._with.store.journal.settle(
                Settlement(
                    attempt=started.id,
                    outcome=outcome,
                    reserved=started.most,
                    levels=started.levels,
                    at=self._with.clock.now(),
                    streamed=asking is not None and asking.streams,
                    live_cost=started.live_cost(outcome),
                )
            )
        )


def failed_of(error: WireError) -> Failed:
    """Record a failure with its cost, as far as it is known."""
    return Failed(
        error=error.record(),
        uncertain=error.paid is Paid.UNKNOWN,
        cost=Microdollars(error.cost),
        lane=Lane.IMPUTED if error.imputed else Lane.BILLED,
    )
