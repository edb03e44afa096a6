"""The journal in the database: attempts opened and settled in groups, steps remembered once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muster.domain.budget import Decision, Granted, Level
from muster.domain.call import Quality, Reply
from muster.domain.canonical import Json
from muster.domain.entry import (
    AttemptState,
    Entry,
    EntryState,
    Failed,
    Opening,
    Outcome,
    Replied,
    Settled,
    Settlement,
)
from muster.domain.errors import LeaseLost, MusterError, NotFound
from muster.domain.ids import RunId
from muster.domain.money import NOTHING, Lane, Microdollars, is_cost
from muster.store.base import Record
from muster.store.codec import Codec, entry_of, entry_parameters, read
from muster.store.events import Fact, Telling
from muster.store.ledger import Booking, Reservations, book
from muster.store.queries import DatabaseConnection, Parameters, first

Opened = Sequence[Decision | MusterError]


def open_attempts(database: DatabaseConnection, codec: Codec, openings: Sequence[Opening]) -> Opened:
    """Reserve and start a group of attempts; what must wait or is refused leaves no trace."""
    fences = Fences(database)
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
    telling = Telling(database, codec)
    for opening in openings:
        tally = telling.tally(opening.attempt.run)
        tally.total += opening.first
        tally.failed -= opening.reopens
    calls = [call_parameters(opening, codec) for opening in openings]
    write_calls(database, calls)
    database.execute_many("insert_attempt", calls)
    telling.write()


def write_calls(database: DatabaseConnection, calls: Sequence[Parameters]) -> None:
    """Write calls that are opened: those that are new, and those that are tried again."""
    new = [call for call in calls if call["first"]]
    database.execute_many("insert_call", new)
    database.execute_many("insert_request", new)
    database.execute_many("reopen_call", [call for call in calls if not call["first"]])


def call_parameters(opening: Opening, codec: Codec) -> dict[str, Any]:
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


def settle_attempts(database: DatabaseConnection, codec: Codec, settlements: Sequence[Settlement]) -> Sequence[Settled]:
    """Settle a group of attempts; those that are not open any more are sorted out one by one."""
    rows = [Settling(settlement, codec) for settlement in settlements]
    changed = database.execute_many("settle_attempt", [row.columns for row in rows])
    if changed != len(rows):
        if len(rows) == 1:
            return [_settle_closed(database, codec, settlements[0])]
        raise NotAllOpen("an attempt of this group was settled before")
    if end_calls(database, rows) != sum(row.reply is not None for row in rows):
        if len(rows) > 1:
            raise NotAllOpen("a call of this group has a reply already")
        rows[0].kept = False  # a late reply of a driver before was faster
    telling = Telling(database, codec)
    for row in rows:
        row.count(telling)
        row.tell(telling)
    database.execute_many("drop_partial", [row.columns for row in rows if row.streamed])
    book(database, bookings(rows))
    telling.write()
    return [row.settled for row in rows]


def end_calls(database: DatabaseConnection, rows: "Sequence[Settling]") -> int:
    """Write the replies of calls that are answered and the errors of those that are given up; gives how many replied.

    A reply to a call that has one already is not written.
    """
    answered = [row.columns for row in rows if row.reply is not None]
    if None in [columns["position"] for columns in answered]:
        finished = database.execute_many("finish_call", answered)
        database.execute_many("insert_outcome", answered)
    else:
        finished = database.execute_many("finish_call_at", answered)
        database.execute_many("insert_outcome_at", answered)
    database.execute_many("fail_call", [row.columns for row in rows if row.gives_up])
    return finished


class NotAllOpen(MusterError):
    """One attempt of a group is not open any more; the group must be taken apart."""


def _settle_closed(database: DatabaseConnection, codec: Codec, settlement: Settlement) -> Settled:
    """Settle an attempt that was never opened, or that somebody else has settled."""
    attempt = settlement.attempt
    name = {"run_id": attempt.run, "key": attempt.key, "n": attempt.n}
    row = first(database.rows("select_attempt", name))
    if row is None or row["epoch"] != attempt.epoch or not database.rows("select_lease", {"id": attempt.run}):
        # It was never opened: the opening was refused or had to wait. Or its run is being deleted.
        return Settled(cost=NOTHING, kept=False)
    if row["state"] == AttemptState.UNCERTAIN and isinstance(settlement.outcome, Replied):
        return _settle_late(database, codec, settlement, row["levels"])
    return Settled(cost=Microdollars(row["cost"]), late=True, kept=False)


def _settle_late(database: DatabaseConnection, codec: Codec, settlement: Settlement, levels: str) -> Settled:
    """Book the true cost of an attempt that was booked as uncertain; its reply counts only if none is there."""
    row = Settling(settlement, codec)
    database.execute("resolve_attempt", row.columns)
    kept = database.execute("finish_call", row.columns) == 1
    database.execute("insert_outcome", row.columns)  # which does nothing when there is a reply
    where = tuple(levels.split())
    book(
        database,
        [
            Booking(levels=where, reserved=0, cost=-settlement.reserved, lane=Lane.UNCERTAIN),
            Booking(levels=where, reserved=0, cost=row.cost, lane=row.lane),
        ],
    )
    telling = Telling(database, codec)
    tally = telling.tally(settlement.attempt.run)
    tally.uncertain -= 1
    tally.done += kept
    data = {"key": settlement.attempt.key, "attempt": settlement.attempt.n, "cost": row.cost, "kept": kept}
    telling.tell(Fact(run=settlement.attempt.run, kind="call.late", data=data, at=settlement.at))
    telling.write()
    return Settled(cost=Microdollars(row.cost), late=True, kept=kept)


class Settling:
    """One settlement spelled as rows, a booking and a fact."""

    __slots__ = (
        "_attempt", "_failure", "at", "columns", "cost", "kept", "lane", "levels", "live_cost", "reply", "reserved",
        "run", "state", "streamed",
    )  # fmt: skip

    def __init__(self, settlement: Settlement, codec: Codec) -> None:
        outcome = settlement.outcome
        self._attempt = attempt = settlement.attempt
        self.run, self.levels, self.at = attempt.run, settlement.levels, settlement.at
        self.reserved, self.live_cost, self.streamed = settlement.reserved, settlement.live_cost, settlement.streamed
        self.reply = reply = outcome.reply.booked(self.reserved) if isinstance(outcome, Replied) else None
        self.state, self.cost, self.lane = _judge(outcome, reply, self.reserved)
        self.kept = True  # whether its reply, if any, is the call's
        self._failure = failure = outcome if isinstance(outcome, Failed) else None
        self.columns: dict[str, Any] = {  # of the attempt and of the call
            "run_id": self.run,
            "key": attempt.key,
            "n": attempt.n,
            "epoch": attempt.epoch,
            "state": _WORDS[self.state],
            "cost": self.cost,
            "lane": _WORDS[self.lane],
            "at": self.at,
            "error": None if failure is None else codec.text(failure.error),
            "live_cost": self.live_cost,
            "outcome": None if reply is None else codec.text(reply),
            "position": settlement.position,
        }

    @property
    def gives_up(self) -> bool:
        """Whether the call has failed with it."""
        return self._failure is not None and self._failure.gives_up

    @property
    def overdraft(self) -> bool:
        """Whether it cost more than was reserved."""
        return self.cost > self.reserved

    @property
    def settled(self) -> Settled:
        """What to tell the driver."""
        return Settled(cost=Microdollars(self.cost), overdraft=self.overdraft, kept=self.kept)

    def count(self, telling: Telling) -> None:
        """Add the counter changes of this settlement."""
        tally = telling.tally(self.run)
        tally.done += self.reply is not None and self.kept
        tally.failed += self.gives_up
        tally.uncertain += self.state is AttemptState.UNCERTAIN

    def tell(self, telling: Telling) -> None:
        """Add the facts of this settlement."""
        if self.state is not AttemptState.UNSENT:
            telling.tell(Fact(run=self.run, kind=self._kind, data=self._data, at=self.at))
        if self.overdraft:
            data = {"key": self._attempt.key, "reserved": self.reserved, "cost": self.cost}
            telling.tell(Fact(run=self.run, kind="overdraft", data=data, at=self.at))

    @property
    def _kind(self) -> str:
        if self.reply is not None:
            return "call.done" if self.kept else "call.late"
        if self.gives_up:
            return "call.failed"
        again = self._failure is not None and self._failure.again_in is not None
        return "call.retry" if again else "call.cut"

    @property
    def _data(self) -> dict[str, object]:
        data: dict[str, object] = {
            "key": self._attempt.key,
            "attempt": self._attempt.n,
            "cost": self.cost,
            "lane": _WORDS[self.lane],
        }
        if self.overdraft:
            data["budget_exceeded"] = True
        if self.reply is not None:
            data |= {"quality": _WORDS[self.reply.quality]} | ({} if self.kept else {"kept": False})
        elif self._failure is not None:
            data |= {"error": self._failure.error, "again_in": self._failure.again_in}
        return data


def bookings(rows: Iterable[Settling]) -> Iterable[Booking]:
    """Give the reservations given back and the costs booked, summed up where levels and lane are the same."""
    sums: dict[tuple[tuple[Level, ...], Lane], list[int]] = {}
    levels: tuple[Level, ...] | None = None
    lane, amounts = None, [0, 0]
    for row in rows:
        if row.levels is not levels or row.lane is not lane:  # mostly they are its neighbour's, and need no looking up
            levels, lane = row.levels, row.lane
            amounts = sums.setdefault((levels, lane), [0, 0])
        amounts[0] += row.reserved
        amounts[1] += row.cost
    for (where, how), (reserved, cost) in sums.items():
        yield Booking(levels=tuple(level.id for level in where), reserved=reserved, cost=cost, lane=how)


# Looked up: asking an enum for its value is slow, and this is done for every call.
_WORDS: Mapping[str, str] = {word: word.value for kind in (AttemptState, Lane, Quality) for word in kind}


def _judge(outcome: Outcome, reply: Reply | None, reserved: Microdollars) -> tuple[AttemptState, Microdollars, Lane]:
    """Say how an attempt ended, what it cost and in which lane; no cost below zero gets past this."""
    if reply is not None:
        return AttemptState.SUCCEEDED, reply.cost, reply.lane
    if isinstance(outcome, Failed):
        if outcome.uncertain or not is_cost(outcome.cost):
            return AttemptState.UNCERTAIN, reserved, Lane.UNCERTAIN
        return outcome.ended_as, outcome.cost, outcome.lane
    return AttemptState.UNSENT, NOTHING, Lane.BILLED


def strand_attempts(database: DatabaseConnection, codec: Codec, run: RunId, at: float) -> tuple[int, Microdollars]:
    """Book every attempt that a former driver left open as uncertain; gives how many and how much."""
    rows = database.rows("select_attempts_in_state", {"run_id": run, "state": AttemptState.STARTED.value})
    error = codec.text({"code": "driver_gone", "message": "the driver was gone before the outcome was known"})
    for row in rows:
        name = {"run_id": run, "key": row["key"], "n": row["n"], "epoch": row["epoch"]}
        ending = {"state": AttemptState.UNCERTAIN.value, "cost": row["reserved"], "lane": Lane.UNCERTAIN.value}
        database.execute("settle_attempt", {**name, **ending, "at": at, "error": error})
    book(
        database,
        [
            Booking(
                levels=tuple(row["levels"].split()), reserved=row["reserved"], cost=row["reserved"], lane=Lane.UNCERTAIN
            )
            for row in rows
        ],
    )
    telling = Telling(database, codec)
    telling.tally(run).uncertain += len(rows)
    for row in rows:
        data = {"key": row["key"], "attempt": row["n"], "cost": row["reserved"], "lane": Lane.UNCERTAIN.value}
        telling.tell(Fact(run=run, kind="call.uncertain", data=data, at=at))
    telling.write()
    return len(rows), Microdollars(sum(row["reserved"] for row in rows))


def record(database: DatabaseConnection, codec: Codec, item: Record) -> Json:
    """Remember a value under a key, once; a second time gives back the first value."""
    Fences(database).check(item.run, item.epoch)
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
        telling = Telling(database, codec)
        telling.tell(Fact(run=item.run, kind=item.kind_of_event, data=item.value, at=item.at))
        telling.write()
    return item.value


def reuse(database: DatabaseConnection, codec: Codec, run: RunId, epoch: int, entry: Entry, at: float) -> None:
    """Copy another run's entry into this run; it counts as reused and costs nothing."""
    Fences(database).check(run, epoch)
    parameters = entry_parameters(entry, codec)
    copied = {"run_id": run, "reused_from": entry.run, "opened_at": at, "settled_at": at, "attempts": 0}
    if write_entry(database, parameters | copied) and entry.kind == "call":
        telling = Telling(database, codec)
        tally = telling.tally(run)
        tally.total += 1
        tally.reused += 1
        tally.done += entry.state is EntryState.DONE
        tally.failed += entry.state is EntryState.FAILED
        data = {"key": entry.key, "from": entry.run}
        telling.tell(Fact(run=run, kind="call.reused", data=data, at=at))
        telling.write()


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
    database.execute_many("insert_request", entries)
    database.execute_many("insert_outcome", entries)


def find(database: DatabaseConnection, run: RunId, key: str) -> Entry | None:
    """Read what is remembered under a key."""
    row = first(database.rows("select_entry", {"run_id": run, "key": key}))
    return entry_of(row) if row else None


class Fences:
    """Knows the epochs of runs inside one transaction and turns away drivers that were replaced."""

    def __init__(self, database: DatabaseConnection) -> None:
        self._database = database
        self._epochs: dict[RunId, int | None] = {}

    def stale(self, run: RunId, epoch: int) -> MusterError | None:
        """Give the error for a driver that may not write any more."""
        if run not in self._epochs:
            row = first(self._database.rows("select_lease", {"id": run}))
            # Once a run is let go of, its driver writes nothing more either: no batch for a run that was canceled.
            self._epochs[run] = (row["epoch"] if row["state"] in ("running", "waiting") else -1) if row else None
        current = self._epochs[run]
        if current is None:
            return NotFound(f"there is no run {run}")
        if current != epoch:
            return LeaseLost(f"another driver has taken run {run}")
        return None

    def check(self, run: RunId, epoch: int) -> None:
        """Raise for a driver that may not write any more."""
        error = self.stale(run, epoch)
        if error is not None:
            raise error
