"""A call under way: what is asked, how far it is, what all calls of a process share, and how an attempt is booked."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, Protocol

from muster.agents.base import Agent, Directory, OnDelta
from muster.domain.agent import Timeouts
from muster.domain.budget import Level
from muster.domain.call import Identity, Reply, Request
from muster.domain.canonical import Json
from muster.domain.entry import AttemptId, Failed, Outcome, Settled, Settlement
from muster.domain.errors import InvalidRequest, Paid, WireError
from muster.domain.money import Lane, Microdollars
from muster.domain.run import Driver
from muster.engine.admission import BudgetQueue
from muster.engine.batches.batcher import Batcher
from muster.engine.clock import Clock
from muster.engine.killpoints import KillPoints
from muster.engine.limiter import Limiters
from muster.engine.retry import RetryPolicy
from muster.store.base import Store


class Schemas(Protocol):
    """JSON Schemas of requests: checked before a call is made, and applied to every reply that leaves the call path."""

    def require(self, schema: Mapping[str, Json]) -> None:
        """Raise InvalidRequest for a mapping that is not a JSON Schema."""

    def parse(self, reply: Reply, schema: Mapping[str, Json]) -> Reply:
        """Return the reply with its answer as data, or with the reason why that does not fit the schema."""


@dataclass(slots=True)
class WireCount:
    """How many calls of this process wait for their agents: counted where they are sent, asked by whoever shows it."""

    open: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
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
    batcher: Batcher
    is_gone: Callable[[Driver], bool]  # whether a driver is certainly dead
    sees: Callable[[Driver], bool]  # whether this process can tell; if not, the lease decides
    reap: Callable[[], Awaitable[object]]  # ends the processes that dead drivers left behind
    schemas: Schemas
    wire_count: WireCount = field(default_factory=WireCount)


@dataclass(slots=True, kw_only=True)
class CallState:
    """One call under way."""

    agent: Agent
    request: Request
    key: str
    identity: Identity
    timeouts: Timeouts
    on_delta: OnDelta | None = None
    streams: bool = False
    attempts: int = 0  # made so far, by older drivers too
    known: bool = False  # the call is in the journal
    failed: bool = False  # the journal says it failed
    turn: int = 0  # attempts made by this driver; in batches also by older ones
    base: int = 0  # attempts made before the call was given up the last time
    wire: float = 0.0  # seconds on the wire so far
    sent_at: float = 0.0  # when it last went on the wire
    task: "asyncio.Task[object] | None" = None  # who waits for it
    over: "asyncio.Future[Reply] | None" = None  # made when somebody else waits for this call


def require_unicode(asking: CallState) -> None:
    """Refuse a request that is not Unicode before anything is sent: a provider would refuse its whole batch."""
    if asking.identity.half:
        raise InvalidRequest(
            f"call {asking.key!r}: {asking.identity.half} holds half of a surrogate pair, which is not valid Unicode",
            suggestions=("take it out, or replace it: text.encode('utf-8', 'replace').decode()",),
        )


class Started(NamedTuple):
    """An attempt whose money is reserved."""

    id: AttemptId
    most: Microdollars
    levels: tuple[Level, ...]
    waited: float


class AttemptBooking:
    """Books attempts of live calls."""

    def __init__(self, equipment: CallServices) -> None:
        self._with = equipment

    def book(self, started: Started, outcome: Outcome, asking: CallState | None = None) -> "asyncio.Future[Settled]":
        """Queue the settlement of an attempt; it is written whether or not anybody waits for it."""
        return asyncio.ensure_future(
            self._with.store.journal.settle(
                Settlement(
                    attempt=started.id,
                    outcome=outcome,
                    reserved=started.most,
                    levels=started.levels,
                    at=self._with.clock.now(),
                    streamed=asking is not None and asking.streams,
                )
            )
        )


def failed_of(error: WireError) -> Failed:
    """Write down a failure with what it cost, as far as anybody knows."""
    return Failed(
        error=error.record(),
        uncertain=error.paid is Paid.UNKNOWN,
        cost=Microdollars(error.cost),
        lane=Lane.IMPUTED if error.imputed else Lane.BILLED,
    )
