"""A fleet on one machine or several: servers and workers with a Redis and a store, which tests kill and cut off."""

import asyncio
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster.app import open_muster
from muster.domain.run import TERMINAL
from muster.settings import load_settings
from tests.chaos import law
from tests.chaos.stage import declare_prices
from tests.forkserver import Forked
from tests.postgres import PostgresServer
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
    variables: Mapping[str, str] = field(default_factory=dict)  # which differ from those of the others


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
        environment = {
            **self.variables,
            **command.variables,
            "TEST_HOST": command.host,
            "TEST_CLOCK": str(command.clock),
        }
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


def open_fleet(folder: Path, sim: ForkedRehearsal, stack: ExitStack, database_url: str | None = None) -> Fleet:
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


async def submit(fleet: Fleet, runs: int, calls: int, *, mixed: bool = True, dispatch: str = "live") -> list[str]:
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


async def until_over(fleet: Fleet, runs: list[str]) -> None:
    settings = load_settings(folder=fleet.folder, environment=fleet.variables)
    async with open_muster(settings=settings) as muster, asyncio.timeout(PATIENCE):
        for run in runs:
            async with await muster.runs.follow(run) as updates:
                async for _ in updates:
                    pass
            assert (await muster.runs.find(run)).state in TERMINAL


def wait_until(holds: Callable[[], bool], seconds: float = 40.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.05)


def in_flight(sim: ForkedRehearsal) -> int:
    """Return how many calls are on the wire at a provider."""
    return int(law.read_audit(sim.audit_url)["in_flight"])


async def store_copy(fleet: Fleet) -> sqlite3.Connection:
    """Open the store of a fleet as a file, which is a copy if it is none."""
    return await open_copy(fleet.folder, fleet.variables)


async def open_copy(folder: Path, environment: Mapping[str, str]) -> sqlite3.Connection:
    """Open the store of a folder as a file, which is a copy if it is none."""
    file = folder / ".muster"
    if "MUSTER_DATABASE_URL" in environment:
        file = folder / "copy"
        settings = load_settings(folder=folder, environment=environment)
        async with open_muster(settings=settings) as muster:
            await muster.store.copy_to(str(file))
    database = sqlite3.connect(file / "muster.db")
    database.row_factory = sqlite3.Row
    return database
