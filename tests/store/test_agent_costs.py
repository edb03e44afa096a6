"""What agents cost is kept by the writer, in the transaction of each settlement, and always equals a recount."""

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import psycopg
import pytest

from muster.domain.entry import Failed, Opening, Outcome, Unsent
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import RunState
from muster.store.base import RunRelease, Store
from muster.store.postgres.store import open_postgres
from muster.store.sqlite.store import open_sqlite
from muster.testing.stores.values import NOW, driven, opening, replied, settling

DAY = 86_400
RECOUNT = """SELECT COALESCE(attempts.agent, journal.agent), attempts.lane, attempts.started_at, attempts.cost
FROM attempts JOIN runs ON runs.id = attempts.run_id
JOIN journal ON journal.run_id = attempts.run_id AND journal.key = attempts.key
WHERE attempts.state NOT IN ('started', 'parked')"""

Rows = Iterable[tuple[str, str, float, int]]
Figures = dict[str, tuple[int, dict[str, int]]]


def _added_up(rows: Rows, since: float) -> Figures:
    attempts: Counter[str] = Counter()
    costs: dict[str, Counter[str]] = {}
    for agent, lane, started_at, cost in rows:
        if started_at >= since:
            attempts[agent] += 1
            costs.setdefault(agent, Counter())[lane] += cost
    return {agent: (attempts[agent], dict(+costs[agent])) for agent in attempts}


async def _kept(store: Store, since: float) -> Figures:
    found = (await store.totals.spent_since(since, 1)).agents
    lanes = ("billed", "imputed", "uncertain")
    return {
        one.agent: (one.attempts, {lane: int(cost) for lane in lanes if (cost := getattr(one.spent, lane))})
        for one in found
    }


def _outcome(dice: random.Random) -> Outcome:
    failed = Failed(error={}, uncertain=False, gives_up=True, cost=Microdollars(dice.randrange(90)))
    lost = Failed(error={}, uncertain=True, gives_up=True)
    outcomes: list[Outcome] = [replied(cost=dice.randrange(1, 90)), failed, lost, Unsent()]
    return dice.choice(outcomes)


async def _work(store: Store, dice: random.Random) -> None:
    """Open and settle attempts of some runs in groups; leave some open, answer late, and delete a run."""
    claims = [await driven(store, f"run{number}") for number in range(3)]
    opened: list[Opening] = []
    for number in range(40):
        run, claim = dice.choice(claims)
        agent = dice.choice(["sim/echo", "sim/other"])
        made = opening(run, claim.epoch, f"k{number}")
        opened.append(made._replace(agent=agent, at=NOW + DAY * dice.randrange(3)))
    await asyncio.gather(*(store.journal.open(one) for one in opened))
    settled = dice.sample(opened, 30)
    await asyncio.gather(*(store.journal.settle(settling(one, _outcome(dice))) for one in settled))
    for run, claim in claims:
        await store.leases.release(run, claim.epoch, RunRelease(state=RunState.FAILED, reason="error", at=NOW + 2))
    late = dice.sample(opened, 20)
    await asyncio.gather(*(store.journal.settle(settling(one, replied(cost=7))) for one in late))
    await store.runs.delete(RunId("run1"), NOW + 3)


async def _require_recount(store: Store, recount: Callable[[], Rows], seed: int) -> None:
    await _work(store, random.Random(seed))
    rows = list(recount())
    assert len({row[1] for row in rows}) > 1
    for since in (0.0, (NOW // DAY + 1) * DAY, (NOW // DAY + 2) * DAY):
        assert await _kept(store, since) == _added_up(rows, since)


@pytest.mark.parametrize("seed", range(5))
async def test_what_agents_cost_equals_a_recount_on_sqlite(tmp_path: Path, seed: int) -> None:
    store = open_sqlite(tmp_path / "muster.db")
    try:
        with sqlite3.connect(tmp_path / "muster.db") as database:
            await _require_recount(store, lambda: database.execute(RECOUNT).fetchall(), seed)
    finally:
        await store.maintenance.close()


@pytest.mark.parametrize("seed", range(2))
async def test_what_agents_cost_equals_a_recount_on_postgres(database_url: str, seed: int) -> None:
    store = open_postgres(database_url)
    try:
        with psycopg.connect(database_url, autocommit=True) as database:
            await _require_recount(store, lambda: database.execute(RECOUNT).fetchall(), seed)
    finally:
        await store.maintenance.close()
