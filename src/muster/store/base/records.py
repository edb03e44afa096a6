"""What people keep about runs, and the store itself as a place that is looked after."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from muster.domain.canonical import Json
from muster.domain.errors import MusterError
from muster.domain.ids import RunId
from muster.domain.review import Review
from muster.domain.run import Driver


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A name for a run that others are compared with; the run cannot be forgotten while it has one."""

    name: str
    run: RunId
    at: float  # when the name was given


class RecordTable(Protocol):
    """What people say about verdicts, figures of runs that have ended, and names of runs that others are compared with.

    A review may be added again. Figures are kept so that they are made once: what they were made from is compared, so
    what the run has become since then is never shown with older figures.
    """

    def add_review(self, review: Review) -> Awaitable[None]:
        """Remember a review; of one person and verdict the newest stays. Raises NotFound for a run that is not here."""

    async def reviews_of(self, run: RunId) -> Sequence[Review]:
        """Return the reviews of a run, by case."""

    async def figures_version(self, run: RunId) -> str:
        """Return what differs once a run that has ended was changed: by a late reply, or the rest of an import."""

    async def find_figures(self, run: RunId, made_from: str) -> Any:
        """Return the figures of a run, if they were made from this; None: they were not."""

    def keep_figures(self, run: RunId, made_from: str, figures: object) -> Awaitable[None]:
        """Keep the figures of a run in place of older ones; nothing for a run that is not here."""

    def set_baseline(self, name: str, run: RunId, at: float) -> Awaitable[None]:
        """Let a name stand for a run, whatever it stood for before; raises NotFound for a run that is not here."""

    async def find_baseline(self, name: str) -> Baseline | None:
        """Return the baseline of this name."""

    async def baselines(self) -> Sequence[Baseline]:
        """Return all baselines, by name."""

    def remove_baseline(self, name: str) -> Awaitable[None]:
        """Forget a name; the run stays. Raises NotFound for a name that is not here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One thing that a user did through a server."""

    at: float
    user: str | None  # None: the local user
    client: str  # the address of the client
    action: str
    subject: str  # what it was done to, such as the id of a run
    request_id: str
    outcome: str = "unknown"  # "done", or the code of an error; unknown: the server ended before it knew
    seq: int = 0  # given by the store


class AuditTable(Protocol):
    """What users did through servers. Written before each start, review and cancel, and again with what came of it."""

    def begin(self, record: AuditRecord) -> Awaitable[int]:
        """Remember what somebody is about to do; returns its number."""

    def end(self, seq: int, subject: str, outcome: str) -> Awaitable[None]:
        """Remember to what it was done in the end, and what came of it."""

    def withdraw(self, seq: int) -> Awaitable[None]:
        """Forget what was refused before anything was done."""

    async def newest(self, before: int | None = None, limit: int = 100) -> Sequence[AuditRecord]:
        """Return records, the newest first; with `before` those with a lower number."""


class StoreTime(Protocol):
    """The time by which leases and everything else in this store are dated. Asked all the time; never waits."""

    def now(self) -> float:
        """Return the seconds since 1970: of the server that all machines share, or of this machine."""


class Maintenance(Protocol):
    """The store as a place, called by whoever opened it; `info` and `shortage` only read.

    A vacuum that is canceled has changed nothing.
    """

    async def info(self) -> Mapping[str, Json]:
        """Return where the store is, how large, of which version."""

    async def shortage(self) -> MusterError | None:
        """Return the error that says why the store cannot be written to, if anything is known."""

    def touch(self) -> Awaitable[None]:
        """Begin a write that changes nothing; raises StoreFailed when the store would refuse one.

        It waits as long as another process keeps the store locked, and is no change to whoever waits for one.
        """

    def vacuum(self, driver: Driver, at: float) -> Awaitable[None]:
        """Return free space to the disk; raises Conflict while runs are driven, and runs wait until it is done."""

    def hide(self, secret: str) -> None:
        """Take a secret that was made meanwhile out of everything that is written from now on."""

    def give_up(self) -> None:
        """Wait no longer for a lock of another process, or for room: what cannot be written now fails."""

    async def close(self) -> None:
        """Write what is queued and let go of the file."""
