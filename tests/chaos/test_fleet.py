"""Workers, a server, Redis and PostgreSQL killed again and again while many runs are under way: nothing is lost."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest

from tests.chaos import law
from tests.chaos.fleets import (
    ELSEWHERE,
    HERE,
    PATIENCE,
    SERVER,
    Command,
    open_fleet,
    store_copy,
    submit,
    until_over,
    worker,
)
from tests.postgres import postgres_server
from tests.rehearsal import ForkedRehearsal


def victims(chance: random.Random, number: int) -> Sequence[str]:
    """Choose whom to kill, one after the other: PostgreSQL once, in the middle; all others in any order."""
    others = ["worker", "worker", "worker", "worker", "server", "redis", "redis without its data"]
    found = [chance.choice(others) for _ in range(number)]
    found[number // 2] = "postgres"
    return found


SHORT = ("worker", "redis without its data", "postgres", "server")


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("runs", "calls", "workers", "killed", "pause"),
    [
        pytest.param(5, 24, (HERE, HERE), SHORT, 1.0, id="short"),
        pytest.param(50, 100, (HERE, ELSEWHERE) * 2, 40, 2.0, id="long", marks=pytest.mark.chaos),
    ],
)
async def test_whatever_is_killed_all_runs_complete_and_only_calls_in_flight_are_paid_twice(
    tmp_path: Path, runs: int, calls: int, workers: Sequence[str], killed: Sequence[str] | int, pause: float
) -> None:
    chance = random.Random()
    with ExitStack() as stack:
        sim = stack.enter_context(ForkedRehearsal(latency_ms=150))
        postgres = stack.enter_context(postgres_server())
        fleet = open_fleet(tmp_path, sim, stack, postgres.url())
        fleet.postgres = postgres
        found = await submit(fleet, runs, calls)
        fleet.start(SERVER)
        for host in workers:
            fleet.start(worker(host))
        for victim in victims(chance, killed) if isinstance(killed, int) else killed:
            await asyncio.sleep(pause)
            await asyncio.to_thread(fleet.kill, victim, chance)
        await until_over(fleet, found)
        with closing(await store_copy(fleet)) as database:
            assert list(law.violations(database, law.read_audit(sim.audit_url))) == []
            assert list(law.of_drivers(database, fleet.deaths)) == []
            assert database.execute("SELECT COUNT(*) FROM runs WHERE state = 'completed'").fetchone()[0] == runs
            done = "SELECT COUNT(*) FROM journal WHERE kind = 'call' AND state = 'done'"
            assert database.execute(done).fetchone()[0] == runs * calls
            if len(fleet.deaths) > len(workers):  # then some of them had calls in flight
                unsure = "SELECT COUNT(*) FROM attempts WHERE state = 'uncertain'"
                assert database.execute(unsure).fetchone()[0] > 0


@pytest.mark.postgres
async def test_workers_whose_clocks_are_ten_minutes_wrong_harm_nobody(tmp_path: Path, database_url: str) -> None:
    with ExitStack() as stack:
        sim = stack.enter_context(ForkedRehearsal(latency_ms=300))
        fleet = open_fleet(tmp_path, sim, stack, database_url)
        found = await submit(fleet, 6, 8)
        for host, clock in (("right", 0.0), ("fast", 600.0), ("slow", -600.0)):
            fleet.start(Command(("worker", "--quiet", "--concurrency", "2"), host, clock))
        began = time.time()
        await until_over(fleet, found)
        with closing(await store_copy(fleet)) as database:
            assert list(law.violations(database, law.read_audit(sim.audit_url))) == []
            drivers = {data.split()[-1] for data in _told(database, "run.started", "$.driver")}
            assert drivers == {"right", "fast", "slow"}
            assert _told(database, "run.resumed", "$.driver") == []  # nobody took a run from one who drove it
            assert _told(database, "run.interrupted", "$.reason") == []
            times = [at for (at,) in database.execute("SELECT at FROM events WHERE kind <> 'run.created'")]
            assert began - 5 <= min(times) <= max(times) <= time.time() + 5


def _told(database: sqlite3.Connection, kind: str, path: str) -> list[str]:
    """Return what events of a kind say."""
    rows = database.execute("SELECT json_extract(data, ?) FROM events WHERE kind = ?", (path, kind))
    return [value for (value,) in rows]


async def test_the_batch_of_a_killed_worker_is_polled_by_another_and_not_created_again(tmp_path: Path) -> None:
    with ExitStack() as stack:
        sim = stack.enter_context(ForkedRehearsal(batch_ms=3_000))
        fleet = open_fleet(tmp_path, sim, stack)
        (run,) = await submit(fleet, 1, 20, mixed=False, dispatch="batch")
        fleet.start(worker())
        await asyncio.to_thread(_until_created, sim)
        fleet.start(worker())
        _, first = fleet.processes.pop(0)
        first.kill()
        first.wait()
        await until_over(fleet, [run])
        audit = law.read_audit(sim.audit_url)
        assert len(audit["batches"]) == 1
        with closing(await store_copy(fleet)) as database:
            assert list(law.violations(database, audit)) == []


def _until_created(sim: ForkedRehearsal) -> None:
    """Wait until the provider has a batch."""
    end = time.monotonic() + PATIENCE
    while not law.read_audit(sim.audit_url)["batches"]:
        assert time.monotonic() < end, "no batch is created"
        time.sleep(0.1)


@pytest.mark.postgres
async def test_an_idle_worker_whose_store_is_upgraded_ends_and_says_why(tmp_path: Path, database_url: str) -> None:
    with ExitStack() as stack:
        sim = stack.enter_context(ForkedRehearsal())
        fleet = open_fleet(tmp_path, sim, stack, database_url)
        fleet.start(worker())
        (_, process) = fleet.processes[0]
        async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as session:
            registered = "SELECT COUNT(*) FROM workers"
            while (await (await session.execute(registered)).fetchone()) == (0,):
                assert process.poll() is None
            await session.execute("INSERT INTO muster_schema (version) VALUES (999)")
        assert await asyncio.to_thread(process.wait, PATIENCE) == 4
