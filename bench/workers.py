"""A child process that lets several workers share runs through Redis, and prints what their calls cost."""

import asyncio
import json
import os
import resource
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from tests.postgres import PostgresServer, postgres_server

import bench.fleet as work
import muster
from bench.processes import Child, died, started, wait_for
from muster.settings import Settings, load_settings

ROOT = Path(__file__).parent.parent
SETTINGS = '[workloads]\nimport = ["bench.fleet"]\n'
CONCURRENCY = 12  # of each run


@contextmanager
def redis_at(folder: Path) -> Iterator[str]:
    """Start a Redis on a free port and give the address of its databases; raises ChildDied when it ends."""
    found = shutil.which("redis-server")
    if found is None:
        raise RuntimeError("redis-server is missing: scripts/prepare redis installs it")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [found, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    with started(command) as server:
        while server.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.02)
        if server.process.poll() is None:
            yield f"redis://127.0.0.1:{port}"
        if (code := server.process.poll()) is not None:
            raise died(command, code, server.written)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Workers that share a folder, a database and a Redis."""

    folder: Path
    environment: Mapping[str, str]
    workers: int

    @property
    def settings(self) -> Settings:
        """The settings of its workers."""
        return load_settings(folder=self.folder, environment=dict(self.environment))

    @property
    def database(self) -> str | None:
        """The address of its database; None for a file."""
        return self.environment.get("MUSTER_DATABASE_URL")


def make_fleet(folder: Path, workers: int, variables: Mapping[str, str]) -> Fleet:
    """Make the folder of a fleet."""
    folder.mkdir()
    (folder / "muster.toml").write_text(SETTINGS, encoding="utf-8")
    base = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    return Fleet(folder=folder, environment={**base, **variables}, workers=workers)


def make_database(server: PostgresServer, name: str) -> str:
    """Make a database and give its address."""
    with psycopg.connect(server.url(), autocommit=True) as database:
        database.execute(f"CREATE DATABASE {name}".encode())
    return server.url(name)


async def submit(settings: Settings, runs: int, calls: int) -> None:
    """Store runs for the workers."""
    async with muster.open(settings=settings) as m:
        for _ in range(runs):
            await m.submit("bench", {"calls": calls}, concurrency=CONCURRENCY, budget_usd=1000)


async def times_of(settings: Settings, newest: int) -> tuple[float, float]:
    """Return when the first of the newest runs started and the last ended; raises when one is not completed."""
    async with muster.open(settings=settings) as m:
        runs = (await m.runs.list())[:newest]
    assert all(run.state == "completed" for run in runs), [run.state for run in runs]
    started = [run.started_at for run in runs if run.started_at is not None]
    ended = [run.ended_at for run in runs if run.ended_at is not None]
    return min(started), max(ended)


def work_off(fleets: Sequence[Fleet], runs: int, calls: int) -> tuple[float, int]:
    """Store so many runs in each fleet and let its workers work until nothing is left.

    Returns the seconds of CPU and the transactions that the workers took.
    """
    for fleet in fleets:
        asyncio.run(submit(fleet.settings, runs, calls))
    processes: list[Child] = []
    before, ended = resource.getrusage(resource.RUSAGE_CHILDREN), transactions(fleets)
    with ExitStack() as stack:
        for fleet in fleets:
            command = _worker_command(max(1, runs // fleet.workers))
            processes += [
                stack.enter_context(started(command, fleet.folder, fleet.environment)) for _ in range(fleet.workers)
            ]
        wait_for(processes)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, transactions(fleets) - ended


def _worker_command(most: int) -> list[str]:
    return [sys.executable, "-m", "muster", "worker", "--quiet", "--until-idle", "--concurrency", str(most)]


def transactions(fleets: Sequence[Fleet]) -> int:
    """Return how many transactions the databases of fleets have ended; 0 for files."""
    return sum(transactions_of(fleet.database) for fleet in fleets if fleet.database is not None)


def transactions_of(url: str) -> int:
    """Return how many transactions a database has ended, counted when no other session is left."""
    others = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ended = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    with psycopg.connect(url, autocommit=True) as database:
        while database.execute(others).fetchone() != (0,):
            time.sleep(0.05)
        database.execute("SELECT pg_stat_clear_snapshot()")
        row = database.execute(ended).fetchone()
    return int(row[0]) if row else 0


def main() -> None:
    """Run so many workers, in one fleet or `apart` in as many, and print their figures as JSON.

    What it takes to start workers is not counted, nor what they load for their first calls: as many runs with one call
    each are worked off before by as many workers.
    """
    url, database, workers, runs, calls, kind = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]), sys.argv[6]
    assert work.AGENT.startswith("anthropic/")
    groups = workers if kind == "apart" else 1
    with ExitStack() as stack:
        place, data = (stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2))
        redis = stack.enter_context(redis_at(Path(data)))
        server = stack.enter_context(postgres_server()) if database == "postgres" else None
        fleets = []
        for number in range(groups):
            keys = {"ANTHROPIC_API_KEY": "sk-bench-0123456789", "ANTHROPIC_BASE_URL": url}
            keys["REDIS_URL"] = f"{redis}/{number}"
            if server is not None:
                keys["MUSTER_DATABASE_URL"] = make_database(server, f"fleet{number}")
            fleets.append(make_fleet(Path(place) / str(number), workers // groups, keys))
        for _ in range(2):  # what the first ones load and make is not there again
            start, began = work_off(fleets, workers // groups, 1)
        cpu, ended = work_off(fleets, runs // groups, calls)
        times = [asyncio.run(times_of(fleet.settings, runs // groups)) for fleet in fleets]
    seconds = max(last for _, last in times) - min(first for first, _ in times)
    print(json.dumps({"seconds": seconds, "cpu": cpu - start, "transactions": ended - began}))


if __name__ == "__main__":
    main()
