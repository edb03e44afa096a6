"""Runs whose driver died, or lost its store, go on: at another machine within 15 seconds, or where they were."""

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.chaos.fleets import ELSEWHERE, HERE, Command, in_flight, open_fleet, submit, until_over, wait_until, worker
from tests.gated_proxy import GatedProxy
from tests.rehearsal import ForkedRehearsal

CALLS = 10
PLACES = 4  # so many calls of a run, or more, are on the wire
ENDLESS_MS = 120_000
WORKERS = "SELECT COUNT(*) FROM workers"
RESUMED = "SELECT MAX(at) FROM events WHERE kind = 'run.resumed'"


@pytest.mark.postgres
async def test_the_run_of_a_killed_worker_goes_on_at_another_machine_within_15_seconds(
    tmp_path: Path, database_url: str
) -> None:
    with ExitStack() as stack:
        quick, endless = (stack.enter_context(ForkedRehearsal(latency_ms=ms)) for ms in (0, ENDLESS_MS))
        fleet = open_fleet(tmp_path, quick, stack, database_url)
        variables = {"ANTHROPIC_BASE_URL": endless.anthropic}
        fleet.start(Command(("worker", "--quiet"), ELSEWHERE, variables=variables))
        runs = await submit(fleet, 1, CALLS)
        await asyncio.to_thread(wait_until, lambda: in_flight(endless) >= PLACES)
        fleet.start(worker(HERE))
        await asyncio.to_thread(wait_until, lambda: _first(database_url, WORKERS) == 2)
        killed_at = time.time()
        fleet.processes[0][1].kill()
        await until_over(fleet, runs)
        assert 0 < _first(database_url, RESUMED) - killed_at < 15


@pytest.mark.postgres
@pytest.mark.chaos
async def test_a_run_goes_on_where_it_was_when_the_store_was_away_for_longer_than_its_lease(
    tmp_path: Path, database_url: str
) -> None:
    place = psycopg.conninfo.conninfo_to_dict(database_url)
    with ExitStack() as stack:
        endless = stack.enter_context(ForkedRehearsal(latency_ms=ENDLESS_MS))
        fleet = open_fleet(tmp_path, endless, stack, database_url)
        proxy = GatedProxy(Path(str(place["host"])) / ".s.PGSQL.5432")
        port = stack.enter_context(proxy.listening())
        url = f"postgresql://muster@127.0.0.1:{port}/{place['dbname']}"
        fleet.start(Command(("worker", "--quiet"), HERE, variables={"MUSTER_DATABASE_URL": url}))
        await submit(fleet, 1, CALLS)
        for _ in range(2):  # the second time nothing is left of the first
            await asyncio.to_thread(wait_until, lambda: in_flight(endless) >= PLACES)
            proxy.freeze()
            await asyncio.to_thread(wait_until, lambda: in_flight(endless) == 0)
            proxy.open()
        await asyncio.to_thread(wait_until, lambda: in_flight(endless) >= PLACES)


def _first(database_url: str, query: str) -> Any:
    with psycopg.connect(database_url) as session:
        found = session.execute(query.encode()).fetchone()
    return found[0] if found else None
