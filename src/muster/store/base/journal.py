"""What a run remembers: its journal with the money of every attempt, its events, and whole runs for export."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from muster.domain.batch import Batch, BatchMember
from muster.domain.budget import Decision
from muster.domain.canonical import Json
from muster.domain.entry import AttemptId, AttemptState, Entry, EntryKind, Event, Opening, Settled, Settlement
from muster.domain.ids import BatchId, RunId
from muster.domain.money import NOTHING, Lane, Microdollars
from muster.domain.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt as it is stored."""

    key: str
    n: int
    state: AttemptState
    reserved: Microdollars
    cost: Microdollars
    lane: Lane
    started_at: float
    ended_at: float | None
    error: Mapping[str, Json] | None
    batch: BatchId | None = None
    live_cost: Microdollars = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A step, child or emitted event to be remembered once; with `kind_of_event` it is told too."""

    run: RunId
    epoch: int
    key: str
    kind: EntryKind
    digest: str
    value: Any
    at: float
    kind_of_event: str | None = None


class DoneEntry(NamedTuple):
    """What identifies an entry that has its outcome."""

    key: str
    kind: EntryKind
    digest: str


class Journal(Protocol):
    """Calls and steps with their outcomes, and the money of every attempt.

    Called by the driver of a run, on the call path. A driver whose epoch is not the stored one gets LeaseLost, except
    for `settle`, which books what a late answer cost. `settle` and `record` are idempotent, `open` is not. What another
    run remembers is taken over by the driver of a run that was resumed or forked from it; `reuse` is idempotent too: a
    key that is in the journal stays as it is.
    """

    @property
    def unstored(self) -> int:
        """Return how many settlements of this process wait until they can be written."""

    async def find(self, run: RunId, key: str) -> Entry | None:
        """Return what is remembered under this key."""

    def open(self, opening: Opening) -> Awaitable[Decision]:
        """Reserve the money and write that the attempt starts, both or neither."""

    def settle(self, settlement: Settlement) -> Awaitable[Settled]:
        """Book the cost, write the outcome and tell it; a second settlement of one attempt books nothing twice."""

    def record(self, record: Record) -> Awaitable[Json]:
        """Remember a value under a key, once; return the value that is remembered."""

    def reuse(self, run: RunId, epoch: int, entry: Entry, at: float) -> Awaitable[None]:
        """Copy another run's entry into this run, free of charge."""

    async def position(self, run: RunId, key: str) -> int | None:
        """Return where in the order of its journal a key stands."""

    async def newest_child(self, run: RunId, key: str) -> Run | None:
        """Return the last child run that was started under this key."""

    async def find_before(self, run: RunId, key: str, position: int) -> Entry | None:
        """Return what is remembered under this key if it is older than the position."""


class Events(Protocol):
    """What is seen of a run while it goes on: facts, numbered from one without gaps, and half-written texts.

    Both are written by the driver of a run and read by whoever follows it. Appending is not idempotent: what must
    be told once goes through `Journal.record`. The exchange of a call writes its partial text at most once a
    second; each write replaces the one before, and settling the call removes it.
    """

    def append(self, run: RunId, epoch: int, kind: str, data: Mapping[str, Json], at: float) -> Awaitable[Event]:
        """Append an event."""

    async def read(self, run: RunId, after: int, limit: int) -> Sequence[Event]:
        """Return the events after a number, in order."""

    async def first(self, run: RunId, kind: str) -> Event | None:
        """Return the first event of a kind; it is looked for in all events of the run."""

    def put_partial(self, attempt: AttemptId, text: str, at: float) -> Awaitable[None]:
        """Overwrite what an open call has written so far; nothing happens for one that is not open, or not ours."""

    async def partials(self, run: RunId) -> Mapping[str, str]:
        """Return the half-written text of every open call."""


class Changes(Protocol):
    """Tells that something was written, by this process or another. Canceling the wait loses nothing.

    Whoever waits for something that others write takes the number of `commits` first, then looks, and waits for more
    than that number: a commit between the look and the wait is not missed.
    """

    @property
    def commits(self) -> int:
        """Return how many commits were told so far; it counts what this process has heard of, from its start."""

    async def wait(self, seconds: float, since: int) -> bool:
        """Wait until there are other commits than at `since`, at most so long; return whether there are."""


class OfferWatch(Protocol):
    """Waits for runs that may have become due; what becomes due between two waits is not missed."""

    async def wait(self, seconds: float) -> bool:
        """Wait for the next offer, at most so long; return whether there was one."""


class RunOffers(Protocol):
    """Tells that runs may have become due, which is all that workers wait for."""

    def watch(self, wanted: Callable[[str], bool]) -> OfferWatch:
        """Return what waits for runs of the workloads that are wanted; it may wake for others too."""


class RunArchive(Protocol):
    """Whole runs, out of the store for reports and export, and into it by the import of a run.

    An import calls `restore` first, then `restore_entries` page by page. A page can be stored again after a failure:
    entries that are there stay. A run cannot.
    """

    def entries(self, run: RunId, after: int = 0, page: int = 500) -> AsyncIterator[Entry]:
        """Iterate over the entries in the order they were opened, page by page."""

    async def done(self, run: RunId) -> Sequence[DoneEntry]:
        """Return what identifies the entries that have their outcome, in the order they were opened."""

    async def attempts(self, run: RunId, states: Iterable[AttemptState] = ()) -> Sequence[Attempt]:
        """Return the attempts, of these states if any are named."""

    async def attempts_of(self, run: RunId, key: str) -> Sequence[Attempt]:
        """Return the attempts of one call, in order."""

    async def children(self, run: RunId) -> Sequence[Run]:
        """Return the child runs."""

    def restore(self, run: Run, parked: Sequence[tuple[Batch, Sequence[BatchMember]]] = ()) -> Awaitable[None]:
        """Store a run from elsewhere, and the batches that hold calls of it; refuses an id that is known."""

    def restore_entries(self, entries: Sequence[Entry]) -> Awaitable[None]:
        """Store a page of entries of a run that is being restored; those that are there stay."""
