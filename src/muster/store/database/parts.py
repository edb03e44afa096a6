"""A store over any database: the shared parts that implement the seam.

Whoever checks something of a run before it writes says so with its locks: on a database with many writers nobody else
may change it in between.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from muster.domain.batch import Batch, BatchMember
from muster.domain.budget import Balance, Decision
from muster.domain.canonical import Json
from muster.domain.entry import AttemptId, AttemptState, Entry, EntryKind, Event, Opening, Settled, Settlement
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import Driver, NewRun, Run, RunState, StartRequest
from muster.store import claims
from muster.store.base import Attempt, Claim, DoneEntry, Record, RunPage, RunRelease
from muster.store.codec import Codec, attempt_of, entry_of, entry_parameters, event_of, read, run_of
from muster.store.database import deletions, runs
from muster.store.database.batches.changes import restore_batch
from muster.store.database.calls import journal
from muster.store.database.calls.events import NewEvent, write_event
from muster.store.database.calls.ledger import balance_of
from muster.store.database.processes import write_query
from muster.store.database.signals import address_lock
from muster.store.queries import DatabaseConnection, DatabaseReader, Locks, first
from muster.store.writer import NOTICE, WriteGroup, Writer

MAX_PAUSE = 0.1  # seconds between two parts of a deletion
CLAIM_LOOK_SECONDS = 0.1


class DatabaseJournal:
    """The journal and what a run takes over from another."""

    def __init__(
        self,
        reader: DatabaseReader,
        writer: Writer,
        codec: Codec,
        opens: WriteGroup[Opening, Decision],
        settles: WriteGroup[Settlement, Settled],
    ) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec
        self._opens, self._settles = opens, settles

    @property
    def unstored(self) -> int:
        """Return how many settlements of this process wait until they can be written."""
        return self._writer.count(self._settles)

    async def find(self, run: RunId, key: str) -> Entry | None:
        """Return what is remembered under this key."""
        return await self._reader.read(lambda db: journal.find(db, run, key))

    def open(self, opening: Opening) -> Awaitable[Decision]:
        """Reserve the money and write that the attempt starts."""
        return self._writer.submit(self._opens, opening)

    def settle(self, settlement: Settlement) -> Awaitable[Settled]:
        """Book the cost, write the outcome and tell it."""
        return self._writer.submit(self._settles, settlement)

    def record(self, record: Record) -> Awaitable[Json]:
        """Remember a value under a key, once."""
        return self._writer.run(lambda db: journal.record(db, self._codec, record), Locks(runs=(record.run,)))

    def reuse(self, run: RunId, epoch: int, entry: Entry, at: float) -> Awaitable[None]:
        """Copy another run's entry into this run."""
        work = partial(journal.reuse, codec=self._codec, run=run, epoch=epoch, entry=entry, at=at)
        return self._writer.run(work, Locks(runs=(run,)))

    async def position(self, run: RunId, key: str) -> int | None:
        """Return where in the order of its journal a key stands."""
        row = first(await self._reader.rows("select_entry", {"run_id": run, "key": key}))
        return row["position"] if row else None

    async def newest_child(self, run: RunId, key: str) -> Run | None:
        """Return the last child run that was started under this key."""
        # Later tries stand under the key, a separator and the run before; a space comes right after the separator.
        parameters = {"parent_id": run, "key": key, "low": key + "\x1f", "high": key + "\x20"}
        return await self._reader.read(lambda db: runs.named_by(db, "newest_child", parameters))

    async def find_before(self, run: RunId, key: str, position: int) -> Entry | None:
        """Return what is remembered under this key if it is older than the position."""
        row = first(await self._reader.rows("select_entry", {"run_id": run, "key": key}))
        return entry_of(row) if row and row["position"] < position else None


class DatabaseRuns:
    """The runs, and what a person does to them; `require_known` refuses tables of a newer version."""

    def __init__(
        self,
        reader: DatabaseReader,
        writer: Writer,
        codec: Codec,
        require_known: Callable[[DatabaseConnection], None],
    ) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec
        self._require_known = require_known

    def create(self, new: NewRun) -> Awaitable[Run]:
        """Store a run as queued."""

        def work(database: DatabaseConnection) -> Run:
            self._require_known(database)  # a program that is too old to go on with a run must not start one
            return runs.create(database, self._codec, new)

        related = (new.parent, new.origin.run if new.origin else None)
        locks = Locks(names=runs.start_locks(new), runs=tuple(run for run in related if run is not None))
        return self._writer.run(work, locks, begins=new.parent is None)

    async def get(self, run: RunId) -> Run | None:
        """Return a run as it stands."""
        row = first(await self._reader.rows("select_run", {"id": run}))
        return run_of(row) if row else None

    async def balances(self, levels: Iterable[str]) -> Mapping[str, Balance]:
        """Return what budgets hold, with their caps."""
        rows = await self._reader.rows_of_many("select_budgets", [{"id": level} for level in sorted(set(levels))])
        return {row["id"]: balance_of(row) for row in rows}

    async def select(self, states: Iterable[RunState] = (), limit: int = 100) -> Sequence[Run]:
        """Return the newest runs."""
        wanted = tuple(states)
        return await self._reader.read(lambda db: runs.select(db, wanted, limit))

    async def driven(self) -> Sequence[Run]:
        """Return the runs that have a driver, dead or alive."""
        return [run_of(row) for row in await self._reader.rows("select_runs_with_driver", {})]

    async def roots(self, limit: int = 100) -> Sequence[Run]:
        """Return the newest runs that are nobody's children."""
        return [run_of(row) for row in await self._reader.rows("select_roots", {"limit": limit})]

    async def end_of_lineage(self, run: RunId) -> Run | None:
        """Return the run that a run was last continued as, or itself."""
        return await self._reader.read(lambda db: runs.end_of_lineage(db, run))

    async def submitted(self, limit: int, workloads: Iterable[str] = (), after: Run | None = None) -> Sequence[Run]:
        """Return the runs that wait for a worker, the oldest first."""
        return await self._reader.read(lambda db: runs.submitted(db, limit, workloads, after))

    async def match(self, reference: str, owner: str | None = None) -> Sequence[Run]:
        """Return the runs that an id, the beginning of an id, or a name stands for."""
        # Ids are lower case letters and digits, so "{" is the first character after all of them.
        parameters = {"reference": reference, "after": reference + "{", "owner": owner}
        return [run_of(row) for row in await self._reader.rows("match_runs", parameters)]

    async def newest_named(self, name: str, owner: str | None = None) -> Run | None:
        """Return the newest run of a name that is not a child, of a user or of somebody at this machine."""
        return await self._reader.read(lambda db: runs.newest_named(db, self._codec.clean(name), owner))

    async def requested(self, owner: str | None, request: StartRequest) -> Run | None:
        """Return the run that a request of a user started before."""
        return await self._reader.read(lambda db: runs.requested(db, owner, request))

    async def page(self, wanted: RunPage) -> Sequence[Run]:
        """Return a page of runs, the newest first."""
        return await self._reader.read(lambda db: runs.page(db, wanted))

    async def ended(self, before: float, limit: int) -> Sequence[RunId]:
        """Return runs that are nobody's children and ended before a time."""
        return [RunId(row["id"]) for row in await self._reader.rows("select_ended", {"before": before, "limit": limit})]

    def cancel(self, run: RunId, at: float) -> Awaitable[Run]:
        """Ask the driver to stop; a run that nobody drives is canceled at once."""
        return self._writer.run(lambda db: runs.cancel(db, self._codec, run, at), Locks(runs=(run,)))

    def requeue(self, run: RunId, at: float) -> Awaitable[Run]:
        """Hand a run that stands still to the workers."""
        return self._writer.run(lambda db: runs.requeue(db, self._codec, run, at), Locks(runs=(run,)))

    def set_cap(self, run: RunId, cap: Microdollars, before: Microdollars | None) -> Awaitable[None]:
        """Change the budget of a run that stands still."""
        return self._writer.run(lambda db: runs.set_cap(db, run, cap, before), Locks(runs=(run,)))

    def cap_level(self, level: str, cap: Microdollars) -> Awaitable[None]:
        """Set the cap of a budget that is not that of a run."""
        return self._writer.run(lambda db: runs.cap_level(db, level, cap))

    def amend(self, run: RunId, spec: Json) -> Awaitable[Run]:
        """Change the spec of a run that has not begun."""
        return self._writer.run(lambda db: runs.amend(db, self._codec, run, spec), Locks(runs=(run,)))

    async def delete(self, run: RunId, at: float) -> None:
        """Forget a run that nobody drives, and what is left of others whose deletion was interrupted."""
        await self._writer.run(lambda db: deletions.begin_deletion(db, self._codec, run, at), Locks(runs=(run,)))
        await self.finish_deletions()

    async def finish_deletions(self) -> None:
        """Delete what is left of deleted runs, piece by piece."""
        while True:
            began = time.monotonic()
            if not await self._writer.run(deletions.delete_some, Locks(names=("deletions",))):
                return
            # As long a pause as it took: else no other process would get the lock in between.
            await asyncio.sleep(min(time.monotonic() - began, MAX_PAUSE))


class DatabaseLeases:
    """Who drives which run."""

    stops_drivers = False

    def __init__(
        self,
        writer: Writer,
        codec: Codec,
        beats: WriteGroup[runs.Heartbeat, bool],
        on_wait: Callable[[str], None],
    ) -> None:
        self._writer, self._codec, self._beats, self._on_wait = writer, codec, beats, on_wait

    async def claim(
        self,
        run: RunId,
        driver: Driver,
        expected_epoch: int,
        at: float,
        until: float,
        *,
        seen_until: float | None = None,
    ) -> Claim:
        """Take the run if nobody else has since; waits while another process has the store for itself."""
        began, waited, told = time.monotonic(), 0.0, False
        taking = runs.Taking(run=run, driver=driver, epoch=expected_epoch, at=at, until=until, seen_until=seen_until)
        while True:
            try:
                return await self._claim(replace(taking, at=at + waited, until=until + waited))
            except claims.StoreClaimed as error:
                if not told and waited >= NOTICE:
                    told = True
                    self._on_wait(f"run {run} waits: {error.message}")
                await asyncio.sleep(CLAIM_LOOK_SECONDS)
                waited = time.monotonic() - began

    def _claim(self, taking: runs.Taking) -> Awaitable[Claim]:
        return self._writer.run(lambda db: runs.claim(db, self._codec, taking), Locks(runs=(taking.run,)))

    def beat(self, run: RunId, epoch: int, until: float, active: float, state: RunState) -> Awaitable[bool]:
        """Keep the lease; return whether somebody asked to cancel."""
        beat = runs.Heartbeat(run=run, epoch=epoch, until=until, active=active, state=state)
        return self._writer.submit(self._beats, beat)

    def release(self, run: RunId, epoch: int, ending: RunRelease) -> Awaitable[Run]:
        """Let go of the run in its new state."""
        locks = Locks(names=tuple(address_lock(one.address) for one in ending.awaited), runs=(run,))
        return self._writer.run(lambda db: runs.release(db, self._codec, run, epoch, ending), locks)

    def expire(
        self, run: RunId, expected_epoch: int, at: float, message: str, *, seen_until: float | None = None
    ) -> Awaitable[Claim]:
        """Mark the run of a dead driver as interrupted, or canceled if that was asked for."""
        scope = {"id": run, "epoch": expected_epoch, "at": at, "seen_until": seen_until}

        def work(database: DatabaseConnection) -> Claim:
            return runs.expire(database, self._codec, run, scope, message)

        return self._writer.run(work, Locks(runs=(run,)), begins=True)


class DatabaseEvents:
    """Facts about runs, and the half-written text of open calls."""

    def __init__(self, reader: DatabaseReader, writer: Writer, codec: Codec) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec

    def append(self, run: RunId, epoch: int, kind: str, data: Mapping[str, Json], at: float) -> Awaitable[Event]:
        """Append an event."""

        def work(database: DatabaseConnection) -> Event:
            journal.check_fence(database, run, epoch)
            seq = write_event(database, self._codec, NewEvent(run=run, kind=kind, data=data, at=at))
            return Event(run=run, seq=seq, kind=kind, at=at, data=data)

        return self._writer.run(work, Locks(runs=(run,)))

    async def read(self, run: RunId, after: int, limit: int) -> Sequence[Event]:
        """Return the events after a number, in order."""
        return [
            event_of(row)
            for row in await self._reader.rows("select_events", {"run_id": run, "after": after, "limit": limit})
        ]

    async def first(self, run: RunId, kind: str) -> Event | None:
        """Return the first event of a kind."""
        row = first(await self._reader.rows("select_first_event", {"run_id": run, "kind": kind}))
        return event_of(row) if row else None

    def put_partial(self, attempt: AttemptId, text: str, at: float) -> Awaitable[None]:
        """Overwrite what an open call has written so far."""
        name = {"run_id": attempt.run, "key": attempt.key, "epoch": attempt.epoch}
        return write_query(self._writer, "put_partial", {**name, "text": self._codec.text(text), "at": at})

    async def partials(self, run: RunId) -> Mapping[str, str]:
        """Return the half-written text of every open call."""
        return {row["key"]: read(row["text"]) for row in await self._reader.rows("select_partials", {"run_id": run})}


class DatabaseArchive:
    """Everything of one run."""

    def __init__(self, reader: DatabaseReader, writer: Writer, codec: Codec) -> None:
        self._reader, self._writer, self._codec = reader, writer, codec

    async def entries(self, run: RunId, after: int = 0, page: int = 500) -> AsyncIterator[Entry]:
        """Return the entries in the order they were opened, page by page."""
        while True:
            rows = await self._reader.rows("select_entries", {"run_id": run, "after": after, "limit": page})
            for row in rows:
                yield entry_of(row)
            if len(rows) < page:
                return
            after = rows[-1]["position"]

    async def done(self, run: RunId) -> Sequence[DoneEntry]:
        """Return what identifies the entries that have their outcome."""
        rows = await self._reader.rows("select_done", {"run_id": run})
        return [DoneEntry(row["key"], EntryKind(row["kind"]), row["digest"]) for row in rows]

    async def attempts(self, run: RunId, states: Iterable[AttemptState] = ()) -> Sequence[Attempt]:
        """Return the attempts, of these states if any are named."""
        wanted = tuple(states)
        if not wanted:
            return [attempt_of(row) for row in await self._reader.rows("select_attempts", {"run_id": run})]
        return [
            attempt_of(row)
            for state in wanted
            for row in await self._reader.rows("select_attempts_in_state", {"run_id": run, "state": str(state)})
        ]

    async def attempts_of(self, run: RunId, key: str) -> Sequence[Attempt]:
        """Return the attempts of one call, in order."""
        rows = await self._reader.rows("select_attempts_of_call", {"run_id": run, "key": key})
        return [attempt_of(row) for row in rows]

    def restore(self, run: Run, parked: Sequence[tuple[Batch, Sequence[BatchMember]]] = ()) -> Awaitable[None]:
        """Store a run from elsewhere, and the batches that hold calls of it."""

        def work(database: DatabaseConnection) -> None:
            runs.restore(database, self._codec, run)
            for batch, members in parked:
                restore_batch(database, self._codec, batch, members, runs.levels_of(run))

        return self._writer.run(work, Locks(names=(f"run:{run.id}",), levels=runs.levels_of(run)))

    async def children(self, run: RunId) -> Sequence[Run]:
        """Return the child runs."""
        return [run_of(row) for row in await self._reader.rows("select_children", {"parent_id": run})]

    def restore_entries(self, entries: Sequence[Entry]) -> Awaitable[None]:
        """Store a page of entries of a run that is being restored."""
        rows = [entry_parameters(entry, self._codec) for entry in entries]

        def work(database: DatabaseConnection) -> None:
            journal.write_entries(database, rows)

        return self._writer.run(work)
