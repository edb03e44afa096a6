"""A child process that lets several workers share runs through Redis, and prints what their calls cost."""

import asyncio
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
from tests.postgres import postgres_server

import bench.fleet as work
import muster
from muster.settings import Settings, load_settings

ROOT = Path(__file__).parent.parent
SETTINGS = '[workloads]\nimport = ["bench.fleet"]\n'
CONCURRENCY = 12  # of each run


@contextmanager
def redis_at(folder: Path) -> Iterator[str]:
    """Start a Redis on a free port and give its address."""
    found = shutil.which("redis-server")
    if found is None:
        raise RuntimeError("redis-server is missing: scripts/prepare redis installs it")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [found, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None:
                    raise RuntimeError(f"redis-server ended with {process.returncode}") from None
                time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


async def submit(settings: Settings, runs: int, calls: int) -> None:
    """Store runs for the workers."""
    async with muster.open(settings=settings) as m:
        for _ in range(runs):
            await m.submit("bench", {"calls": calls}, concurrency=CONCURRENCY, budget_usd=1000)


async def seconds_of(settings: Settings, newest: int) -> float:
    """Return how long the newest runs took from the first start to the last end; raises when one is not completed."""
    async with muster.open(settings=settings) as m:
        runs = (await m.runs.list())[:newest]
    assert all(run.state == "completed" for run in runs), [run.state for run in runs]
    started = [run.started_at for run in runs if run.started_at is not None]
    ended = [run.ended_at for run in runs if run.ended_at is not None]
    return max(ended) - min(started)


def work_off(folder: Path, environment: dict[str, str], workers: int, most: int) -> float:
    """Let so many workers work until nothing is left; return the seconds of CPU that they took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "muster", "worker", "--quiet", "--until-idle", "--concurrency", str(most)]
    started = [
        subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL) for _ in range(workers)
    ]
    for process in started:
        if code := process.wait():
            raise RuntimeError(f"a worker ended with {code}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def transactions(url: str | None) -> int:
    """Return how many transactions a PostgreSQL database has ended; 0 for a file."""
    if url is None:
        return 0
    text = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    with psycopg.connect(url, autocommit=True) as database:
        row = database.execute(text).fetchone()
    return int(row[0]) if row else 0


def main() -> None:
    """Run so many workers and print their figures as JSON.

    What it takes to start a worker is not counted, nor what it loads for its first call: one call is made before.
    """
    url, database, workers, runs, calls = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    assert work.AGENT.startswith("anthropic/")
    with ExitStack() as stack:
        place, data = (stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2))
        redis = stack.enter_context(redis_at(Path(data)))
        folder = Path(place)
        (folder / "muster.toml").write_text(SETTINGS, encoding="utf-8")
        keys = {"ANTHROPIC_API_KEY": "sk-bench-0123456789", "ANTHROPIC_BASE_URL": url, "REDIS_URL": redis}
        if database == "postgres":
            keys["MUSTER_DATABASE_URL"] = stack.enter_context(postgres_server()).url()
        environment = {"PATH": os.environ["PATH"], "HOME": place, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", **keys}
        settings = load_settings(folder=folder, environment=environment)
        most = max(1, runs // workers)
        asyncio.run(submit(settings, 1, 1))
        start = work_off(folder, environment, 1, most)
        asyncio.run(submit(settings, runs, calls))
        before = transactions(keys.get("MUSTER_DATABASE_URL"))
        cpu = work_off(folder, environment, workers, most) - workers * start
        ended = transactions(keys.get("MUSTER_DATABASE_URL")) - before
        seconds = asyncio.run(seconds_of(settings, runs))
    print(json.dumps({"seconds": seconds, "cpu": cpu, "transactions": ended}))


if __name__ == "__main__":
    main()
