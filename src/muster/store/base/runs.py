"""The runs of a store: found, commanded from outside, driven by one driver at a time; their workers and processes."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from muster.domain.budget import Balance
from muster.domain.canonical import Json
from muster.domain.entry import AwaitedSignal
from muster.domain.ids import BatchId, RunId
from muster.domain.money import NOTHING, Microdollars
from muster.domain.run import Driver, NewRun, OwnedProcess, Run, RunState, StartRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A lease that was won, and what the driver before left open."""

    epoch: int
    uncertain: int = 0
    uncertain_cost: Microdollars = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRelease:
    """How a driver lets go of a run; an interrupted one can be taken up again."""

    state: RunState
    reason: str
    at: float
    result: Any = None
    error: Mapping[str, Json] | None = None
    active: float = 0.0
    awaited: tuple[AwaitedSignal, ...] = ()  # what a run waits for that is let go of for that


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """A run of which hooks are to be told."""

    run: RunId
    seq: int  # higher when the run has changed again
    tries: int = 0  # how often it was taken before


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """A page of runs, the newest first: of some states and workloads, of one user, of one agent, older than a run."""

    states: tuple[str, ...] = ()  # none: all
    workloads: tuple[str, ...] = ()
    owner: str | None = None  # None: of everybody
    agent: str | None = None  # that they, or runs under them, have called; None: any
    since: float = 0.0  # created then or later
    until: float | None = None  # created before; None: until now
    roots: bool = False  # without children
    name: str | None = None  # None: any
    search: str = ""  # in id, name, workload or tags
    searched_workloads: tuple[str, ...] = ()  # that a search finds too, whatever they are called in the store
    before: tuple[float, str] | None = None  # when the last run of the page before was created, and its id
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTurn:
    """Whose turn it is: clients come one after the other, so that none with many runs keeps the others waiting."""

    workloads: tuple[str, ...]
    after: str = ""  # the client that had the turn before; empty: somebody at this machine
    full: frozenset[str] = frozenset()  # clients whose runs have to wait
    passed: frozenset[RunId] = frozenset()  # runs that are left alone


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptState:
    """What somebody may have to go on with, at one moment."""

    driven: Sequence[Run]  # by drivers that are dead or alive
    signals_due: bool  # the time of a run that waits for a signal is over
    orphans: Sequence[BatchId]  # batches of canceled runs that nobody has canceled yet


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedRuns:
    """The runs that a fleet has before it, at one moment."""

    due: Sequence[Run] = ()  # the oldest that wait for a worker, and a page behind them
    after: Run | None = None  # the last run of that page; None: the next page is the first one again
    driven: Sequence[Run] = ()  # by drivers that are dead or alive, children too
    waiting: Sequence[Run] = ()  # the newest that are not due before somebody answers


class RunQueue(Protocol):
    """What waits for workers, read by them: however many runs wait, one look costs the same.

    The first worker of a machine asks again and again for `left_behind` and `unfinished`, each in one transaction.
    """

    async def workloads(self) -> Sequence[str]:
        """Return the workloads of runs that wait for a worker."""

    async def next(self, turn: QueueTurn) -> Run | None:
        """Return the oldest run of the client whose turn it is; None when no client has one that may be taken."""

    async def starts(self, since: float) -> Sequence[tuple[str, float]]:
        """Return the clients whose requests started runs after a time, and when, the oldest first."""

    async def left_behind(self, at: float) -> SweptState:
        """Return what dead drivers may have left, and whose time to wait is over."""

    async def unfinished(self, wanted: Callable[[str], bool], page: int, after: Run | None) -> UnfinishedRuns:
        """Return the runs that are not over; due ones only of the workloads that are wanted.

        Of those the oldest are always returned, and one page of the others: behind the run `after`.
        """


class Announcements(Protocol):
    """Runs that have ended, or wait for a person, and of which hooks are still to be told.

    While hooks are `wanted`, the transaction that ends a run notes it here, in whichever process. A server `takes` what
    is due for some time, tells the hook, and is `done` with it; what it was not done with by then is due again.
    """

    def want(self, wanted: bool) -> Awaitable[None]:
        """Begin or end to note runs; at the end everything that was noted is forgotten."""

    async def due(self, at: float, limit: int) -> Sequence[Announcement]:
        """Return what is to be told now."""

    def take(self, one: Announcement, at: float, until: float) -> Awaitable[bool]:
        """Take what is due, until a time; False when another process was faster."""

    def done(self, one: Announcement) -> Awaitable[None]:
        """Forget what was told; a run that changed meanwhile stays to be told of."""


class RunTable(Protocol):
    """The runs of this store and what they spent.

    Runs are created by the engine and looked up by everybody. Creating a child is idempotent for its parent and key,
    a run that was requested under a key for its user and that key; of other runs the id must be new. A run has one
    continuation: whoever makes a second one, in the same lineage, gets AlreadyContinued, and nothing is stored.
    Likewise whoever makes a run that is to be the only one of its name, and is not, gets NameTaken.

    Lists are read by people (`select`, `roots`, `page`), by workers (`submitted`), by the sweep over dead drivers
    (`driven`) and by whoever forgets what is old (`ended`); `balances` by the engine before a run is driven and when it
    ends.

    What people do to runs from outside raises Conflict for a run whose state does not allow it, NotFound for one that
    is not here. A deletion that is canceled half-way leaves rows behind that `finish_deletions` removes at any time.
    """

    def create(self, new: NewRun) -> Awaitable[Run]:
        """Store a run as queued; a child that exists already is returned instead."""

    async def get(self, run: RunId) -> Run | None:
        """Return a run as it stands."""

    async def match(self, reference: str, owner: str | None = None) -> Sequence[Run]:
        """Return the runs, of one user or of all, that an id, its beginning, or a name stands for, newest first."""

    async def newest_named(self, name: str, owner: str | None = None) -> Run | None:
        """Return the newest run of a name that is not a child, of a user or of somebody at this machine."""

    async def requested(self, owner: str | None, request: StartRequest) -> Run | None:
        """Return the run that a request of a user started before; raises Conflict for another one under its key."""

    async def select(self, states: Iterable[RunState] = (), limit: int = 100) -> Sequence[Run]:
        """Return the newest runs, of these states if any are named."""

    async def roots(self, limit: int = 100) -> Sequence[Run]:
        """Return the newest runs that are nobody's children."""

    async def end_of_lineage(self, run: RunId) -> Run | None:
        """Return the run that a run was last continued as, or itself; None when it is not stored.

        If that has a continuation too, it was deleted, and it had completed.
        """

    async def submitted(self, limit: int, workloads: Iterable[str] = (), after: Run | None = None) -> Sequence[Run]:
        """Return the runs that wait for a worker, the oldest first; of some workloads, and behind a run."""

    async def driven(self) -> Sequence[Run]:
        """Return the runs that have a driver, dead or alive."""

    async def page(self, wanted: RunPage) -> Sequence[Run]:
        """Return a page of runs, the newest first."""

    async def ended(self, before: float, limit: int) -> Sequence[RunId]:
        """Return runs that are nobody's children and ended before a time, the oldest first."""

    async def balances(self, levels: Iterable[str]) -> Mapping[str, Balance]:
        """Return what budgets hold, with their caps; those that are not there are left out."""

    def cancel(self, run: RunId, at: float) -> Awaitable[Run]:
        """Ask the driver to stop; a run that nobody drives is canceled at once. Its children are treated likewise."""

    def requeue(self, run: RunId, at: float) -> Awaitable[Run]:
        """Hand a run that stands still to the workers."""

    def set_cap(self, run: RunId, cap: Microdollars, before: Microdollars | None) -> Awaitable[None]:
        """Change the budget of a run that stands still.

        Raises Conflict for one that is driven, or over, and when somebody else has changed it since it was `before`.
        """

    def amend(self, run: RunId, spec: Json) -> Awaitable[Run]:
        """Change the spec of a run that has not begun."""

    def cap_level(self, level: str, cap: Microdollars) -> Awaitable[None]:
        """Set the cap of a budget; it is made if it is not there."""

    def delete(self, run: RunId, at: float) -> Awaitable[None]:
        """Forget a run that nobody drives, no unfinished run needs and no baseline names, with everything in it.

        It is gone from the list at once; what it held goes in small transactions, so that others can write meanwhile.
        """

    def finish_deletions(self) -> Awaitable[None]:
        """Delete what is left of runs whose deletion was interrupted."""


class Leases(Protocol):
    """Who drives which run.

    Called by the engine: `claim` before a run is driven, `beat` while it is, `release` at the end, `expire` for drivers
    that are dead. Of several who claim or expire a run one wins, the others get Conflict. `beat` and `release` raise
    LeaseLost for a driver that was replaced. A claim that is canceled while it waits for a vacuum has taken nothing.
    """

    stops_drivers: bool
    """Whether drivers stop by themselves before their leases end: then one whose lease has ended drives no more."""

    def claim(
        self,
        run: RunId,
        driver: Driver,
        expected_epoch: int,
        at: float,
        until: float,
        *,
        seen_until: float | None = None,
    ) -> Awaitable[Claim]:
        """Take the run if nobody else has since; attempts left open before become uncertain.

        Whoever takes it from a driver that seems dead says until when its lease was seen to last: Conflict is raised
        if it was renewed since.
        """

    def beat(self, run: RunId, epoch: int, until: float, active: float, state: RunState) -> Awaitable[bool]:
        """Keep the lease of a run that is at work or waits; return whether somebody asked to cancel."""

    def release(self, run: RunId, epoch: int, ending: RunRelease) -> Awaitable[Run]:
        """Let go of the run in its new state; canceled, its batches are to be canceled that no other run needs."""

    def expire(
        self, run: RunId, expected_epoch: int, at: float, message: str, *, seen_until: float | None = None
    ) -> Awaitable[Claim]:
        """Mark the run of a dead driver as interrupted, or canceled if asked for; open attempts become uncertain.

        Conflict is raised when its lease lasts no longer until the time that was seen: then it lives.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentWorker:
    """A worker that has registered; it may have died since."""

    driver: Driver
    queues: frozenset[str]
    seen_at: float


class ProcessTable(Protocol):
    """Processes of ours that nobody has seen dead yet, and the workers among them.

    Written by whoever starts a process, read at the next start to end what was left behind. Noting a token again and
    forgetting an unknown one change nothing. Workers write about themselves, again and again; who they are is read
    before a run is submitted.
    """

    def note(self, process: OwnedProcess) -> Awaitable[None]:
        """Remember a process."""

    def forget(self, token: str) -> Awaitable[None]:
        """Forget a process that was seen dead."""

    async def all(self, host: str) -> Sequence[OwnedProcess]:
        """Return the processes of a host that nobody has seen dead."""

    def register(self, driver: Driver, at: float, queues: Collection[str] = ()) -> Awaitable[Sequence[PresentWorker]]:
        """Write that a worker is there, and whose runs may be left to it: those of some queues; return all workers.

        Those that have not said so for a day are forgotten.
        """

    def dismiss(self, driver: Driver) -> Awaitable[None]:
        """Write that a worker goes."""

    async def present(self, since: float) -> Sequence[PresentWorker]:
        """Return the workers that registered since then; some may have died."""
