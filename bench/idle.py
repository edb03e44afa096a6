"""A child process that lets workers or servers wait for runs that never come, and prints their transactions."""

import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psycopg
from tests.postgres import postgres_server

from bench.processes import started
from bench.workers import make_database, make_fleet, redis_at

SETTLE_SECONDS = 20.0  # until all have started; the server counts what a session did up to ten seconds later
SECONDS = 60.0
COMMANDS = {"worker": ("worker", "--quiet"), "serve": ("serve", "--port", "0", "--quiet")}


def ended(url: str) -> int:
    """Return how many transactions have ended in the databases of a server that are not its own."""
    text = "SELECT SUM(xact_commit + xact_rollback) FROM pg_stat_database WHERE datname = 'idle'"
    with psycopg.connect(url, autocommit=True) as database:
        row = database.execute(text).fetchone()
    return int(row[0]) if row else 0


def main() -> None:
    """Start so many of a command, with `redis` or with `none`, and print the transactions a second of each as JSON."""
    number, queue, name = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    with ExitStack() as stack:
        place, data = (stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2))
        server = stack.enter_context(postgres_server())
        keys = {"MUSTER_DATABASE_URL": make_database(server, "idle")}
        if queue == "redis":
            keys["REDIS_URL"] = f"{stack.enter_context(redis_at(Path(data)))}/0"
        fleet = make_fleet(Path(place) / "fleet", number, keys)
        command = [sys.executable, "-m", "muster", *COMMANDS[name]]
        processes = [stack.enter_context(started(command, fleet.folder, fleet.environment)) for _ in range(number)]
        time.sleep(SETTLE_SECONDS)
        before, since = ended(server.url()), time.monotonic()
        time.sleep(SECONDS)
        rate = (ended(server.url()) - before) / (time.monotonic() - since)
        for child in processes:
            if child.process.poll() is not None:
                child.output()
    print(json.dumps({"transactions": rate / number}))


if __name__ == "__main__":
    main()
