"""Attempts settled in the database: outcome, cost and event of a group in one transaction, and what came too late."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from muster.domain.budget import Level
from muster.domain.call import Quality, Reply
from muster.domain.canonical import JsonObject
from muster.domain.entry import AttemptState, Failed, Outcome, Replied, Settled, Settlement
from muster.domain.errors import MusterError
from muster.domain.ids import RunId
from muster.domain.money import NOTHING, Lane, Microdollars, is_cost
from muster.store.codec import Codec
from muster.store.database.calls.events import EventBuffer, NewEvent
from muster.store.database.calls.ledger import Booking, book
from muster.store.queries import DatabaseConnection, first


def settle_attempts(database: DatabaseConnection, codec: Codec, settlements: Sequence[Settlement]) -> Sequence[Settled]:
    """Settle a group of attempts; those that are not open any more are sorted out one by one."""
    rows = [SettlementRow(settlement, codec) for settlement in settlements]
    if len(rows) > 1:
        database.send_many("settle_attempt", [row.columns for row in rows], NotAllOpen)
        end_calls(database, rows, NotAllOpen)
    elif not database.execute_many("settle_attempt", [rows[0].columns]):
        return [_settle_closed(database, codec, settlements[0])]
    else:
        # A late reply of a driver before may have been faster.
        rows[0].kept = end_call(database, rows[0]) or rows[0].reply is None
    buffer = EventBuffer(database, codec)
    for row in rows:
        row.count(buffer)
        row.add_events(buffer)
    database.send_many("drop_partial", [row.columns for row in rows if row.streamed])
    count_attempts(database, rows)
    book(database, bookings(rows))
    buffer.write()
    return [row.settled for row in rows]


def count_attempts(database: DatabaseConnection, rows: "Sequence[SettlementRow]") -> None:
    """Add attempts that were settled to what their agents cost on the days on which they began."""
    database.send_many("count_attempts", [row.columns for row in rows])


def end_calls(
    database: DatabaseConnection, rows: "Sequence[SettlementRow]", otherwise: Callable[[], MusterError]
) -> None:
    """Write the replies of calls that are answered and the errors of those that are given up.

    Raises `otherwise`, at the latest with the next flush, when one of them has a reply already.
    """
    answered = [row.columns for row in rows if row.reply is not None]
    at = "" if None in [columns["position"] for columns in answered] else "_at"
    database.send_many(f"finish_call{at}", answered, otherwise)
    database.send_many(f"insert_outcome{at}", answered)
    database.send_many("fail_call", [row.columns for row in rows if row.gives_up])


def end_call(database: DatabaseConnection, row: "SettlementRow") -> bool:
    """Write the reply of a call, unless it has one already, or that it is given up; return whether it replied."""
    if row.reply is None:
        database.send_many("fail_call", [row.columns] if row.gives_up else [])
        return False
    at = "" if row.columns["position"] is None else "_at"
    replied = database.execute(f"finish_call{at}", row.columns) == 1
    database.send_many(f"insert_outcome{at}", [row.columns])
    return replied


class NotAllOpen(MusterError):
    """One attempt of a group is not open any more, or its call has a reply; the group must be taken apart."""

    def __init__(self) -> None:
        super().__init__("an attempt of this group was settled before, or its call has a reply")


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
    row = SettlementRow(settlement, codec)
    database.execute("uncount_attempt", row.columns)
    database.execute("resolve_attempt", row.columns)
    count_attempts(database, [row])
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
    buffer = EventBuffer(database, codec)
    tally = buffer.tally(settlement.attempt.run)
    tally.uncertain -= 1
    tally.done += kept
    data = {"key": settlement.attempt.key, "attempt": settlement.attempt.n, "cost": row.cost, "kept": kept}
    buffer.add(NewEvent(run=settlement.attempt.run, kind="call.late", data=data, at=settlement.at))
    buffer.write()
    return Settled(cost=Microdollars(row.cost), late=True, kept=kept)


class SettlementRow:
    """One settlement spelled as rows, a booking and an event."""

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
        self.columns: JsonObject = {  # of the attempt and of the call
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
        """Return whether the call has failed with it."""
        return self._failure is not None and self._failure.gives_up

    @property
    def overdraft(self) -> bool:
        """Return whether it cost more than was reserved."""
        return self.cost > self.reserved

    @property
    def settled(self) -> Settled:
        """What to tell the driver."""
        return Settled(cost=Microdollars(self.cost), overdraft=self.overdraft, kept=self.kept)

    def count(self, buffer: EventBuffer) -> None:
        """Add the counter changes of this settlement."""
        tally = buffer.tally(self.run)
        tally.done += self.reply is not None and self.kept
        tally.failed += self.gives_up
        tally.uncertain += self.state is AttemptState.UNCERTAIN

    def add_events(self, buffer: EventBuffer) -> None:
        """Add the events of this settlement."""
        if self.state is not AttemptState.UNSENT:
            buffer.add(NewEvent(run=self.run, kind=self._kind, data=self._data, at=self.at))
        if self.overdraft:
            data = {"key": self._attempt.key, "reserved": self.reserved, "cost": self.cost}
            buffer.add(NewEvent(run=self.run, kind="overdraft", data=data, at=self.at))

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


def bookings(rows: Iterable[SettlementRow]) -> Iterable[Booking]:
    """Return the reservations given back and the costs booked, summed up where levels and lane are the same."""
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
    """Return how an attempt ended, what it cost and in which lane; never a cost below zero."""
    if reply is not None:
        return AttemptState.SUCCEEDED, reply.cost, reply.lane
    if isinstance(outcome, Failed):
        if outcome.uncertain or not is_cost(outcome.cost):
            return AttemptState.UNCERTAIN, reserved, Lane.UNCERTAIN
        return outcome.ended_as, outcome.cost, outcome.lane
    return AttemptState.UNSENT, NOTHING, Lane.BILLED


def settle_open_attempts(database: DatabaseConnection, codec: Codec, run: RunId, at: float) -> tuple[int, Microdollars]:
    """Book every attempt that a former driver left open as uncertain; return how many and how much."""
    rows = database.rows("select_attempts_in_state", {"run_id": run, "state": AttemptState.STARTED.value})
    error = codec.text({"code": "driver_gone", "message": "the driver was gone before the outcome was known"})
    names = [{"run_id": run, "key": row["key"], "n": row["n"]} for row in rows]
    for row in rows:
        name = {"run_id": run, "key": row["key"], "n": row["n"], "epoch": row["epoch"]}
        ending = {"state": AttemptState.UNCERTAIN.value, "cost": row["reserved"], "lane": Lane.UNCERTAIN.value}
        at_end = {"at": at, "error": error, "live_cost": NOTHING}
        database.execute("settle_attempt", {**name, **ending, **at_end})
    database.send_many("count_attempts", names)
    book(
        database,
        [
            Booking(
                levels=tuple(row["levels"].split()), reserved=row["reserved"], cost=row["reserved"], lane=Lane.UNCERTAIN
            )
            for row in rows
        ],
    )
    buffer = EventBuffer(database, codec)
    buffer.tally(run).uncertain += len(rows)
    for row in rows:
        data = {"key": row["key"], "attempt": row["n"], "cost": row["reserved"], "lane": Lane.UNCERTAIN.value}
        buffer.add(NewEvent(run=run, kind="call.uncertain", data=data, at=at))
    buffer.write()
    return len(rows), Microdollars(sum(row["reserved"] for row in rows))
