"""Servers and workers as processes of their own, with a real Redis between them."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.forkserver import Forked
from tests.redis_server import RedisServer, running_redis

from .server import SETTINGS, Project, Server

PATIENCE = 60.0
BATTLE = {"agentId": "sim/slow", "counterpart": "sim/echo", "userMessage": "hello", "messageLimit": 3}


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with running_redis(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def fleet(project: Project, redis: RedisServer) -> Project:
    project.variables["REDIS_URL"] = redis.url
    return project


def until(what: Callable[[], Any], words: str) -> Any:
    """Wait until something is so, and return it."""
    end = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < end, words
        time.sleep(0.05)
    return found


def workers(server: Server, number: int) -> None:
    """Wait until a server sees that runs are left to workers, or not."""
    wanted = [] if number else ["battles", "runs", "scale-tests"]
    until(lambda: server.get("/healthz").json["driven_here"] == wanted, f"the server does not see {number} workers")


def drivers(project: Project) -> dict[str, set[int]]:
    """Return the processes that ever drove each run, by its id."""
    import sqlite3

    found: dict[str, set[int]] = {}
    database = sqlite3.connect(project.folder / ".muster" / "muster.db")
    try:
        for run, data in database.execute("SELECT run_id, data FROM events WHERE kind IN ('run.started','run.resumed')"):
            found.setdefault(run, set()).add(json.loads(data).get("pid"))
    finally:
        database.close()
    return found


def test_a_battle_is_played_by_a_worker_and_followed_at_another_server(fleet: Project) -> None:
    with fleet.serve() as one, fleet.serve() as other, fleet.command("worker") as worker:
        workers(one, 1)
        run = one.post("/api/battles/start", BATTLE).json["id"]
        stream = other.get(f"/api/stream/{run}")
        assert stream.status == 200
        names = [line.split(": ")[1] for line in stream.body.decode().splitlines() if line.startswith("event: ")]
        assert names.count("message") == 6
        assert names[-1] == "end"
        assert other.get(f"/api/battles/{run}/status").json["state"] == "completed"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
        assert f"run {run} completed" in worker.stdout.read()


def test_without_a_worker_the_server_drives_runs_itself_and_says_so(fleet: Project) -> None:
    with fleet.serve() as server:
        workers(server, 0)
        run = server.ask()
        assert server.until(run, "completed")
        assert server.stop() == 0
        assert "runs are driven in this process, within its limits: no worker is alive" in server.process.stderr.read()
