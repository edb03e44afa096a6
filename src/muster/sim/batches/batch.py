"""One batch: its members, how far it has got, and the lines of its results."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from muster.domain.canonical import Json
from muster.sim.faults import Fault, FaultKind
from muster.sim.protocols.ask import SimAnswer, SimRefusal, WireProtocol
from muster.text import typed

LIFETIME = 24 * 60 * 60.0
HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Processes members evenly until the end; a share below one leaves some that expire."""

    created: float
    seconds: float  # until the end
    share: float = 1.0

    @property
    def ends(self) -> float:
        """When it is over."""
        return self.created + self.seconds

    @property
    def expires(self) -> float:
        """When it would be over at the latest."""
        return self.created + LIFETIME

    def progress(self, now: float) -> float:
        """Return how much of the time is over, from 0 to 1."""
        return 1.0 if now >= self.ends else max(0.0, now - self.created) / self.seconds

    def due(self, members: int, now: float) -> int:
        """Count the members that are processed by now."""
        return int(members * self.share * self.progress(now) + 1e-6)  # what time leaves of a whole number is whole


def make_schedule(created: float, seconds: float, *, expiring: bool) -> Schedule:
    """Plan a batch that takes so long; after a day it expires, and half done if it is told to."""
    if expiring:
        return Schedule(created=created, seconds=min(seconds, LIFETIME), share=HALF)
    if seconds > LIFETIME:
        return Schedule(created=created, seconds=LIFETIME, share=LIFETIME / seconds)
    return Schedule(created=created, seconds=seconds)


def moment(time: float) -> str:
    """Spell a time in RFC 3339."""
    return datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z")


VALIDATED = 0.05  # of its time, a batch is being validated
PROCESSED = 0.95  # and after this, its results are being put together


class MemberOutcome(StrEnum):
    """What became of a member."""

    SUCCEEDED = "succeeded"  # the only one that is paid
    ERRORED = "errored"
    CANCELED = "canceled"
    EXPIRED = "expired"


class SimBatchPhase(StrEnum):
    """How far a batch has got."""

    VALIDATING = "validating"
    FAILED = "failed"  # it was not valid
    RUNNING = "in_progress"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELING = "cancelling"  # told only to who cancels it; whoever looks next finds it canceled
    CANCELED = "cancelled"


ENDED = frozenset({SimBatchPhase.FAILED, SimBatchPhase.COMPLETED, SimBatchPhase.EXPIRED, SimBatchPhase.CANCELED})


class SimBatchMember(NamedTuple):  # there are a hundred thousand of them
    """One request of a batch, not yet understood."""

    custom_id: str
    body: typed.Raw


class Wording(Protocol):
    """How a provider words batches; pure."""

    provider: str
    prefix: str  # of the ids of batches
    dialect: WireProtocol

    def status(self, phase: SimBatchPhase) -> str:
        """Name a phase."""

    def answered(self, custom_id: str, said: SimAnswer) -> bytes:
        """Spell the line of a member that succeeded."""

    def refused(self, custom_id: str, refused: SimRefusal, number: int) -> bytes:
        """Spell the line of a member that failed."""

    def unmet(self, custom_id: str, verdict: MemberOutcome, number: int) -> bytes:
        """Spell the line of a member that was canceled or expired."""


@dataclass(slots=True, kw_only=True, eq=False)
class SimBatch:
    """A batch as the provider keeps it; whoever looks at it has it brought up to date first."""

    id: str
    account: str
    wording: Wording
    schedule: Schedule
    members: list[SimBatchMember]  # in the order of processing; emptied when all is done
    about: Mapping[str, Json] = field(default_factory=dict)  # what its creator wants to see again
    problems: tuple[Json, ...] = ()  # why it is not valid
    fault: Fault | None = None
    size: int = 0
    done: int = 0  # members with a verdict
    settled: float = 0.0  # up to when it was brought up to date
    closed: bool = False  # nothing will change any more
    filed: bool = False  # its results are files (OpenAI)
    canceled: float | None = None  # when
    counts: Counter[MemberOutcome] = field(default_factory=Counter)
    models: set[str] = field(default_factory=set)
    output: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    _seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.size = len(self.members)
        self.settled = self.schedule.created

    @property
    def phase(self) -> SimBatchPhase:
        """How far it had got when it was brought up to date; time goes on while others look."""
        return self.phase_at(self.settled)

    def phase_at(self, now: float) -> SimBatchPhase:
        """Return the phase at a time."""
        if self.problems:
            return SimBatchPhase.FAILED
        if self.canceled is not None:
            return SimBatchPhase.CANCELED
        progress = self.schedule.progress(now)
        if progress >= 1:
            return SimBatchPhase.COMPLETED if self.schedule.share >= 1 else SimBatchPhase.EXPIRED
        if progress < VALIDATED:
            return SimBatchPhase.VALIDATING
        return SimBatchPhase.RUNNING if progress < PROCESSED else SimBatchPhase.FINALIZING

    def ended(self) -> float:
        """Return when it ended."""
        return self.schedule.ends if self.canceled is None else self.canceled

    def due(self, now: float) -> int:
        """Count the members that must be processed by now; a cancel stops it where it is."""
        return self.done if self.problems or self.canceled is not None else self.schedule.due(self.size, now)

    def note(self, verdict: MemberOutcome, *lines: bytes) -> None:
        """Note what became of the next member."""
        self.done += 1
        self.counts[verdict] += 1
        (self.output if verdict is MemberOutcome.SUCCEEDED else self.errors).extend(lines)

    def close(self) -> None:
        """Let go of what is no longer needed."""
        self.closed = True
        self.members = []

    def has_fault(self, kind: FaultKind, place: str = "") -> bool:
        """Return whether its fault is of this kind and still seen at this place, and count that it was."""
        if self.fault is None or self.fault.kind is not kind:
            return False
        self._seen[place] += 1
        return self._seen[place] <= self.fault.looks
