"""The seam of the store: what the other rooms know of it.

Every protocol here is one part of a store, and `Store` names the parts.

Every writing method queues its write at once, in the order of the calls, and returns an awaitable that ends when the
write is durable. It cannot be canceled: a task that is canceled while it waits goes on waiting until the write is
there, and is canceled then. Reads are awaited or iterated over asynchronously, and see everything that is durable.
Failures are errors of the tree in `domain.errors`: StoreFailed for the disk, LeaseLost for a driver that was replaced.
"""

from typing import Protocol

from muster.store.base.batches import (
    Advance,
    BatchClaim,
    BatchTable,
    Dismissal,
    ResultPage,
)
from muster.store.base.journal import (
    Attempt,
    Changes,
    DoneEntry,
    Events,
    Journal,
    OfferWatch,
    Record,
    RunArchive,
    RunOffers,
)
from muster.store.base.media import MediaTable
from muster.store.base.pool import (
    POOL_LEVEL,
    PoolRecord,
    PoolTable,
    SlotOutcome,
    SlotRecord,
    SlotStanding,
)
from muster.store.base.questions import (
    AnswerTaking,
    QuestionOpening,
    QuestionTable,
)
from muster.store.base.records import (
    AuditRecord,
    AuditTable,
    Baseline,
    Maintenance,
    RecordTable,
    StoreTime,
)
from muster.store.base.runs import (
    Announcement,
    Announcements,
    Claim,
    Leases,
    PresentWorker,
    ProcessTable,
    QueueTurn,
    RunPage,
    RunQueue,
    RunRelease,
    RunTable,
    SweptState,
    UnfinishedRuns,
)
from muster.store.base.signals import SignalTable, SignalTaking
from muster.store.base.totals import (
    AgentTotal,
    LevelTotal,
    RunGroup,
    RunTotal,
    SlotGroup,
    StoreSpending,
    StoreTotals,
    TotalsReader,
)

__all__ = [
    "POOL_LEVEL",
    "Advance",
    "AgentTotal",
    "Announcement",
    "Announcements",
    "AnswerTaking",
    "Attempt",
    "AuditRecord",
    "AuditTable",
    "Baseline",
    "BatchClaim",
    "BatchTable",
    "Changes",
    "Claim",
    "Dismissal",
    "DoneEntry",
    "Events",
    "Journal",
    "Leases",
    "LevelTotal",
    "Maintenance",
    "MediaTable",
    "OfferWatch",
    "PoolRecord",
    "PoolTable",
    "PresentWorker",
    "ProcessTable",
    "QuestionOpening",
    "QuestionTable",
    "QueueTurn",
    "Record",
    "RecordTable",
    "ResultPage",
    "RunArchive",
    "RunGroup",
    "RunOffers",
    "RunPage",
    "RunQueue",
    "RunRelease",
    "RunTable",
    "RunTotal",
    "SignalTable",
    "SignalTaking",
    "SlotGroup",
    "SlotOutcome",
    "SlotRecord",
    "SlotStanding",
    "Store",
    "StoreSpending",
    "StoreTime",
    "StoreTotals",
    "SweptState",
    "TotalsReader",
    "UnfinishedRuns",
]


class Store(Protocol):
    """All abilities of a store, by part; whoever needs only one asks for that protocol."""

    @property
    def time(self) -> StoreTime:
        """When it is."""

    @property
    def journal(self) -> Journal:
        """Calls and steps."""

    @property
    def runs(self) -> RunTable:
        """The runs."""

    @property
    def queue(self) -> RunQueue:
        """What waits for workers."""

    @property
    def announcements(self) -> Announcements:
        """What hooks are to be told."""

    @property
    def leases(self) -> Leases:
        """Who drives."""

    @property
    def processes(self) -> ProcessTable:
        """Which workers are there, and which processes drivers have started."""

    @property
    def events(self) -> Events:
        """What happened."""

    @property
    def changes(self) -> Changes:
        """That something happened."""

    @property
    def offers(self) -> RunOffers:
        """That runs may have become due."""

    @property
    def signals(self) -> SignalTable:
        """What comes from outside."""

    @property
    def questions(self) -> QuestionTable:
        """What people are asked."""

    @property
    def pool(self) -> PoolTable:
        """The slots, and their tasks."""

    @property
    def media(self) -> MediaTable:
        """The images and documents that requests show."""

    @property
    def batches(self) -> BatchTable:
        """The batches."""

    @property
    def records(self) -> RecordTable:
        """What people say about verdicts, what runs came to, and what others are compared with."""

    @property
    def audit(self) -> AuditTable:
        """What users did."""

    @property
    def totals(self) -> TotalsReader:
        """Sums over all of it, and what was spent by whom."""

    @property
    def archive(self) -> RunArchive:
        """Whole runs."""

    @property
    def maintenance(self) -> Maintenance:
        """The store itself."""
