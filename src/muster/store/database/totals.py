"""Totals of the database: for metrics, and of the money that was spent."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

from muster.domain.batch import BatchState
from muster.domain.money import Microdollars
from muster.domain.run import CallCounts, RunState, Spent
from muster.store.base.pool import POOL_LEVEL, SlotStanding
from muster.store.base.totals import (
    AgentTotal,
    LevelTotal,
    RunGroup,
    RunTotal,
    SlotGroup,
    StoreSpending,
    StoreTotals,
)
from muster.store.codec import run_of, spent_of
from muster.store.database.calls.ledger import total
from muster.store.queries import DatabaseConnection, DatabaseReader, Row

DAY_SECONDS = 86_400
LANES = ("reserved", "billed", "imputed", "uncertain")


class DatabaseTotals:
    """What this store holds and was spent in all; its reader is one that may take a while."""

    def __init__(self, reader: DatabaseReader) -> None:
        self._reader = reader

    async def read(self) -> StoreTotals:
        """Return the totals as they stand."""
        return await self._reader.read(read_totals)

    async def spent_since(self, at: float, runs: int) -> StoreSpending:
        """Return what was spent since the beginning of a day."""
        return await self._reader.read(lambda database: read_spending(database, at, runs))


def read_totals(database: DatabaseConnection) -> StoreTotals:
    """Read what a database holds in all."""
    slots = database.rows("total_slots", {})
    return StoreTotals(
        runs={_group_of(row): _total_of(row) for row in database.rows("total_runs", {})},
        batches={BatchState(row["state"]): row["number"] for row in database.rows("total_batches", {})},
        slots={SlotGroup(SlotStanding(row["state"]), bool(row["busy"])): row["number"] for row in slots},
        spent=_spent_of(database.rows("total_money", {})[0]),
    )


def read_spending(database: DatabaseConnection, since: float, runs: int) -> StoreSpending:
    """Read what a database says was spent since a day began."""
    day = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d")
    ranges = ((f"day:{day}", "day;"), ("user:", "user;"), ("server:", "server;"), (POOL_LEVEL, f"{POOL_LEVEL} "))
    levels = [row for low, high in ranges for row in database.rows("select_levels", {"low": low, "high": high})]
    return StoreSpending(
        levels=[LevelTotal(row["id"], spent_of(row), row["cap"]) for row in levels],
        agents=_agents_of(database.rows("total_agents", {"day": int(since // DAY_SECONDS)})),
        runs=[run_of(row) for row in database.rows("dearest_runs", {"since": since, "limit": runs})],
    )


def _agents_of(rows: Iterable[Row]) -> list[AgentTotal]:
    """Put the lanes of each agent together, the dearest agent first."""
    lanes: defaultdict[str, dict[str, Microdollars]] = defaultdict(dict)
    attempts: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        lanes[row["agent"]][row["lane"]] = Microdollars(total([int(row["cost"])]))
        attempts[row["agent"]] += int(row["number"])
    found = [AgentTotal(agent, attempts[agent], Spent(**each)) for agent, each in lanes.items()]
    return sorted(found, key=lambda one: (-one.spent.settled, one.agent))


def _group_of(row: Row) -> RunGroup:
    return RunGroup(workload=row["workload"], state=RunState(row["state"]))


def _total_of(row: Row) -> RunTotal:
    calls = CallCounts(done=row["done"], failed=row["failed"], uncertain=row["uncertain"], reused=row["reused"])
    return RunTotal(runs=row["number"], calls=calls)


def _spent_of(row: Row) -> Spent:
    return Spent(**{lane: Microdollars(int(row[lane])) for lane in LANES})
