"""The parts of a store over any database, put together: what differs is how it is read, written and looked after."""

import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from muster.domain.entry import Opening, Settlement
from muster.store.base import StoreTime
from muster.store.codec import Codec
from muster.store.database import runs
from muster.store.database.batches.tables import DatabaseBatches
from muster.store.database.calls import journal, settlements
from muster.store.database.media import DatabaseMedia
from muster.store.database.parts import (
    DatabaseArchive,
    DatabaseEvents,
    DatabaseJournal,
    DatabaseLeases,
    DatabaseRuns,
)
from muster.store.database.pool import DatabasePool
from muster.store.database.processes import DatabaseProcesses
from muster.store.database.questions import DatabaseQuestions
from muster.store.database.queue import DatabaseAnnouncements, DatabaseQueue
from muster.store.database.records import DatabaseAudit, DatabaseRecords
from muster.store.database.signals import DatabaseSignals
from muster.store.database.totals import DatabaseTotals
from muster.store.queries import DatabaseConnection, DatabaseReader, Locks
from muster.store.writer import WriteGroup, Writer


class CallWrites:
    """The writes that are made in one go: two of every call for many calls, and the heartbeats of all runs."""

    def __init__(self, codec: Codec) -> None:
        self.opens = WriteGroup(partial(_with_codec, journal.open_attempts, codec), _opening_locks)
        self.settles = WriteGroup(partial(_with_codec, settlements.settle_attempts, codec), _settlement_locks)
        self.beats = WriteGroup(runs.beat, lambda beat: Locks(runs=(beat.run,)))

    @property
    def groups(self) -> tuple[WriteGroup[Any, Any], ...]:
        """All of them, in the order in which they are made."""
        return self.opens, self.settles, self.beats


def _with_codec(apply: Any, codec: Codec, database: DatabaseConnection, items: Sequence[Any]) -> Any:
    return apply(database, codec, items)


def _opening_locks(opening: Opening) -> Locks:
    return Locks(runs=(opening.attempt.run,), levels=tuple(level.id for level in opening.levels))


def _settlement_locks(settlement: Settlement) -> Locks:
    return Locks(runs=(settlement.attempt.run,), levels=tuple(level.id for level in settlement.levels))


def pass_point(point: str) -> None:
    """Pass a kill point without dying."""


def ignore_message(words: str) -> None:
    """Ignore the message."""


class MachineTime:
    """The time of this machine, which is that of a file's store. Implements `StoreTime`."""

    def now(self) -> float:
        """Return the seconds since 1970."""
        return time.time()


class DatabaseStore:
    """All parts of a store but those that know which database it is.

    `slow_reader` is for sums over everything, which take a while; `require_known` refuses tables of a newer version.
    """

    def __init__(
        self,
        reader: DatabaseReader,
        slow_reader: DatabaseReader,
        writer: Writer,
        codec: Codec,
        writes: CallWrites,
        on_wait: Callable[[str], None],
        require_known: Callable[[DatabaseConnection], None],
    ) -> None:
        self.time: StoreTime = MachineTime()
        self._reads, self._slow_reads, self._writer, self._codec = reader, slow_reader, writer, codec
        self.journal = DatabaseJournal(reader, writer, codec, writes.opens, writes.settles)
        self.runs = DatabaseRuns(reader, writer, codec, require_known)
        self.leases = DatabaseLeases(writer, codec, writes.beats, on_wait)
        self.processes = DatabaseProcesses(reader, writer)
        self.events = DatabaseEvents(reader, writer, codec)
        self.batches = DatabaseBatches(reader, writer, codec)
        self.archive = DatabaseArchive(reader, writer, codec)

    @cached_property
    def media(self) -> DatabaseMedia:
        """The images and documents that requests show."""
        return DatabaseMedia(self._reads, self._writer, self._codec)

    @cached_property
    def queue(self) -> DatabaseQueue:
        """What waits for workers."""
        return DatabaseQueue(self._reads)

    @cached_property
    def announcements(self) -> DatabaseAnnouncements:
        """What hooks are to be told."""
        return DatabaseAnnouncements(self._reads, self._writer)

    @cached_property
    def signals(self) -> DatabaseSignals:
        """What comes from outside."""
        return DatabaseSignals(self._reads, self._writer, self._codec)

    @cached_property
    def questions(self) -> DatabaseQuestions:
        """What people are asked."""
        return DatabaseQuestions(self._reads, self._writer, self._codec)

    @cached_property
    def pool(self) -> DatabasePool:
        """The slots, and their tasks."""
        return DatabasePool(self._reads, self._writer, self._codec)

    @cached_property
    def records(self) -> DatabaseRecords:
        """What people say about verdicts, what runs came to, and what others are compared with."""
        return DatabaseRecords(self._reads, self._writer, self._codec)

    @cached_property
    def audit(self) -> DatabaseAudit:
        """What users did."""
        return DatabaseAudit(self._reads, self._writer, self._codec)

    @property
    def totals(self) -> DatabaseTotals:
        """Sums over all of it, and what was spent by whom."""
        return DatabaseTotals(self._slow_reads)
