"""A batch: many calls sent through a provider's batch API, from the intent to the last result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from muster.domain.budget import Level
from muster.domain.canonical import Json
from muster.domain.entry import AttemptId, AttemptState, Opening
from muster.domain.errors import WireError
from muster.domain.ids import BatchId
from muster.domain.money import NOTHING, Microdollars
from muster.domain.price import Price
from muster.domain.run import Driver


class BatchState(StrEnum):
    """Where a batch stands, as far as we know."""

    PLANNED = "planned"  # members, bodies and money are stored; nothing has left
    SENT = "sent"  # the create left, or may have left; the provider's id is not known
    RUNNING = "running"  # the provider has it
    ENDED = "ended"  # the provider is done; the results are still to be read
    COLLECTED = "collected"  # every member has its outcome
    REFUSED = "refused"  # the provider did not take it; nothing was paid
    ABANDONED = "abandoned"  # given up by the person without knowing; its members are booked as uncertain


NAME_WITHIN = 256  # bytes at the beginning of a line of results, which hold the name of its member

OVER = frozenset({BatchState.COLLECTED, BatchState.REFUSED, BatchState.ABANDONED})
UNDER_WAY = frozenset(BatchState) - OVER


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """The most that one batch may hold."""

    requests: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEndpoint:
    """Where a batch is handed in: everything needed to come back for it, except the key.

    Calls go into one batch when their endpoints are equal.
    """

    kind: str  # "anthropic" or "openai"
    base_url: str
    account: str  # a fingerprint of the key
    variable: str  # which environment variable holds the key; empty when the server wants none
    scope: str = ""  # what else may not be mixed: the model, where a batch is for one model only

    @property
    def provider_account(self) -> str:
        """The account together with its provider: one gateway can stand before several."""
        return f"{self.kind}/{self.account}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """A model and what it costs, in a batch and live; None when the person chose to spend uncounted."""

    model: str
    batch: Price | None
    live: Price | None
    geo: str = ""  # where inference is asked for; empty: the account decides
    batch_us: Price | None = None  # in a batch, where inference in the US has another price


class Phase(StrEnum):
    """What a provider says of a batch."""

    RUNNING = "running"  # also for any word that we do not know
    ENDED = "ended"  # results can be read, perhaps not of all members
    FAILED = "failed"  # refused as a whole after it was created; nothing was paid


class Shortfall(StrEnum):
    """Why an ended batch may lack results."""

    NONE = "none"  # it may not
    CANCELED = "canceled"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    """A batch as its provider shows it."""

    phase: Phase
    word: str = ""  # the provider's own word for it
    total: int | None = None
    done: int | None = None  # None where the provider counts only at the end
    shortfall: Shortfall = Shortfall.NONE  # what became of members that have no line in the results
    answered: int | None = None  # of an ended one: how many answers are in its results, where that is told
    sources: tuple[str, ...] = ()  # where the results are; empty in an ended batch: not there yet
    message: str = ""  # of a failed one: why
    took: float | None = None  # of an ended one: seconds from its creation to its end, by the provider's own clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBatch:
    """A batch in the provider's list."""

    id: str
    created_at: float
    requests: int | None
    ended: bool
    file: str | None = None  # the input file
    label: str | None = None  # our id, where the provider keeps one for us


class KnownIds(NamedTuple):
    """The provider's ids of the batches of an account."""

    sure: frozenset[str] = frozenset()  # whose they are is known
    assumed: frozenset[str] = frozenset()  # adopted, until custom ids confirm or refute it


class Answered(NamedTuple):
    """A member was answered: what a spelling read, for the same one to decode. A tuple: every line makes one."""

    answer: Any


@dataclass(frozen=True, slots=True)
class Errored:
    """A member failed; nothing was charged for it."""

    error: WireError


@dataclass(frozen=True, slots=True)
class Dropped:
    """A member was not processed: its batch was canceled or expired first."""

    why: Shortfall


MemberResult = Answered | Errored | Dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How the members of a batch ended."""

    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0
    uncertain: int = 0  # errored without a word from the provider: it may have been charged

    @property
    def over(self) -> int:
        """How many have ended."""
        return self.succeeded + self.errored + self.canceled + self.expired + self.uncertain


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch as it is stored."""

    id: BatchId
    endpoint: BatchEndpoint
    state: BatchState
    requests: int
    bytes: int
    tariffs: Mapping[str, Tariff]  # by the name of the agent
    created_at: float
    nonce: str  # of the store that made it; begins every custom id
    provider_id: str | None = None
    file: str | None = None  # the input file at the provider
    sent_at: float | None = None
    submitted_at: float | None = None
    ended_at: float | None = None
    collected_at: float | None = None
    cancel_requested: bool = False
    adopted: bool = False  # found in the provider's list, and not yet confirmed by its custom ids
    rejected: tuple[str, ...] = ()  # batches of the provider that looked like this one and were not
    done: int | None = None  # the provider's last count
    word: str = ""  # the provider's last word
    polled_at: float | None = None
    note: str = ""  # the last decision, and why
    error: Mapping[str, Json] | None = None
    reserved: Microdollars = NOTHING
    cost: Microdollars = NOTHING
    live_cost: Microdollars = NOTHING  # what live calls would have cost
    tally: Tally = field(default_factory=Tally)
    input_tokens: int = 0
    output_tokens: int = 0
    driver: Driver | None = None  # who holds the claim, or held it last
    epoch: int = 0  # counts the claims; a write under an older one is refused
    lease_until: float = 0.0  # when the claim ends, unless it is renewed
    claimed_at: float | None = None
    by_hand: bool = False  # the claim or turn is an operator's, before whom workers give way
    grace_until: float | None = None  # of a sent one without an answer: how long its creation is looked for at least
    stalled: bool = False  # it does not get on, and its note says why
    waits_for: BatchId | None = None  # of a planned one: the batch whose creation must be clear first
    uploads: int = 0  # that failed
    unattended: bool = False  # of a planned one: no process is about to send it; found out when it is shown, not stored

    @property
    def gets_on(self) -> bool:
        """Return whether nothing keeps it from getting on; otherwise its note says why."""
        return not (self.stalled or self.unattended)

    @property
    def seconds(self) -> float:
        """How long the provider took, as far as it is known."""
        return max(0.0, (self.ended_at or 0.0) - (self.submitted_at or self.created_at))

    @property
    def names(self) -> "Names":
        """The custom ids of its members."""
        return Names(self.nonce, self.id)


def confusable(batch: Batch, other: Batch, now: float) -> bool:
    """Return whether two creates could be taken for each other in a list that names neither: same account and count.

    A create that was looked for long enough stands in nobody's way: should both be lost, custom ids tell them apart.
    """
    alike = other.endpoint.provider_account == batch.endpoint.provider_account and other.requests == batch.requests
    unclear = other.state is BatchState.SENT and (other.grace_until is None or other.grace_until > now)
    return alike and unclear and other.id != batch.id


LOOK_AGAIN = "look again: muster batch reconcile"
RESUBMIT = "send its calls again, at the risk of paying twice: muster batch reconcile --resubmit"


def unattended(batch: Batch) -> Batch:
    """Return a planned batch that no process is about to send: whatever it waited for, it waits for a process now."""
    note = "no process executes its runs, so it is not sent"
    return replace(batch, note=note, stalled=False, waits_for=None, unattended=True)


def without_past_wait(batch: Batch, other: Batch | None, now: float) -> Batch:
    """Return a planned batch without the other that it waited for, unless that still stands in its way."""
    if other is not None and confusable(batch, other, now):
        return batch
    return replace(
        batch, note=f"it waited for batch {batch.waits_for}, and is sent next", stalled=False, waits_for=None
    )


def ways_out(batch: Batch) -> tuple[str, ...]:
    """Return what a person can do about a batch that does not get on; nothing while it does."""
    if batch.gets_on:
        return ()
    if batch.unattended:
        return (f"send it and wait for it: muster batch fetch {batch.id}",)
    if batch.state is BatchState.SENT:
        return (LOOK_AGAIN, RESUBMIT)
    if batch.waits_for is not None:
        return (f"look at the other batch: muster batch show {batch.waits_for}", LOOK_AGAIN)
    if batch.state is BatchState.PLANNED:
        return (f"cancel it; nothing was sent: muster batch cancel {batch.id}",)
    fetch = f"fetch it again now: muster batch fetch {batch.id}"
    return (fetch,) if batch.state is BatchState.RUNNING else (fetch, RESUBMIT)  # what still runs is not given up


class Names:
    """The custom ids of one batch: unique among all members of all stores, and leading back to the member's place."""

    __slots__ = ("_opening", "_prefix")

    def __init__(self, nonce: str, batch: BatchId) -> None:
        self._prefix = f"{nonce}_{batch}_"
        self._opening = f'"custom_id":"{self._prefix}'.encode()

    def name(self, place: int) -> str:
        """Name the member at a place."""
        return f"{self._prefix}{place}"

    def place(self, name: str) -> int | None:
        """Return the place of a member, or None for a name that is not of this batch."""
        if not name.startswith(self._prefix):
            return None
        rest = name[len(self._prefix) :]
        if len(rest) > 9 or not rest.isdecimal():
            return None
        place = int(rest)
        return place if str(place) == rest else None

    def glance(self, line: bytes) -> int | None:
        """Guess the place from the beginning of a line, without reading it; None when the name is not seen there."""
        start = line.find(self._opening, 0, NAME_WITHIN)
        if start < 0:
            return None
        start += len(self._opening)
        place = line[start : start + 10].partition(b'"')[0]
        plain = place.isdigit() and len(place) < 10 and (place == b"0" or not place.startswith(b"0"))
        return int(place) if plain else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A call about to become a member of a batch."""

    opening: Opening
    place: int
    size: int  # bytes of its body, and tokens of what it shows: no more tokens go in
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A batch about to be stored, with the exact bytes that will be sent."""

    id: BatchId
    endpoint: BatchEndpoint
    nonce: str
    tariffs: Mapping[str, Tariff]
    members: Sequence[Member]
    bodies: Sequence[bytes]  # the whole body, in pieces as the store packs them
    bytes: int  # of the whole body
    at: float


class BatchMember(NamedTuple):
    """A member as it is stored; a tuple, as thousands of them are read at a time."""

    attempt: AttemptId
    place: int
    state: AttemptState
    agent: str
    reserved: Microdollars
    levels: tuple[Level, ...]
    size: int
    max_tokens: int
    position: int | None = None  # of its call in the journal of this store


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchShare:
    """What some calls of a run had in one batch."""

    batch: BatchId
    provider_id: str | None
    calls: int
    cost: Microdollars = NOTHING
    live_cost: Microdollars = NOTHING  # what the same calls cost when they are sent live
    parked: int = 0  # of the calls, without an outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """What batches and the tier flex cost, and what live calls in the standard tier would have cost."""

    batches: int = 0
    cost: Microdollars = NOTHING
    live_cost: Microdollars = NOTHING
    parked: int = 0  # calls whose batch has not ended
    flex_calls: int = 0  # that the tier flex served
    flex_cost: Microdollars = NOTHING
    flex_live_cost: Microdollars = NOTHING

    @property
    def saved(self) -> Microdollars:
        """What live calls would have cost more than batches."""
        return Microdollars(self.live_cost - self.cost)

    @property
    def flex_saved(self) -> Microdollars:
        """What the standard tier would have cost more than flex."""
        return Microdollars(self.flex_live_cost - self.flex_cost)
