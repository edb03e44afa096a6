"""The door of the room: what the rest of the house knows of a store.

Every writing method queues its write at once, in the order of the calls, and returns an awaitable that ends when the
write is durable. It cannot be canceled: a task that is canceled while it waits goes on waiting until the write is
there, and is canceled then. Reads see everything that is durable.
Failures are errors of the tree in `domain.errors`: StoreFailed for the disk, LeaseLost for a driver that was replaced.
"""

from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.domain.batch import Batch, BatchMember, BatchShare, BatchState, Plan, Saving
from muster.domain.budget import Balance, Decision
from muster.domain.canonical import Json
from muster.domain.entry import AttemptState, Entry, EntryKind, Event, Failed, Opening, Settled, Settlement
from muster.domain.errors import MusterError
from muster.domain.ids import BatchId, RunId
from muster.domain.money import NOTHING, Lane, Microdollars
from muster.domain.review import Review
from muster.domain.run import Driver, NewRun, OwnedProcess, Run, RunState


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
    result: Json = None
    error: Mapping[str, Json] | None = None
    active: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A step, child or emitted event to be remembered once; with `kind_of_event` it is told too."""

    run: RunId
    epoch: int
    key: str
    kind: EntryKind
    digest: str
    value: Json
    at: float
    kind_of_event: str | None = None


class Journal(Protocol):
    """Calls and steps with their outcomes, and the money of every attempt."""

    async def find(self, run: RunId, key: str) -> Entry | None:
        """Give what is remembered under this key."""

    def open(self, opening: Opening) -> Awaitable[Decision]:
        """Reserve the money and write that the attempt starts, both or neither."""

    def settle(self, settlement: Settlement) -> Awaitable[Settled]:
        """Book the cost, write the outcome and tell it; a second settlement of one attempt books nothing twice."""

    def record(self, record: Record) -> Awaitable[Json]:
        """Remember a value under a key, once; gives the value that is remembered."""


class Reuser(Protocol):
    """Takes over what another run remembers."""

    def reuse(self, run: RunId, epoch: int, entry: Entry, at: float) -> Awaitable[None]:
        """Copy another run's entry into this run, free of charge."""

    async def position(self, run: RunId, key: str) -> int | None:
        """Give where in the order of its journal a key stands."""

    async def newest_child(self, run: RunId, key: str) -> Run | None:
        """Give the last child run that was started under this key."""

    async def find_before(self, run: RunId, key: str, position: int) -> Entry | None:
        """Give what is remembered under this key if it is older than the position."""


class RunTable(Protocol):
    """The runs of this store."""

    def create(self, new: NewRun) -> Awaitable[Run]:
        """Store a run as queued; a child that exists already is given back instead."""

    async def get(self, run: RunId) -> Run | None:
        """Give a run as it stands."""

    async def balances(self, levels: Iterable[str]) -> Mapping[str, Balance]:
        """Return what budgets hold, with their caps; those that are not there are left out."""

    async def select(self, states: Iterable[RunState] = (), limit: int = 100) -> Sequence[Run]:
        """Give the newest runs, of these states if any are named."""

    async def roots(self, limit: int = 100) -> Sequence[Run]:
        """Give the newest runs that are nobody's children."""

    async def submitted(self, limit: int) -> Sequence[Run]:
        """Give the runs that wait for a worker, the oldest first."""

    async def match(self, reference: str) -> Sequence[Run]:
        """Give the runs that an id, the beginning of an id, or a name stands for, the newest first."""


class RunCommands(Protocol):
    """What a person does to runs from outside."""

    def cancel(self, run: RunId, at: float) -> Awaitable[Run]:
        """Ask the driver to stop; a run that nobody drives is canceled at once. Its children are treated likewise."""

    def requeue(self, run: RunId, at: float) -> Awaitable[Run]:
        """Hand a run that stands still to the workers."""

    def set_cap(self, run: RunId, cap: Microdollars) -> Awaitable[None]:
        """Change the budget of a run that is not over."""

    def delete(self, run: RunId, at: float) -> Awaitable[None]:
        """Forget a run that nobody drives, no unfinished run needs and no baseline names, with everything in it.

        It is gone from the list at once; what it held goes in small transactions, so that others can write meanwhile.
        """

    def finish_deletions(self) -> Awaitable[None]:
        """Delete what is left of runs whose deletion was interrupted."""


class Leases(Protocol):
    """Who drives which run."""

    def claim(self, run: RunId, driver: Driver, expected_epoch: int, at: float, until: float) -> Awaitable[Claim]:
        """Take the run if nobody else has since; attempts left open before become uncertain."""

    def beat(self, run: RunId, epoch: int, until: float, active: float, state: RunState) -> Awaitable[bool]:
        """Keep the lease of a run that is at work or waits; says whether somebody asked to cancel."""

    def release(self, run: RunId, epoch: int, ending: RunRelease) -> Awaitable[Run]:
        """Let go of the run in its new state; canceled, its batches are to be canceled that no other run needs."""

    def bury(self, run: RunId, expected_epoch: int, at: float, message: str) -> Awaitable[Claim]:
        """Mark the run of a dead driver as interrupted, or canceled if asked for; open attempts become uncertain."""


class WorkerTable(Protocol):
    """Which workers are there."""

    def attend(self, driver: Driver, at: float) -> Awaitable[None]:
        """Say that a worker is there."""

    def dismiss(self, driver: Driver) -> Awaitable[None]:
        """Say that a worker goes."""

    async def present(self, since: float) -> Sequence[Driver]:
        """Give the workers that said so since then; some may have died."""


class Events(Protocol):
    """Facts about runs, and the half-written text of open calls."""

    def append(self, run: RunId, epoch: int, kind: str, data: Mapping[str, Json], at: float) -> Awaitable[Event]:
        """Tell a fact."""

    async def read(self, run: RunId, after: int, limit: int) -> Sequence[Event]:
        """Give the facts after a number, in order."""

    async def first(self, run: RunId, kind: str) -> Event | None:
        """Return the first fact of a kind; it is looked for in all facts of the run."""

    def put_partial(self, run: RunId, key: str, text: str, at: float) -> Awaitable[None]:
        """Overwrite what an open call has written so far."""

    async def partials(self, run: RunId) -> Mapping[str, str]:
        """Give the half-written text of every open call."""


class Changes(Protocol):
    """Tells that something was written, by this process or another."""

    async def wait(self, seconds: float) -> bool:
        """Wait for the next commit, at most so long; says whether there was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """A batch goes on to another state, and why; `batch` is as it will be, but for what is counted.

    It carries the epoch under which it was read or claimed: once somebody else claimed the batch, it is refused.
    """

    batch: Batch
    was: BatchState
    kind: str  # of the event
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchClaim:
    """A request for the right to create a planned batch, or to find out whether a sent one was created."""

    batch: Batch  # as it was read: its epoch and state must still be the stored ones
    driver: Driver
    at: float
    until: float  # when the claim ends by itself, unless it is renewed
    alone: bool = False  # refuse a planned batch while another create of its account is unresolved


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPage:
    """Outcomes of members of one batch, with the lines that they were read from."""

    batch: BatchId
    settlements: Iterable[Settlement]  # gone through once, when the page is handed over
    lines: Sequence[bytes] = ()  # with their line breaks; may come to be while the settlements are gone through
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Dismissal:
    """A batch ends without results: its last state, and the one outcome of all members that have none."""

    advance: Advance
    outcome: Failed


class BatchReader(Protocol):
    """The batches of this store, read."""

    async def get(self, batch: BatchId) -> Batch | None:
        """Give a batch as it stands."""

    async def select(self, states: Iterable[BatchState] = (), limit: int = 100) -> Sequence[Batch]:
        """Give the newest batches, of these states if any are named."""

    async def since(self, at: float) -> Sequence[Batch]:
        """Give the batches that were planned since then, the oldest first."""

    async def match(self, reference: str) -> Sequence[Batch]:
        """Give the batches that an id, the beginning of one, or the provider's id stands for."""

    async def of_run(self, run: RunId) -> Sequence[Batch]:
        """Give the batches that hold calls of a run, the oldest first."""

    async def runs(self, batch: BatchId) -> Mapping[RunId, int]:
        """Give the runs that have calls in a batch, and how many."""

    async def known(self, account: str) -> frozenset[str]:
        """Give the provider's ids of all batches of an account."""

    async def parked(self, run: RunId, key: str) -> tuple[BatchId, int] | None:
        """Give the batch in which a call waits, and its place there."""

    async def members(self, batch: BatchId, first: int, after: int) -> Sequence[BatchMember]:
        """Give the members from one place up to, and without, another."""

    async def waiting(self, batch: BatchId, after: int, limit: int) -> Sequence[BatchMember]:
        """Give the members that have no outcome, by place."""

    async def max_tokens(self, batch: BatchId) -> int:
        """Return the most tokens that all answers of a batch together may have."""

    async def orphans(self) -> Sequence[BatchId]:
        """Return the batches that are to be canceled, are not over, and hold only calls of runs that are over."""

    async def abandoned(self, run: RunId, key: str, after: int) -> int:
        """Return how many attempts of a call, after the one of this number, were in batches that were given up."""

    def bodies(self, batch: BatchId) -> AsyncIterator[bytes]:
        """Give the pieces of the body, exactly as they were planned."""

    def lines(self, batch: BatchId) -> AsyncIterator[bytes]:
        """Give the lines of results that were read, in pieces."""

    async def saving(self, run: RunId) -> Saving:
        """Say what a run's batches cost."""

    async def shares(self, run: RunId, prefix: str) -> Sequence[BatchShare]:
        """Return what the calls of a run whose keys begin so had in each of its batches."""


class BatchWriter(Protocol):
    """What is written of batches. Every change is told to the runs that have calls in the batch."""

    def nonce(self, fresh: str) -> Awaitable[str]:
        """Give the nonce of this store; the first call makes it."""

    def check(self, key: str, text: str) -> None:
        """Raise BadArgument for a call whose key or request holds a configured secret: bodies are stored as sent."""

    async def pack(self, piece: bytes) -> bytes:
        """Make a piece of a body ready to be stored."""

    def plan(self, plan: Plan) -> Awaitable[Sequence[Decision | MusterError]]:
        """Reserve the money of all members and store the batch, or neither when one of them is not granted."""

    def claim(self, claim: BatchClaim) -> Awaitable[Batch | None]:
        """Claim a batch and return it under its new epoch; None when somebody else was faster or it may not be sent."""

    def renew(self, batch: Batch, until: float) -> Awaitable[bool]:
        """Extend the claim on a batch; False when it is lost."""

    def release(self, batch: Batch) -> Awaitable[bool]:
        """Give up the claim on a batch; False when it is lost, or not needed any more."""

    def advance(self, advance: Advance) -> Awaitable[bool]:
        """Write a batch's next state; False when its state or its epoch is another by now."""

    def dismiss(self, dismissal: Dismissal) -> Awaitable[bool]:
        """End a batch and settle its members in one go; False, and nothing, when its state or epoch is another."""

    def settle(self, page: ResultPage) -> Awaitable[int]:
        """Settle members that are still parked and say how many; the others have their outcome already."""

    def ask_cancel(self, batch: BatchId) -> Awaitable[bool]:
        """Note that a batch is to be canceled; False when it is over."""

    def give_up(self, run: RunId, epoch: int, key: str, error: Mapping[str, Json], at: float) -> Awaitable[None]:
        """Note that a call has failed in enough batches."""


class RunArchive(Protocol):
    """Everything of one run, for showing, export and import."""

    def entries(self, run: RunId, after: int = 0, page: int = 500) -> AsyncIterator[Entry]:
        """Give the entries in the order they were opened, page by page."""

    async def attempts(self, run: RunId, states: Iterable[AttemptState] = ()) -> Sequence[Attempt]:
        """Give the attempts, of these states if any are named."""

    async def attempts_of(self, run: RunId, key: str) -> Sequence[Attempt]:
        """Return the attempts of one call, in order."""

    def restore(self, run: Run, parked: Sequence[tuple[Batch, Sequence[BatchMember]]] = ()) -> Awaitable[None]:
        """Store a run from elsewhere, and the batches that hold calls of it; refuses an id that is known."""

    def restore_entries(self, entries: Sequence[Entry]) -> Awaitable[None]:
        """Store a page of entries of a run that is being restored; those that are there stay."""

    async def children(self, run: RunId) -> Sequence[Run]:
        """Give the child runs."""


class Maintenance(Protocol):
    """The store as a file."""

    async def info(self) -> Mapping[str, Json]:
        """Say where the store is, how large, of which version."""

    def vacuum(self, driver: Driver, at: float) -> Awaitable[None]:
        """Give free space back to the disk; raises Conflict while runs are driven, and runs wait until it is done."""

    def shortage(self) -> str | None:
        """Say what keeps the store from being written to, if anything is known."""

    def give_up(self) -> None:
        """Wait no longer for a lock of another process: what cannot be written now fails."""

    async def close(self) -> None:
        """Write what is queued and let go of the file."""


class ProcessTable(Protocol):
    """Processes of ours that nobody has seen dead yet."""

    def note(self, process: OwnedProcess) -> Awaitable[None]:
        """Remember a process."""

    def forget(self, token: str) -> Awaitable[None]:
        """Forget a process that was seen dead."""

    async def all(self, host: str) -> Sequence[OwnedProcess]:
        """Give the processes of a host that nobody has seen dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A name for a run that others are compared with; the run cannot be forgotten while it has one."""

    name: str
    run: RunId
    at: float  # when the name was given


class ReviewTable(Protocol):
    """What people say about verdicts."""

    def add(self, review: Review) -> Awaitable[None]:
        """Remember a review; of one person and verdict the newest stays. Raises NotFound for a run that is not here."""

    async def of_run(self, run: RunId) -> Sequence[Review]:
        """Give the reviews of a run, by case."""


class BaselineTable(Protocol):
    """Names of runs that others are compared with."""

    def set(self, name: str, run: RunId, at: float) -> Awaitable[None]:
        """Let a name stand for a run, whatever it stood for before; raises NotFound for a run that is not here."""

    async def find(self, name: str) -> Baseline | None:
        """Give the baseline of this name."""

    async def all(self) -> Sequence[Baseline]:
        """Give all baselines, by name."""

    def remove(self, name: str) -> Awaitable[None]:
        """Forget a name; the run stays. Raises NotFound for a name that is not here."""


class Store(Protocol):
    """All of it together."""

    @property
    def journal(self) -> Journal:
        """Calls and steps."""

    @property
    def reuser(self) -> Reuser:
        """What runs take over from others."""

    @property
    def runs(self) -> RunTable:
        """The runs."""

    @property
    def commands(self) -> RunCommands:
        """What people do to runs."""

    @property
    def leases(self) -> Leases:
        """Who drives."""

    @property
    def attendance(self) -> WorkerTable:
        """Which workers are there."""

    @property
    def processes(self) -> ProcessTable:
        """Which processes drivers have started."""

    @property
    def events(self) -> Events:
        """What happened."""

    @property
    def changes(self) -> Changes:
        """That something happened."""

    @property
    def batches(self) -> BatchReader:
        """The batches."""

    @property
    def batch_writer(self) -> BatchWriter:
        """What is written of batches."""

    @property
    def reviews(self) -> ReviewTable:
        """What people say about verdicts."""

    @property
    def baselines(self) -> BaselineTable:
        """What others are compared with."""

    @property
    def archive(self) -> RunArchive:
        """Whole runs."""

    @property
    def maintenance(self) -> Maintenance:
        """The store itself."""
