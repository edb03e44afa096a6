"""A run: one durable piece of work, its states, and who drives it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from muster.domain.budget import Budgets, UserBudget, levels_above, run_level
from muster.domain.canonical import Json
from muster.domain.dispatch import DEFAULT_CONCURRENCY, LIVE, Dispatch
from muster.domain.errors import AwaitsSignal, Conflict, LeftWaiting, LimitReached, Overdraft
from muster.domain.ids import RunId
from muster.domain.media import Media
from muster.domain.money import NOTHING, Microdollars, usd_format
from muster.domain.rules import CURRENT_RULES, FIRST_RULES


class RunState(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"  # nobody drives it yet
    RUNNING = "running"  # a driver holds its lease
    WAITING = "waiting"  # everything in it is parked or in review
    INTERRUPTED = "interrupted"  # its driver stopped or died; it can be resumed
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    TIMEOUT = "timeout"


TERMINAL = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.CANCELED, RunState.TIMEOUT})
AT_WORK = frozenset({RunState.QUEUED, RunState.RUNNING})  # more of it comes by itself
DRIVEN = frozenset({RunState.RUNNING, RunState.WAITING})
TRACEBACK = "traceback"  # of what a workload raised, in the error of its run
FAILURES = frozenset({RunState.FAILED, RunState.TIMEOUT})

# The state that a run has after the event `run.NAME`.
_TOLD: Mapping[str, RunState] = {f"run.{state}": state for state in RunState} | {
    "run.created": RunState.QUEUED,
    "run.started": RunState.RUNNING,
    "run.resumed": RunState.RUNNING,
    "run.canceling": RunState.RUNNING,
}


def state_after(kind: str) -> RunState | None:
    """Return the state of a run after an event of a kind; None for an event about something else."""
    return _TOLD.get(kind)


_NEXT: Mapping[RunState, frozenset[RunState]] = {
    RunState.QUEUED: frozenset({RunState.RUNNING, RunState.CANCELED}),
    RunState.RUNNING: TERMINAL | {RunState.RUNNING, RunState.WAITING, RunState.INTERRUPTED},
    RunState.WAITING: TERMINAL | {RunState.RUNNING, RunState.WAITING, RunState.INTERRUPTED, RunState.QUEUED},
    RunState.INTERRUPTED: frozenset({RunState.QUEUED, RunState.RUNNING, RunState.CANCELED, RunState.INTERRUPTED}),
}


def move(state: RunState, to: RunState) -> RunState:
    """Make one step between states; terminal states are final."""
    if to not in _NEXT.get(state, frozenset()):
        raise Conflict(f"a run cannot change from {state} to {to}")
    return to


class Reuse(StrEnum):
    """What a run does with the journal of the run it comes from."""

    NOTHING = "nothing"
    REPLIES = "replies"  # a known reply is taken, a miss is paid for
    REPLAY = "replay"  # a known outcome is taken, a miss is an error
    CALLS = "calls"  # like replies, but only of calls: steps are done anew, since the work may be another by now
    RECORDED = "recorded"  # like replay, but only of calls


REPLAYS = frozenset({Reuse.REPLAY, Reuse.RECORDED})
CALLS_ONLY = frozenset({Reuse.CALLS, Reuse.RECORDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The run this one comes from, and how much of its journal counts."""

    run: RunId
    reuse: Reuse
    fork_key: str | None = None  # only entries older than this key, and not below it, count


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A process that drives runs; the start time tells it from a later one with the same pid."""

    host: str
    pid: int
    started: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who drives a run until when; the epoch fences off everybody before."""

    epoch: int
    driver: Driver | None = None
    until: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCounts:
    """How the calls of a run stand."""

    total: int = 0
    done: int = 0
    failed: int = 0
    uncertain: int = 0  # attempts whose outcome is unknown
    reused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Money of one budget, by lane, with what is still reserved."""

    reserved: Microdollars = NOTHING
    billed: Microdollars = NOTHING
    imputed: Microdollars = NOTHING
    uncertain: Microdollars = NOTHING

    @property
    def settled(self) -> Microdollars:
        """Everything that is booked for good."""
        return Microdollars(self.billed + self.imputed + self.uncertain)

    def __add__(self, other: "Spent") -> "Spent":
        """Return the money of two budgets together, lane by lane."""
        return Spent(
            reserved=Microdollars(self.reserved + other.reserved),
            billed=Microdollars(self.billed + other.billed),
            imputed=Microdollars(self.imputed + other.imputed),
            uncertain=Microdollars(self.uncertain + other.uncertain),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetedCost:
    """What something has cost, by lane, and may cost; every screen shows it from here."""

    spent: Spent = field(default_factory=Spent)
    cap: Microdollars | None = None  # None: no limit

    @property
    def total(self) -> Microdollars:
        """What counts against the budget: what was billed, what a subscription covered, and what is uncertain."""
        return self.spent.settled

    def __str__(self) -> str:
        """Return it for a person: in all, of which budget, and what of it is imputed or uncertain."""
        spent = self.spent
        usd = usd_format(self.total, self.cap, spent.imputed, spent.uncertain)
        lanes = {"imputed": spent.imputed, "uncertain": spent.uncertain}
        parts = ", ".join(f"{usd(amount)} {lane}" for lane, amount in lanes.items() if amount)
        budget = f" of {usd(self.cap)}" if self.cap is not None else ""
        return f"{usd(self.total)}{budget}" + (f" ({parts})" if parts else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class StartLimit:
    """How many runs one client may start within some seconds, at all servers of a store together."""

    most: int
    seconds: float

    def require(self, client: str, starts: int, oldest: float) -> None:
        """Raise LimitReached when a client has as many starts as it may; the oldest was so many seconds ago."""
        if starts >= self.most:
            raise LimitReached(
                f"{self.most} runs were started from {client} in the last {self.seconds:g} seconds (starts_per_minute)",
                retry_after=self.seconds - oldest,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """The request that a run was started by; sent again, it stands for the same run."""

    client: str  # its address
    key: str | None = None  # that its user chose; a second request under it starts nothing
    digest: str = ""  # of what was asked for
    earlier: tuple[str, ...] = ()  # digests that older programs made of it; are not stored
    id: str | None = None  # under which logs tell of it
    limit: StartLimit | None = None  # held when the run is stored; is not stored itself

    def asks_for(self, stored: "StartRequest") -> bool:
        """Return whether a stored request asked for the same."""
        return stored.digest in (self.digest, *self.earlier)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """What is known of a run before it starts."""

    id: RunId
    workload: str
    spec: Any
    created_at: float
    name: str | None = None
    is_only: bool = False  # its user has no other run of that name; is not stored
    tags: tuple[str, ...] = ()
    seed: int = 0
    cap: Microdollars | None = None
    timeout: float | None = None
    concurrency: int = DEFAULT_CONCURRENCY
    submitted: bool = False  # workers may drive it
    dispatch: Dispatch = LIVE
    parent: RunId | None = None
    parent_key: str | None = None
    origin: Origin | None = None
    budgets: Budgets | None = None  # none: it begins a lineage of its own
    request: StartRequest | None = None  # none: it was not started by a request to a server
    rules: int = CURRENT_RULES  # the version of its default rules; one that comes from another run has that of it
    media: tuple[Media, ...] = ()  # images and documents that its spec names, with their bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as it is stored."""

    id: RunId
    workload: str
    spec: Any
    state: RunState
    created_at: float
    lease: Lease
    name: str | None = None
    tags: tuple[str, ...] = ()
    seed: int = 0
    cap: Microdollars | None = None  # of its lineage
    timeout: float | None = None
    concurrency: int = DEFAULT_CONCURRENCY
    active: float = 0.0  # seconds of its own clock that are used up
    submitted: bool = False
    dispatch: Dispatch = LIVE
    parent: RunId | None = None
    parent_key: str | None = None
    origin: Origin | None = None
    ended_reason: str | None = None
    error: Mapping[str, Any] | None = None
    result: Any = None
    started_at: float | None = None
    ended_at: float | None = None
    cancel_requested: bool = False
    last_seq: int = 0
    calls: CallCounts = field(default_factory=CallCounts)
    spent: Spent = field(default_factory=Spent)  # by it and its children
    total: Spent = field(default_factory=Spent)  # by all runs of its lineage
    budgets: Budgets | None = None  # none: it was stored before runs kept their levels
    request: StartRequest | None = None  # none: it was not started by a request to a server
    continued_by: RunId | None = None  # the run that continues it; one that is not stored completed and was deleted
    rules: int = FIRST_RULES  # the version of its default rules; the first: it was stored before runs had one

    @property
    def cost(self) -> BudgetedCost:
        """What its lineage has cost, and may cost: a run that continues another shares its budget."""
        return BudgetedCost(spent=self.total, cap=self.cap)

    @property
    def own_cost(self) -> BudgetedCost:
        """What it has cost itself, with its children, without the runs that it continues or is continued by."""
        return BudgetedCost(spent=self.spent)

    @property
    def has_budget(self) -> bool:
        """Return whether any budget but those of the runs above it may bound what it spends."""
        found = self.budgets
        if self.cap is not None or found is None:
            return self.cap is not None
        by_user = found.user is not None and found.user.day_cap is not None
        return found.day_cap is not None or by_user or len(found.above) > len(levels_above(found))

    @property
    def lineage_level(self) -> str:
        """The level that counts what its lineage spends; of a run without stored levels its own."""
        return self.budgets.lineage if self.budgets else run_level(self.id)

    @property
    def owner(self) -> str | None:
        """The user that it was started by, or the run that it comes from; None for somebody at this machine."""
        return self.budgets.user.name if self.budgets and self.budgets.user else None

    @property
    def is_driven(self) -> bool:
        """Return whether a process drives it; a run may also wait for its batches without one."""
        return self.state in DRIVEN and self.lease.driver is not None

    @property
    def is_detached(self) -> bool:
        """Return whether it was left waiting for its batches, or for a signal, on purpose."""
        return self.state is RunState.WAITING and self.ended_reason in (LeftWaiting.code, AwaitsSignal.code)

    @property
    def failure(self) -> Mapping[str, Json] | None:
        """The error without its traceback, which names files of the machine that drove it."""
        return None if self.error is None else {name: self.error[name] for name in self.error if name != TRACEBACK}

    @property
    def overdraft(self) -> Mapping[str, Json] | None:
        """Return the error of a run that completed over a budget."""
        if self.ended_reason != Overdraft.code or not self.error:
            return None
        return {name: self.error[name] for name in ("code", "message", "suggestions")}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedProcess:
    """One process of a driver, or with no number all that carry its token and a further part."""

    token: str  # carried in the environment of the process and of all its descendants
    driver: Driver
    at: float
    pid: int | None = None
    started: str | None = None  # the boot and the tick, so that a later process with this number is another one
    agent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who uses Muster: somebody at this machine, or a user of a server, who can name no files of it."""

    local: bool = False  # somebody at this machine, with its files; not through a server
    name: str | None = None  # of their token; None: no token is needed
    sees_all: bool = True  # the runs of everybody, not only those that they started
    day_cap: Microdollars | None = None
    request: StartRequest | None = None  # that starts a run
    run: RunId | None = None  # the id that they chose for it
    queued: bool = False  # a program that puts jobs into the queue: the worker that takes the job also drives the run
    level: str | None = None  # a budget that all runs which they start count under, such as that of an MCP server

    @property
    def owner(self) -> str | None:
        """The user whose runs are to be seen; None: everybody's."""
        return None if self.sees_all else self.name

    @property
    def budget(self) -> UserBudget | None:
        """The budget that runs of this user count under."""
        return None if self.name is None else UserBudget(name=self.name, day_cap=self.day_cap)


AT_THIS_MACHINE = User(local=True)
