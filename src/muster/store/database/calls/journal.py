"""The journal in the database: attempts opened in groups, steps remembered once, drivers fenced off by epoch."""

from collections.abc import Iterable, Sequence
from typing import Any

from muster.domain.budget import Decision, Granted
from muster.domain.canonical import JsonObject
from muster.domain.entry import (
    Entry,
    EntryState,
    Opening,
)
from muster.domain.errors import LeaseLost, MusterError, NotFound
from muster.domain.ids import RunId
from muster.store.base import Record
from muster.store.codec import Codec, entry_of, entry_parameters, read
from muster.store.database.calls.events import EventBuffer, NewEvent
from muster.store.database.calls.ledger import Reservations
from muster.store.queries import DatabaseConnection, Parameters, first

Opened = Sequence[Decision | MusterError]


def open_attempts(database: DatabaseConnection, codec: Codec, openings: Sequence[Opening]) -> Opened:
    """Reserve and start a group of attempts; what must wait or is refused leaves no trace."""
    fences = Fences(database, (opening.attempt.run for opening in openings))
    reservations = Reservations(database, (level for opening in openings for level in opening.levels))
    results: list[Decision | MusterError] = []
    granted: list[Opening] = []
    for opening in openings:
        stale = fences.stale(opening.attempt.run, opening.attempt.epoch)
        result = stale or reservations.request(opening.levels, opening.most)
        if isinstance(result, Granted):
            granted.append(opening)
        results.append(result)
    if granted:
        reservations.write()
        _write_openings(database, codec, granted)
    return results


def _write_openings(database: DatabaseConnection, codec: Codec, openings: Sequence[Opening]) -> None:
    buffer = EventBuffer(database, codec)
    for opening in openings:
        tally = buffer.tally(opening.attempt.run)
        tally.total += opening.first
        tally.failed -= opening.reopens
    calls = [call_parameters(opening, codec) for opening in openings]
    write_calls(database, calls)
    database.send_many("insert_attempt", calls)
    buffer.write()


def write_calls(database: DatabaseConnection, calls: Sequence[Parameters]) -> None:
    """Write calls that are opened: those that are new, and those that are tried again."""
    new = [call for call in calls if call["first"]]
    database.send_many("insert_call", new)
    database.send_many("insert_request", new)
    database.send_many("reopen_call", [call for call in calls if not call["first"]])
    _note_agents(database, calls)


def _note_agents(database: DatabaseConnection, calls: Sequence[Parameters]) -> None:
    """Write down once which agents runs have called; a run above them has called them too."""
    called = dict.fromkeys((call["agent"], call["run_id"]) for call in calls if call["agent"])
    database.send_many("note_agent", [{"agent": agent, "run_id": run} for agent, run in sorted(called)])


def call_parameters(opening: Opening, codec: Codec) -> JsonObject:
    """Spell an opening as parameters."""
    return {
        "run_id": opening.attempt.run,
        "key": codec.checked(opening.attempt.key),
        "n": opening.attempt.n,
        "epoch": opening.attempt.epoch,
        "digest": opening.digest,
        "agent": opening.agent,
        "request": codec.clean(opening.request) if opening.first else None,
        "reserved": opening.most,
        "levels": " ".join(level.id for level in opening.levels),
        "at": opening.at,
        "first": opening.first,
    }


def record(database: DatabaseConnection, codec: Codec, item: Record) -> Any:
    """Remember a value under a key, once; a second time gives back the first value."""
    check_fence(database, item.run, item.epoch)
    entry = Entry(
        run=item.run,
        key=codec.checked(item.key),
        kind=item.kind,
        state=EntryState.DONE,
        digest=item.digest,
        value=item.value,
        opened_at=item.at,
        settled_at=item.at,
    )
    if not write_entry(database, entry_parameters(entry, codec)):
        row = first(database.rows("select_entry", {"run_id": item.run, "key": item.key}))
        return read(row["outcome"]) if row else None
    if item.kind_of_event is not None:
        buffer = EventBuffer(database, codec)
        buffer.add(NewEvent(run=item.run, kind=item.kind_of_event, data=item.value, at=item.at))
        buffer.write()
    return item.value


def reuse(database: DatabaseConnection, codec: Codec, run: RunId, epoch: int, entry: Entry, at: float) -> None:
    """Copy another run's entry into this run; it counts as reused and costs nothing."""
    check_fence(database, run, epoch)
    parameters = entry_parameters(entry, codec)
    copied = {"run_id": run, "reused_from": entry.run, "opened_at": at, "settled_at": at, "attempts": 0}
    if write_entry(database, parameters | copied) and entry.kind == "call":
        buffer = EventBuffer(database, codec)
        tally = buffer.tally(run)
        tally.total += 1
        tally.reused += 1
        tally.done += entry.state is EntryState.DONE
        tally.failed += entry.state is EntryState.FAILED
        data = {"key": entry.key, "from": entry.run}
        buffer.add(NewEvent(run=run, kind="call.reused", data=data, at=at))
        buffer.write()


class KeysTaken(Exception):
    """Entries of a group have keys that are in the journal; the group must be gone through one by one."""


def write_entries(database: DatabaseConnection, entries: Sequence[Parameters]) -> None:
    """Write whole entries; those whose key is taken stay as they are."""
    try:
        with database.savepoint():
            _write_new(database, entries)
    except KeysTaken:
        for entry in entries:
            write_entry(database, entry)


def write_entry(database: DatabaseConnection, entry: Parameters) -> bool:
    """Write a whole entry; False, and nothing, when its key is taken."""
    try:
        _write_new(database, [entry])
    except KeysTaken:
        return False
    return True


def _write_new(database: DatabaseConnection, entries: Sequence[Parameters]) -> None:
    if database.execute_many("insert_entry", entries) != len(entries):
        raise KeysTaken
    database.send_many("insert_request", entries)
    database.send_many("insert_outcome", entries)
    _note_agents(database, entries)


def find(database: DatabaseConnection, run: RunId, key: str) -> Entry | None:
    """Read what is remembered under a key."""
    row = first(database.rows("select_entry", {"run_id": run, "key": key}))
    return entry_of(row) if row else None


class Fences:
    """Knows the epochs of runs inside one transaction and turns away drivers that were replaced."""

    def __init__(self, database: DatabaseConnection, runs: Iterable[RunId]) -> None:
        found = database.rows_of_many("select_epochs", [{"id": run} for run in sorted(set(runs))])
        # Once a run is let go of, its driver writes nothing more either: no batch for a run that was canceled.
        self._epochs = {row["id"]: row["epoch"] if row["state"] in ("running", "waiting") else -1 for row in found}

    def stale(self, run: RunId, epoch: int) -> MusterError | None:
        """Return the error for a driver that may not write any more."""
        current = self._epochs.get(run)
        if current is None:
            return NotFound(f"run {run} not found")
        if current != epoch:
            return LeaseLost(f"another driver has taken run {run}")
        return None


def check_fence(database: DatabaseConnection, run: RunId, epoch: int) -> None:
    """Raise for a driver that may not write any more."""
    error = Fences(database, (run,)).stale(run, epoch)
    if error is not None:
        raise error
