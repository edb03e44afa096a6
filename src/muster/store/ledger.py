"""Budgets in the database: balances read, reservations made and costs booked, inside somebody's transaction."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from muster.domain.budget import Balance, Decision, Granted, Level, decide
from muster.domain.errors import StoreFailed
from muster.domain.money import Lane, Microdollars
from muster.store.codec import spent_of
from muster.store.connection import Connection, first


class Reservations:
    """Decides a group of reservations one after the other, then writes them in one update a level."""

    def __init__(self, database: Connection) -> None:
        self._database = database
        self._balances: dict[str, Balance] = {}
        self._amounts: defaultdict[str, int] = defaultdict(int)

    def request(self, levels: tuple[Level, ...], most: Microdollars) -> Decision:
        """Decide one reservation after all that were granted before it."""
        for level in levels:
            if level.id not in self._balances:
                self._balances[level.id] = read_balance(self._database, level)
        decision = decide(levels, self._balances, most)
        if isinstance(decision, Granted):
            for level in levels:
                balance = self._balances[level.id]
                self._balances[level.id] = replace(balance, reserved=Microdollars(balance.reserved + most))
                self._amounts[level.id] += most
        return decision

    def write(self) -> None:
        """Write what was granted; the condition in the update is the last guard of the cap."""
        for level in sorted(self._amounts):
            changed = self._database.execute("reserve", {"id": level, "amount": self._amounts[level]})
            if changed != 1:
                raise StoreFailed(f"budget {level} changed during a reservation")


def read_balance(database: Connection, level: Level) -> Balance:
    """Read a budget, making it or changing its cap to what the level says."""
    row = first(database.rows("select_budget", {"id": level.id}))
    if row is None:
        database.execute("insert_budget", {"id": level.id, "cap": level.cap})
        return Balance()
    if row["cap"] != level.cap:
        database.execute("cap_budget", {"id": level.id, "cap": level.cap})
    spent = spent_of(row)
    return Balance(reserved=spent.reserved, settled=spent.settled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """Money that leaves a reservation and is booked in a lane, at every level."""

    levels: tuple[str, ...]
    reserved: int
    cost: int
    lane: Lane


def book(database: Connection, bookings: Iterable[Booking]) -> None:
    """Write bookings, summed up to one update a level."""
    sums: defaultdict[str, dict[str, int]] = defaultdict(
        lambda: {"reserved": 0, "billed": 0, "imputed": 0, "uncertain": 0}
    )
    for booking in bookings:
        for level in booking.levels:
            amounts = sums[level]
            amounts["reserved"] += booking.reserved
            amounts[booking.lane.value] += booking.cost
    for level in sorted(sums):
        database.execute("book", {"id": level, **sums[level]})
