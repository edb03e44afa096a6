"""Budgets in the database: balances read, reservations made and costs booked, inside somebody's transaction."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from muster.domain.budget import Balance, Decision, Granted, Level, decide
from muster.domain.money import Lane, Microdollars
from muster.store.codec import spent_of
from muster.store.queries import DatabaseConnection, Locked, Locks, Row

MAX_SUM = 2**60  # where sums stop, here and in the queries: four of them still fit into 64 bits


class Reservations:
    """Decides a group of reservations one after the other, then writes them in one update a level."""

    def __init__(self, database: DatabaseConnection, levels: Iterable[Level]) -> None:
        self._database = database
        self._balances = read_balances(database, levels)
        self._amounts: defaultdict[str, int] = defaultdict(int)

    def request(self, levels: tuple[Level, ...], most: Microdollars) -> Decision:
        """Decide one reservation after all that were granted before it."""
        decision = decide(levels, self._balances, most)
        if isinstance(decision, Granted):
            for level in levels:
                balance = self._balances[level.id]
                self._balances[level.id] = replace(balance, reserved=Microdollars(balance.reserved + most))
                self._amounts[level.id] += most
        return decision

    def write(self) -> None:
        """Write what was granted; the condition in the update is the last guard of the cap.

        Where it fails another writer was faster: all is decided again, and what does not fit any more waits.
        """
        rows = [{"id": level, "amount": self._amounts[level]} for level in sorted(self._amounts)]
        self._database.send_many("reserve", rows, self._raced)

    def _raced(self) -> Locked:
        return Locked(f"one of the budgets {sorted(self._amounts)} changed during a reservation")


def read_balances(database: DatabaseConnection, levels: Iterable[Level]) -> dict[str, Balance]:
    """Read budgets, making those that are not there and changing caps to what levels say that bring their own."""
    wanted = _wanted(levels)
    rows = _read_rows(database, wanted)
    missing = [name for name in sorted(wanted) if name not in rows]
    for name in missing:
        database.execute("insert_budget", {"id": name, "cap": wanted[name].cap})
    if missing:
        database.lock(lambda: Locks(levels=tuple(missing)))
        rows |= _read_rows(database, missing)  # another writer may have made them, and spent of them, just before
    balances = {}
    for name, level in wanted.items():
        row = rows[name]
        if not level.in_ledger and row["cap"] != level.cap:
            database.execute("cap_budget", {"id": name, "cap": level.cap})
        balances[name] = balance_of(row)
    return balances


def _read_rows(database: DatabaseConnection, levels: Iterable[str]) -> dict[str, Row]:
    found = database.rows_of_many("select_budgets", [{"id": name} for name in sorted(levels)])
    return {row["id"]: row for row in found}


def balance_of(row: Row) -> Balance:
    """Read what a budget holds."""
    spent = spent_of(row)
    return Balance(reserved=spent.reserved, settled=spent.settled, cap=row["cap"])


def _wanted(levels: Iterable[Level]) -> dict[str, Level]:
    """Return each level once; where runs bring different caps, as for a day, the highest guards the row."""
    wanted: dict[str, Level] = {}
    for level in levels:
        other = wanted.setdefault(level.id, level)
        if other.cap is not None and (level.cap is None or level.cap > other.cap):
            wanted[level.id] = level
    return wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """Money that leaves a reservation and is booked in a lane, at every level."""

    levels: tuple[str, ...]
    reserved: int
    cost: int
    lane: Lane


def book(database: DatabaseConnection, bookings: Iterable[Booking]) -> None:
    """Write bookings, summed up to one update a level."""
    sums: defaultdict[str, dict[str, int]] = defaultdict(
        lambda: {"reserved": 0, "billed": 0, "imputed": 0, "uncertain": 0}
    )
    for booking in bookings:
        for level in booking.levels:
            amounts = sums[level]
            amounts["reserved"] += booking.reserved
            amounts[booking.lane.value] += booking.cost
    database.lock(lambda: Locks(levels=tuple(sums)))
    rows = [{name: min(amount, MAX_SUM) for name, amount in sums[level].items()} for level in sorted(sums)]
    database.send_many("book", [{"id": level, **row} for level, row in zip(sorted(sums), rows, strict=True)])


def total(amounts: Iterable[int]) -> int:
    """Return the sum of amounts that others reported, as far as a database can count."""
    return min(sum(amounts), MAX_SUM)
