"""The laws notice what must not be in a store: each violation is made in the file of a store, and told."""

import sqlite3
from contextlib import closing

import pytest

import muster
from muster.testing import FakeAgent, MusterTest, assert_laws
from muster.testing.laws import violations


@pytest.fixture
def desk(muster_test: MusterTest) -> MusterTest:
    muster_test.agents["desk"] = FakeAgent("yes", cost_usd="0.01")
    return muster_test


async def test_the_books_of_a_run_that_went_well_obey_both_laws(muster_test: MusterTest) -> None:
    muster_test.agents["desk"] = desk = FakeAgent("yes", cost_usd="0.01")
    async with muster_test.open() as m:
        await m.ask("desk", "hello", budget_usd="0.01")
        (digest,) = [call.entry.digest for call in await m.runs.attempts("last")]
        assert desk.paid == {digest: 1}
        await assert_laws(m, paid=desk.paid)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE attempts SET state = 'started'", "is started, and its run is over"),
        ("UPDATE attempts SET state = 'uncertain'", "is not booked as it was reserved"),
        ("UPDATE attempts SET cost = -1", "has an amount below zero"),
        ("UPDATE attempts SET cost = cost + 1", "has spent 10000 microdollars, its attempts 10001"),
        ("UPDATE budgets SET reserved = 5", "5 microdollars are still reserved"),
        ("UPDATE budgets SET cap = 9999 WHERE cap IS NOT NULL", "has spent more than its 9999 microdollars"),
    ],
)
async def test_what_is_wrong_in_the_books_is_told(desk: MusterTest, statement: str, told: str) -> None:
    async with desk.open() as m:
        await m.ask("desk", "hello", budget_usd="0.01")
    with closing(sqlite3.connect(desk.folder / "store" / "muster.db")) as database, database:
        assert database.execute(statement).rowcount > 0
    with pytest.raises(AssertionError, match=told):
        async with desk.open():
            pass


async def test_work_that_was_done_twice_is_told(desk: MusterTest) -> None:
    async with desk.open() as m:
        await m.ask("desk", "hello", budget_usd="0.01")
    with closing(sqlite3.connect(desk.folder / "store" / "muster.db")) as database, database:
        columns = [name for _, name, *_ in database.execute("PRAGMA table_info(attempts)")]
        again = ", ".join("n + 1" if name == "n" else "0" if name == "cost" else name for name in columns)
        database.execute(f"INSERT INTO attempts ({', '.join(columns)}) SELECT {again} FROM attempts")
    with pytest.raises(AssertionError, match="answered 2 times, 0 of them late"):
        async with desk.open():
            pass


async def test_payments_are_compared_with_what_the_store_knows(desk: MusterTest) -> None:
    async with desk.open() as m:
        await m.ask("desk", "hello")
        (digest,) = [call.entry.digest for call in await m.runs.attempts("last")]
        (few,) = await violations(m, {})
        assert few.endswith("1 replies, and the agent answered 0 times")
        (many,) = await violations(m, {digest: 2})
        assert many.endswith("answered 2 times, which is explained 1 times")
        (strange,) = await violations(m, {digest: 1, "other": 1})
        assert strange == "a request of no run: answered 1 times, which is explained 0 times"


async def test_a_lineage_has_one_end(desk: MusterTest) -> None:
    desk.agents["desk"] = FakeAgent(muster.InvalidRequest("no"))
    async with desk.open() as m:
        for _ in range(2):
            with pytest.raises(muster.MusterError):
                await m.ask("desk", "hello")
    with closing(sqlite3.connect(desk.folder / "store" / "muster.db")) as database, database:
        database.execute("UPDATE runs SET levels = json_set(levels, '$.lineage', 'lineage:one')")
    with pytest.raises(AssertionError, match="lineage:one has 2 ends"):
        async with desk.open():
            pass
