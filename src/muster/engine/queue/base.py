"""The seam between workers and whatever tells them which runs are due.

A run is in the store, and a lease there says who drives it. What is delivered is only the id of a run that may be due:
it may come late, twice or never, and whoever receives it looks at the store first. The store itself is the first
implementation (`StoreDelivery`), a queue on a server the second (`fleet.FleetDelivery`).
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from muster.domain.canonical import Json
from muster.domain.errors import (
    AwaitsSignal,
    BadArgument,
    BadConfiguration,
    BadFile,
    BudgetExhausted,
    FixSpec,
    KeyReused,
    ReplayMiss,
    RunCanceled,
)
from muster.domain.ids import RunId
from muster.domain.run import Run, RunState

BATTLES, SCALE_TESTS, RUNS = "battles", "scale-tests", "runs"
QUEUES = (BATTLES, SCALE_TESTS, RUNS)

_QUEUE_OF = {"battle": BATTLES, "scale": SCALE_TESTS}


def queue_of(workload: str) -> str:
    """Return the queue through which runs of a workload are announced."""
    return _QUEUE_OF.get(workload, RUNS)


def is_due(run: Run) -> bool:
    """Return whether a run waits for a driver: one that was submitted, or a child whose parent waits for it."""
    if run.lease.driver is not None or run.continued_by is not None or not (run.submitted or run.parent is not None):
        return False
    if run.state is RunState.WAITING:
        return run.ended_reason != AwaitsSignal.code
    return run.state in (RunState.QUEUED, RunState.INTERRUPTED)


_FIXES = (FixSpec, BadArgument, BadFile, BadConfiguration, KeyReused, ReplayMiss)
_UNRECOVERABLE = frozenset(kind.code for kind in (BudgetExhausted, RunCanceled, *_FIXES))


def is_recoverable(run: Run) -> bool:
    """Return whether a run has failed in a way that a continuation may get over by itself."""
    return run.state in (RunState.FAILED, RunState.TIMEOUT) and run.ended_reason not in _UNRECOVERABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """What was found in a queue: the id of a run, or work that another program asks for."""

    id: str
    queue: str
    data: Any
    added_at: int = 0  # in milliseconds, by the clock of whoever added it
    failures: int = 0  # attempts of the job that have failed before this one

    @property
    def run(self) -> RunId | None:
        """The run that it announces; None for work that has no run yet."""
        found = self.data.get("run") if isinstance(self.data, Mapping) else None
        return RunId(found) if isinstance(found, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAnswer:
    """What becomes of a job: it is done, it failed, or it comes again after some seconds."""

    value: Any = None
    failure: str = ""
    retryable: bool = False  # another attempt of the job may go on where this one failed
    again_in: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedRun:
    """A run as it is after it was offered to a worker, and whether the worker drove it."""

    run: Run | None
    taken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryLook:
    """What a worker is to do now: take runs of some queues out of the store, and be counted among the workers."""

    take: frozenset[str]
    present: bool = True
    serves: bool = True  # others may leave runs of its queues to it
    nothing_due: bool = False  # as was read a moment ago: the worker need not look for runs that nobody told of
    offers_later: bool = False  # a run that was passed over while its client had enough is offered again only later


OfferRun = Callable[[RunId], Awaitable[OfferedRun]]  # drives a run if it is due
HandleJob = Callable[[QueuedJob], Awaitable[JobAnswer]]
# Stores the run that a job asks for, once, and for each later attempt its continuation; raises what is wrong.
AcceptJob = Callable[[QueuedJob], Awaitable[Run]]


class RunDelivery(Protocol):
    """Brings due runs to one worker. Called by the worker: `listen` once, `look` again and again, `close` at the end.

    `look` never fails for a reason that lies outside of the store: when a queue cannot be reached, its runs are taken
    out of the store.
    """

    async def listen(self, offer: OfferRun) -> None:
        """Begin to offer runs."""

    async def look(self, driven: Collection[RunId], *, leads: bool = True, offered: bool = True) -> DeliveryLook:
        """Return what the worker is to take by itself; `driven` are the runs that it has.

        What has to be done once for all workers of its queues is done by the one that `leads`. `offered` says that a
        run may have become due since the last look.
        """

    async def is_idle(self) -> bool:
        """Return whether nothing waits that the store does not know of."""

    async def close(self) -> None:
        """Offer nothing more; offers that were taken up have ended before."""


class StoreDelivery:
    """The store alone: the worker looks for due runs whenever something was written there."""

    def __init__(self, queues: Iterable[str] = QUEUES) -> None:
        self._look = DeliveryLook(take=frozenset(queues))

    async def listen(self, offer: OfferRun) -> None:
        """Offer nothing: the worker looks by itself."""

    async def look(self, driven: Collection[RunId], *, leads: bool = True, offered: bool = True) -> DeliveryLook:
        """Return that the worker takes everything by itself."""
        return self._look

    async def is_idle(self) -> bool:
        """Return True: the store knows of everything."""
        return True

    async def close(self) -> None:
        """Hold nothing that would have to be closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueServer:
    """What the server of a queue says of itself; empty what it does not tell."""

    version: str = ""
    eviction: str = ""  # what it removes when its memory is full

    @property
    def may_lose_jobs(self) -> bool:
        """Return whether jobs may be removed before anybody took them."""
        return self.eviction not in ("", "noeviction")


class JobQueue(Protocol):
    """A queue of jobs on a server that processes share. Raises QueueFailed while the server cannot be reached.

    Jobs that were taken by a process which died come again to another one.
    """

    async def announce(self, run: Run) -> None:
        """Add a job for a run, unless one waits already."""

    async def listen(self, queues: Iterable[str], most: int, handle: HandleJob) -> None:
        """Begin to take jobs, at most so many of a queue at a time."""

    async def report(self, job: QueuedJob, progress: Json) -> None:
        """Write how far a job has got, for whoever added it; nothing for a job that is gone."""

    async def promote(self, queues: Iterable[str]) -> None:
        """Let jobs of some queues be taken that were put off until now, by the clock of the server."""

    async def waiting(self, queues: Iterable[str]) -> int:
        """Return how many jobs of some queues nobody has taken yet."""

    async def server(self) -> QueueServer:
        """Return what the server says of itself."""

    async def stop(self) -> None:
        """Take no more jobs, and wait until those that were taken are answered."""

    async def close(self) -> None:
        """Close the connections."""


class FleetKeys(Protocol):
    """Short-lived facts that processes share besides the store. Raises QueueFailed as a `JobQueue` does."""

    async def beat(self, queues: Iterable[str]) -> None:
        """Write that a worker takes runs of these queues, for the next minute."""

    async def is_beating(self, queues: Iterable[str]) -> bool:
        """Return whether all that `beat` wrote for these queues is there; the server may have lost it."""

    async def withdraw(self, queues: Iterable[str], *, last: bool) -> None:
        """Write that no worker takes runs of these queues any more."""

    async def canceled(self, runs: Collection[RunId]) -> Collection[RunId]:
        """Return those of some runs that another program wants to be canceled."""


class FleetQueue(JobQueue, FleetKeys, Protocol):
    """A queue with the facts beside it."""


class LazyQueue:
    """Opens the queue when it is first used: most commands need none, and its packages take long to load."""

    def __init__(self, open_queue: Callable[[], FleetQueue]) -> None:
        self._open = open_queue
        self._opened: FleetQueue | None = None

    def get(self) -> FleetQueue:
        """Return the queue; raises BadConfiguration when its packages are not installed."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    async def close(self) -> None:
        """Close the queue, if it was opened."""
        if self._opened is not None:
            await self._opened.close()
