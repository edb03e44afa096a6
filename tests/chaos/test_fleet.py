"""Workers, a server and Redis killed again and again while many runs are under way: by audit nothing is lost."""

import asyncio
import os
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from muster.app import open_muster
from muster.domain.run import TERMINAL
from muster.settings import load_settings
from muster.testing.sim import RehearsalProcess
from tests.chaos import law
from tests.chaos.stage import declare_prices
from tests.forkserver import Forked
from tests.redis_server import RedisServer, running_redis

PAUSE_SECONDS = 2.0  # between two kills
PATIENCE = 240.0


@dataclass
class Fleet:
    """A folder with a store, and the processes that work for it."""

    folder: Path
    variables: dict[str, str]
    redis: RedisServer
    stack: ExitStack

    def __post_init__(self) -> None:
        self.processes: list[tuple[tuple[str, ...], Forked]] = []

    def start(self, *words: str) -> None:
        """Start a command; whatever becomes of it, it does not outlive the test."""
        self.processes.append((words, self.stack.enter_context(self._ended(words))))

    @contextmanager
    def _ended(self, words: tuple[str, ...]) -> Iterator[Forked]:
        process = Forked("muster", words, folder=self.folder, environment=self.variables, shows_errors=True)
        with process:
            try:
                yield process
            finally:
                process.kill()

    def kill_one(self, chance: random.Random) -> None:
        """Kill a process and start another in its place, or kill Redis and start it with its data or without."""
        number = chance.randrange(len(self.processes) + 2)
        if number >= len(self.processes):
            self.redis.restart(data=bool(number - len(self.processes)))
            return
        words, process = self.processes.pop(number)
        process.kill()
        process.wait()
        self.start(*words)


@pytest.mark.parametrize(
    ("runs", "calls", "workers", "kills"),
    [pytest.param(6, 40, 2, 4, id="short"), pytest.param(50, 100, 4, 30, id="long", marks=pytest.mark.chaos)],
)
async def test_whatever_is_killed_all_runs_complete_and_only_calls_in_flight_are_paid_twice(
    tmp_path: Path, runs: int, calls: int, workers: int, kills: int
) -> None:
    declare_prices(tmp_path, "concurrency = 8")
    settings_file = tmp_path / "muster.toml"
    settings_file.write_text('[workloads]\nimport = ["tests.chaos.work"]\n' + settings_file.read_text())
    chance = random.Random(7)
    with ExitStack() as stack:
        sim = stack.enter_context(RehearsalProcess(latency_ms=150))
        fleet = _open_fleet(tmp_path, sim, stack)
        found = await _submit(fleet, runs, calls)
        fleet.start("serve", "--port", "0", "--json")
        for _ in range(workers):
            fleet.start("worker", "--quiet")
        for _ in range(kills):
            await asyncio.sleep(PAUSE_SECONDS)
            await asyncio.to_thread(fleet.kill_one, chance)
        await _until_over(fleet, found)
        database = sqlite3.connect(tmp_path / ".muster" / "muster.db")
        try:
            assert list(law.violations(database, law.read_audit(sim.audit_url))) == []
            (completed,) = database.execute("SELECT COUNT(*) FROM runs WHERE state = 'completed'").fetchone()
            assert completed == runs
            _require_one_driver(database)
        finally:
            database.close()


def _open_fleet(folder: Path, sim: RehearsalProcess, stack: ExitStack) -> Fleet:
    """Start a Redis for a folder; nobody works there yet."""
    redis = stack.enter_context(running_redis(folder / "redis"))
    keys = {"ANTHROPIC_BASE_URL": sim.anthropic, "OPENAI_BASE_URL": sim.openai}
    keys |= {"ANTHROPIC_API_KEY": "sk-test-0123456789", "OPENAI_API_KEY": "sk-test-0123456789"}
    variables = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(folder), "REDIS_URL": redis.url}
    return Fleet(folder, {**variables, **keys}, redis, stack)


async def _submit(fleet: Fleet, runs: int, calls: int, *, mixed: bool = True, dispatch: str = "live") -> list[str]:
    settings = load_settings(folder=fleet.folder, environment=fleet.variables)
    spec: dict[str, Any] = {"calls": calls, "size": 0, "max_tokens": 50, "mixed": mixed, "window": None}
    async with open_muster(settings=settings) as muster:
        return [(await muster.submit("fleet", spec, budget_usd=10, dispatch=dispatch)).id for _ in range(runs)]


async def _until_over(fleet: Fleet, runs: list[str]) -> None:
    settings = load_settings(folder=fleet.folder, environment=fleet.variables)
    async with open_muster(settings=settings) as muster, asyncio.timeout(PATIENCE):
        for run in runs:
            async with await muster.runs.follow(run) as updates:
                async for _ in updates:
                    pass
            assert (await muster.runs.find(run)).state in TERMINAL


def _require_one_driver(database: sqlite3.Connection) -> None:
    """Every claim of a run has an epoch of its own: whoever was replaced could write nothing more."""
    claims = "SELECT run_id, COUNT(*) FROM events WHERE kind IN ('run.started', 'run.resumed') GROUP BY run_id"
    epochs = {str(one["id"]): int(one["epoch"]) for one in database.execute("SELECT id, epoch FROM runs")}
    for run, number in database.execute(claims):
        assert epochs[run] >= number


async def test_the_batch_of_a_killed_worker_is_polled_by_another_and_not_created_again(tmp_path: Path) -> None:
    declare_prices(tmp_path)
    settings_file = tmp_path / "muster.toml"
    settings_file.write_text('[workloads]\nimport = ["tests.chaos.work"]\n' + settings_file.read_text())
    with ExitStack() as stack:
        sim = stack.enter_context(RehearsalProcess(batch_ms=3_000))
        fleet = _open_fleet(tmp_path, sim, stack)
        (run,) = await _submit(fleet, 1, 20, mixed=False, dispatch="batch")
        fleet.start("worker", "--quiet")
        await asyncio.to_thread(_until_created, sim)
        fleet.start("worker", "--quiet")
        _, first = fleet.processes.pop(0)
        first.kill()
        first.wait()
        await _until_over(fleet, [run])
        audit = law.read_audit(sim.audit_url)
        assert len(audit["batches"]) == 1
        database = sqlite3.connect(tmp_path / ".muster" / "muster.db")
        try:
            assert list(law.violations(database, audit)) == []
        finally:
            database.close()


def _until_created(sim: RehearsalProcess) -> None:
    """Wait until the provider has a batch."""
    end = time.monotonic() + PATIENCE
    while not law.read_audit(sim.audit_url)["batches"]:
        assert time.monotonic() < end, "no batch is created"
        time.sleep(0.1)
