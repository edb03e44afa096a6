"""Isolation, attacked: many processes reserve under one cap, at the isolation level that PostgreSQL has by default."""

import asyncio
import json
import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from muster.domain.entry import AwaitedSignal, NewSignal
from muster.domain.run import RunState
from muster.store.base import RunRelease
from muster.store.postgres.store import open_postgres
from muster.testing.stores import NOW, driven
from muster.testing.stores.batches import planning
from tests.store.reserver import MOST

PROCESSES = 8
ROOT = Path(__file__).parents[2]


async def reserve(url: str, *, each: int, cost: int, cap: int) -> Counter[str]:
    """Let processes reserve, all at the same time, and return what they were told in all."""
    command = [sys.executable, "-m", "tests.store.reserver", url]
    started = [
        await asyncio.create_subprocess_exec(
            *command,
            *(str(value) for value in (index, each, cost, cap)),
            cwd=ROOT,
            env=dict(os.environ),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for index in range(PROCESSES)
    ]
    told: Counter[str] = Counter()
    for process, (out, err) in zip(started, await asyncio.gather(*(one.communicate() for one in started)), strict=True):
        assert process.returncode == 0, err.decode()[-2000:]
        told.update(json.loads(out))
    return told


def guard(url: str) -> None:
    """Let the database itself refuse every write that would exceed the cap, for however short a time."""
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(
            "ALTER TABLE budgets ADD CHECK (cap IS NULL OR billed + imputed + uncertain + reserved <= cap)"
        )


def balance(url: str, level: str) -> tuple[int, int]:
    with psycopg.connect(url, autocommit=True) as database:
        row = database.execute("SELECT reserved, billed FROM budgets WHERE id = %s", (level,)).fetchone()
    assert row is not None
    return row[0], row[1]


def attempts(url: str) -> dict[str, int]:
    with psycopg.connect(url, autocommit=True) as database:
        return dict(database.execute("SELECT state, COUNT(*) FROM attempts GROUP BY state").fetchall())


def deadlocks(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as database:
        row = database.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize(
    "reservations", [160, pytest.param(10_000, marks=[pytest.mark.chaos, pytest.mark.timeout(900)])]
)
async def test_what_fits_only_one_after_the_other_waits_and_none_is_lost(database_url: str, reservations: int) -> None:
    guard(database_url)
    told = await reserve(database_url, each=reservations // PROCESSES, cost=0, cap=5 * MOST)
    assert (told["Granted"], told["Refused"]) == (reservations, 0)
    assert told["waited"] > 0
    assert balance(database_url, "pool:shared") == balance(database_url, "day:2027-01-15") == (0, 0)
    assert attempts(database_url) == {"succeeded": reservations}
    assert deadlocks(database_url) == 0  # none was even resolved: locks are taken in one order


async def test_a_cap_is_spent_to_the_last_cent_and_never_exceeded(database_url: str) -> None:
    guard(database_url)
    told = await reserve(database_url, each=10, cost=MOST, cap=25 * MOST + 3)
    assert (told["Granted"], told["Refused"]) == (25, PROCESSES * 10 - 25)
    assert balance(database_url, "pool:shared") == (0, 25 * MOST)
    assert attempts(database_url) == {"succeeded": 25}


async def test_a_signal_that_comes_just_when_a_run_begins_to_wait_wakes_it(database_url: str) -> None:
    driver, sender = open_postgres(database_url), open_postgres(database_url)
    try:
        for number in range(30):
            run, claim = await driven(driver, f"run{number}")
            awaited = AwaitedSignal(address=f"lineage:{run}", channel="go", until=None)
            ending = RunRelease(state=RunState.WAITING, reason="awaiting_signal", at=NOW, awaited=(awaited,))
            signal = NewSignal(
                address=f"lineage:{run}", channel="go", payload=1, sender="me", client_id=f"c{number}", at=NOW
            )
            await asyncio.gather(driver.leases.release(run, claim.epoch, ending), sender.signals.send(signal))
            found = await driver.runs.get(run)
            assert found is not None
            assert found.state is RunState.QUEUED
    finally:
        await driver.maintenance.close()
        await sender.maintenance.close()


async def test_a_batch_is_canceled_when_two_processes_cancel_its_runs_at_the_same_moment(database_url: str) -> None:
    here, there = open_postgres(database_url), open_postgres(database_url)
    try:
        for number in range(20):
            runs = [await driven(here, f"run{number}x{side}") for side in range(2)]
            plans = [planning(run, claim.epoch, 1, name=f"batch{number}") for run, claim in runs]
            second = replace(plans[1].members[0], place=1)
            await here.batches.plan(replace(plans[0], members=[*plans[0].members, second]))
            for run, claim in runs:
                stopped = RunRelease(state=RunState.INTERRUPTED, reason="stopped", at=NOW)
                await here.leases.release(run, claim.epoch, stopped)
            await asyncio.gather(here.runs.cancel(runs[0][0], NOW), there.runs.cancel(runs[1][0], NOW))
            batch = await here.batches.get(plans[0].id)
            assert batch is not None
            assert batch.cancel_requested, number
        assert deadlocks(database_url) == 0
    finally:
        await here.maintenance.close()
        await there.maintenance.close()
