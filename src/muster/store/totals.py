"""Totals of the database, for metrics."""

import asyncio
from collections.abc import Callable

from muster.domain.batch import BatchState
from muster.domain.money import Microdollars
from muster.domain.run import CallCounts, RunState, Spent
from muster.store.base.pool import SlotStanding
from muster.store.base.totals import RunGroup, RunTotal, SlotGroup, StoreTotals
from muster.store.queries import DatabaseConnection, Row


class DatabaseTotals:
    """What this store holds in all."""

    def __init__(self, reader: DatabaseConnection, connect: Callable[[], DatabaseConnection] | None) -> None:
        """Take a connection, and what opens another: with it totals are read in a thread, beside the event loop."""
        self._reader, self._connect = reader, connect

    async def read(self) -> StoreTotals:
        """Return the totals as they stand; over many thousand runs this takes a while."""
        if self._connect is None:
            return read_totals(self._reader)
        return await asyncio.to_thread(self._read_aside, self._connect)

    def _read_aside(self, connect: Callable[[], DatabaseConnection]) -> StoreTotals:
        connection = connect()
        try:
            return read_totals(connection)
        finally:
            connection.close()


def read_totals(database: DatabaseConnection) -> StoreTotals:
    """Read what a database holds in all."""
    slots = database.rows("total_slots", {})
    return StoreTotals(
        runs={_group_of(row): _total_of(row) for row in database.rows("total_runs", {})},
        batches={BatchState(row["state"]): row["number"] for row in database.rows("total_batches", {})},
        slots={SlotGroup(SlotStanding(row["state"]), bool(row["busy"])): row["number"] for row in slots},
        spent=_spent_of(database.rows("total_money", {})[0]),
    )


def _group_of(row: Row) -> RunGroup:
    return RunGroup(workload=row["workload"], state=RunState(row["state"]))


def _total_of(row: Row) -> RunTotal:
    calls = CallCounts(done=row["done"], failed=row["failed"], uncertain=row["uncertain"], reused=row["reused"])
    return RunTotal(runs=row["number"], calls=calls)


def _spent_of(row: Row) -> Spent:
    return Spent(**{lane: Microdollars(int(row[lane])) for lane in ("reserved", "billed", "imputed", "uncertain")})
