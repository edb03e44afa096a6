"""The seam of the store: what the other rooms know of it.

Every protocol here is one part of a store, and `Store` names the parts; a smaller protocol stands beside them only
where somebody asks for no more than that (`SlotTable`).

Every writing method queues its write at once, in the order of the calls, and returns an awaitable that ends when the
write is durable. It cannot be canceled: a task that is canceled while it waits goes on waiting until the write is
there, and is canceled then. Reads are awaited or iterated over asynchronously, and see everything that is durable.
Failures are errors of the tree in `domain.errors`: StoreFailed for the disk, LeaseLost for a driver that was replaced.
"""

from typing import Protocol

from muster.store.base.batches import (
    Advance,
    BatchClaim,
    BatchReader,
    BatchWriter,
    Dismissal,
    ResultPage,
)
from muster.store.base.journal import (
    Attempt,
    Changes,
    Events,
    Journal,
    OfferWatch,
    Record,
    Reuser,
    RunArchive,
    RunOffers,
)
from muster.store.base.pool import (
    POOL_LEVEL,
    PoolRecord,
    PoolTable,
    SlotOutcome,
    SlotRecord,
    SlotStanding,
    SlotTable,
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
    BaselineTable,
    FigureTable,
    Maintenance,
    ReviewTable,
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
    RunCommands,
    RunPage,
    RunQueue,
    RunRelease,
    RunTable,
    SweptState,
    UnfinishedRuns,
    WorkerTable,
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
    "BaselineTable",
    "BatchClaim",
    "BatchReader",
    "BatchWriter",
    "Changes",
    "Claim",
    "Dismissal",
    "Events",
    "FigureTable",
    "Journal",
    "Leases",
    "LevelTotal",
    "Maintenance",
    "OfferWatch",
    "PoolRecord",
    "PoolTable",
    "PresentWorker",
    "ProcessTable",
    "QuestionOpening",
    "QuestionTable",
    "QueueTurn",
    "Record",
    "ResultPage",
    "Reuser",
    "ReviewTable",
    "RunArchive",
    "RunCommands",
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
    "SlotTable",
    "Store",
    "StoreSpending",
    "StoreTime",
    "StoreTotals",
    "SweptState",
    "TotalsReader",
    "UnfinishedRuns",
    "WorkerTable",
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
    def reuser(self) -> Reuser:
        """What runs take over from others."""

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
    def commands(self) -> RunCommands:
        """What people do to runs."""

    @property
    def leases(self) -> Leases:
        """Who drives."""

    @property
    def workers(self) -> WorkerTable:
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
    def batches(self) -> BatchReader:
        """The batches."""

    @property
    def batch_writer(self) -> BatchWriter:
        """What is written of batches."""

    @property
    def reviews(self) -> ReviewTable:
        """What people say about verdicts."""

    @property
    def figures(self) -> FigureTable:
        """What runs came to."""

    @property
    def baselines(self) -> BaselineTable:
        """What others are compared with."""

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
