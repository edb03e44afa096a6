"""The batches of a store: found, read with their members, planned, claimed, moved on and settled.

Every change of a batch is told to the runs that have calls in it.
"""

from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.domain.batch import Batch, BatchEndpoint, BatchMember, BatchShare, BatchState, KnownIds, Plan, Saving
from muster.domain.budget import Decision
from muster.domain.canonical import Json
from muster.domain.entry import Failed, Settlement
from muster.domain.errors import MusterError
from muster.domain.ids import BatchId, RunId
from muster.domain.run import Driver


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
    alone: bool = False  # refuse a planned batch while the create of one that it could be taken for is unresolved
    by_hand: bool = False  # an operator's: workers give way to it


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


class BatchTable(Protocol):
    """The batches of this store.

    Looked up by the batcher and by what shows batches; their members are read while results are collected and when
    a parked call is resumed, their contents, piece by piece, when a batch is sent or fetched. What finds out what
    became of batches (`known`, `stalled`, `abandoned`) is called by the batcher at start and by retries. They are
    written by the batcher and by whoever follows a batch.

    Planning: `nonce` is idempotent, and a plan is stored under its id once. Nothing has been sent when a plan is
    stored, so a crash after it loses nothing.

    Claims say who may create a batch at the provider, or search for one that was lost. Of several processes one
    gets the claim; it ends by itself unless it is renewed, and every later write of the one who lost it is refused
    by its epoch.

    Turns say which process polls a batch that the provider has, and reads its results. A turn ends by itself unless
    it is kept; it changes no epoch, since nothing that is written under it can harm.

    A transition that is repeated is refused and changes nothing; outcomes that are settled again book nothing twice.
    """

    async def get(self, batch: BatchId) -> Batch | None:
        """Return a batch as it stands."""

    async def select(
        self, states: Iterable[BatchState] = (), limit: int = 100, before: tuple[float, str] | None = None
    ) -> Sequence[Batch]:
        """Return the newest batches, of these states if any are named.

        With `before`, when a batch was planned and its id, only those that come after it in this order.
        """

    async def since(self, at: float) -> Sequence[Batch]:
        """Return the batches that were planned since then, the oldest first."""

    async def match(self, reference: str) -> Sequence[Batch]:
        """Return the batches that an id, the beginning of one, or the provider's id stands for."""

    async def of_run(self, run: RunId) -> Sequence[Batch]:
        """Return the batches that hold calls of a run, the oldest first."""

    async def runs(self, batch: BatchId) -> Mapping[RunId, int]:
        """Return the runs that have calls in a batch, and how many."""

    async def saving(self, run: RunId) -> Saving:
        """Return what a run's batches and the tier flex cost, and what they saved."""

    async def shares(self, run: RunId, prefix: str) -> Sequence[BatchShare]:
        """Return what the calls of a run whose keys begin so had in each of its batches."""

    async def parked(self, run: RunId, key: str) -> tuple[BatchId, int] | None:
        """Return the batch in which a call waits, and its place there."""

    async def members(self, batch: BatchId, first: int, after: int) -> Sequence[BatchMember]:
        """Return the members from one place up to, and without, another."""

    async def waiting(self, batch: BatchId, after: int, limit: int) -> Sequence[BatchMember]:
        """Return the members that have no outcome, by place."""

    async def max_tokens(self, batch: BatchId) -> int:
        """Return the most tokens that all answers of a batch together may have."""

    def bodies(self, batch: BatchId) -> AsyncIterator[bytes]:
        """Iterate over the pieces of the body, exactly as they were planned."""

    def lines(self, batch: BatchId) -> AsyncIterator[bytes]:
        """Iterate over the lines of results that were read, in pieces."""

    async def known(self, endpoint: BatchEndpoint) -> KnownIds:
        """Return the provider's ids of all batches of the same provider and account."""

    async def stalled(self, limit: int) -> Sequence[Batch]:
        """Return the batches that do not get on, the oldest first."""

    async def abandoned(self, run: RunId, key: str, after: int) -> int:
        """Return how many attempts of a call, after the one of this number, were in batches that were given up."""

    def nonce(self, fresh: str) -> Awaitable[str]:
        """Return the nonce of this store; the first call makes it."""

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
        """Release the claim on a batch; False when it is lost, or not needed any more."""

    def take_turn(self, claim: BatchClaim) -> Awaitable[bool]:
        """Take a turn, also another's; False when its lease was changed since the batch was read."""

    def keep_turn(self, batch: BatchId, driver: Driver, until: float) -> Awaitable[bool]:
        """Extend a turn; False when it is another's, or the batch is over."""

    def end_turn(self, batch: BatchId, driver: Driver) -> Awaitable[bool]:
        """End a turn; False when it is another's."""

    def advance(self, advance: Advance) -> Awaitable[bool]:
        """Write a batch's next state; False when its state or epoch is another, or its provider's id another's."""

    def dismiss(self, dismissal: Dismissal) -> Awaitable[bool]:
        """End a batch and settle its members in one go; False, and nothing, when its state or epoch is another."""

    def ask_cancel(self, batch: BatchId) -> Awaitable[bool]:
        """Note that a batch is to be canceled; False when it is over."""

    def settle(self, page: ResultPage) -> Awaitable[int]:
        """Settle members that are still parked and return how many; the others have their outcome already."""

    def give_up(self, run: RunId, epoch: int, key: str, error: Mapping[str, Json], at: float) -> Awaitable[None]:
        """Note that a call has failed in enough batches."""
