"""Workers, a server, Redis and PostgreSQL killed again and again while many runs are under way: nothing is lost."""

import asyncio
import os
import random
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from muster.app import open_muster
from muster.domain.run import TERMINAL
from muster.settings import load_settings
from tests.chaos import law
from tests.chaos.stage import declare_prices
from tests.forkserver import Forked
from tests.postgres import PostgresServer, postgres_server
from tests.redis_server import RedisServer, running_redis
from tests.rehearsal import ForkedRehearsal

PATIENCE = 240.0
HERE, ELSEWHERE = "here", "elsewhere"  # names of machines: processes of one do not see those of the other
BUDGET_USD = "0.20"  # of a run, which costs a sixth of it: there is room for calls that are paid twice


@dataclass(frozen=True)
class Command:
    """A command of the fleet, and on which machine it is given."""

    words: tuple[str, ...]
    host: str = HERE
    clock: float = 0.0  # by how many seconds its clock is wrong


SERVER = Command(("serve", "--port", "0", "--json"))


def worker(host: str = HERE) -> Command:
    """Return the command of a worker on a machine."""
    return Command(("worker", "--quiet"), host)


@dataclass
class Fleet:
    """A store, and the processes that work for it."""

    folder: Path
    variables: dict[str, str]
    redis: RedisServer
    stack: ExitStack
    postgres: PostgresServer | None = None  # that may be killed
    processes: list[tuple[Command, Forked]] = field(default_factory=list)
    deaths: dict[int, float] = field(default_factory=dict)  # when processes were killed

    def start(self, command: Command) -> None:
        """Start a command; whatever becomes of it, it does not outlive the test."""
        self.processes.append((command, self.stack.enter_context(self._ended(command))))

    @contextmanager
    def _ended(self, command: Command) -> Iterator[Forked]:
        environment = {**self.variables, "TEST_HOST": command.host, "TEST_CLOCK": str(command.clock)}
        process = Forked(
            "tests.elsewhere", command.words, folder=self.folder, environment=environment, shows_errors=True
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    def kill(self, victim: str, chance: random.Random) -> None:
        """Kill somebody and start another in its place; Redis with its data or without."""
        if victim == "postgres":
            assert self.postgres is not None
            self.postgres.restart()
        elif victim.startswith("redis"):
            self.redis.restart(data=victim == "redis")
        else:
            word = "serve" if victim == "server" else "worker"
            command, process = chance.choice([one for one in self.processes if one[0].words[0] == word])
            self.processes.remove((command, process))
            self.deaths[process.pid] = time.time()
            process.kill()
            assert process.wait() < 0, "it had ended before"
            self.start(command)


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
        fleet = _open_fleet(tmp_path, sim, stack, postgres.url())
        fleet.postgres = postgres
        found = await _submit(fleet, runs, calls)
        fleet.start(SERVER)
        for host in workers:
            fleet.start(worker(host))
        for victim in victims(chance, killed) if isinstance(killed, int) else killed:
            await asyncio.sleep(pause)
            await asyncio.to_thread(fleet.kill, victim, chance)
        await _until_over(fleet, found)
        with closing(await _copy(fleet)) as database:
            assert list(law.violations(database, law.read_audit(sim.audit_url))) == []
            assert list(law.of_drivers(database, fleet.deaths)) == []
            assert database.execute("SELECT COUNT(*) FROM runs WHERE state = 'completed'").fetchone()[0] == runs
            done = "SELECT COUNT(*) FROM journal WHERE kind = 'call' AND state = 'done'"
            assert database.execute(done).fetchone()[0] == runs * calls
            if len(fleet.deaths) > len(workers):  # then some of them had calls in flight
                unsure = "SELECT COUNT(*) FROM attempts WHERE state = 'uncertain'"
                assert database.execute(unsure).fetchone()[0] > 0


def _open_fleet(folder: Path, sim: ForkedRehearsal, stack: ExitStack, database_url: str | None = None) -> Fleet:
    """Start a Redis for a folder; nobody works there yet."""
    declare_prices(folder, "concurrency = 8")
    settings_file = folder / "muster.toml"
    settings_file.write_text('[workloads]\nimport = ["tests.chaos.work"]\n' + settings_file.read_text())
    redis = stack.enter_context(running_redis(folder / "redis"))
    keys = {"ANTHROPIC_BASE_URL": sim.anthropic, "OPENAI_BASE_URL": sim.openai}
    keys |= {"ANTHROPIC_API_KEY": "sk-test-0123456789", "OPENAI_API_KEY": "sk-test-0123456789"}
    variables = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(folder), "REDIS_URL": redis.url}
    if database_url is not None:
        variables["MUSTER_DATABASE_URL"] = database_url
    return Fleet(folder, {**variables, **keys}, redis, stack)


async def _submit(fleet: Fleet, runs: int, calls: int, *, mixed: bool = True, dispatch: str = "live") -> list[str]:
    """Store runs whose questions are all different, so that the provider's audit tells them apart."""
    settings = load_settings(folder=fleet.folder, environment=fleet.variables)
    spec: dict[str, Any] = {"calls": calls, "size": 0, "max_tokens": 50, "mixed": mixed, "window": None}
    async with open_muster(settings=settings) as muster:
        return [
            (
                await muster.submit(
                    "fleet", {**spec, "topic": f"run {number} "}, budget_usd=BUDGET_USD, dispatch=dispatch
                )
            ).id
            for number in range(runs)
        ]


async def _until_over(fleet: Fleet, runs: list[str]) -> None:
    settings = load_settings(folder=fleet.folder, environment=fleet.variables)
    async with open_muster(settings=settings) as muster, asyncio.timeout(PATIENCE):
        for run in runs:
            async with await muster.runs.follow(run) as updates:
                async for _ in updates:
                    pass
            assert (await muster.runs.find(run)).state in TERMINAL


async def _copy(fleet: Fleet) -> sqlite3.Connection:
    """Open the store as a file, which is a copy if it is none."""
    file = fleet.folder / ".muster"
    if "MUSTER_DATABASE_URL" in fleet.variables:
        file = fleet.folder / "copy"
        settings = load_settings(folder=fleet.folder, environment=fleet.variables)
        async with open_muster(settings=settings) as muster:
            await muster.store.copy_to(str(file))
    database = sqlite3.connect(file / "muster.db")
    database.row_factory = sqlite3.Row
    return database


@pytest.mark.postgres
async def test_workers_whose_clocks_are_ten_minutes_wrong_harm_nobody(tmp_path: Path, database_url: str) -> None:
    with ExitStack() as stack:
        sim = stack.enter_context(ForkedRehearsal(latency_ms=300))
        fleet = _open_fleet(tmp_path, sim, stack, database_url)
        found = await _submit(fleet, 6, 8)
        for host, clock in (("right", 0.0), ("fast", 600.0), ("slow", -600.0)):
            fleet.start(Command(("worker", "--quiet", "--concurrency", "2"), host, clock))
        began = time.time()
        await _until_over(fleet, found)
        with closing(await _copy(fleet)) as database:
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
        fleet = _open_fleet(tmp_path, sim, stack)
        (run,) = await _submit(fleet, 1, 20, mixed=False, dispatch="batch")
        fleet.start(worker())
        await asyncio.to_thread(_until_created, sim)
        fleet.start(worker())
        _, first = fleet.processes.pop(0)
        first.kill()
        first.wait()
        await _until_over(fleet, [run])
        audit = law.read_audit(sim.audit_url)
        assert len(audit["batches"]) == 1
        with closing(await _copy(fleet)) as database:
            assert list(law.violations(database, audit)) == []


def _until_created(sim: ForkedRehearsal) -> None:
    """Wait until the provider has a batch."""
    end = time.monotonic() + PATIENCE
    while not law.read_audit(sim.audit_url)["batches"]:
        assert time.monotonic() < end, "no batch is created"
        time.sleep(0.1)
