"""A fleet for the tests of the API: two servers and four workers, with a real PostgreSQL and a real Redis between them.

Tests that were written for one server run on it unchanged: requests go to the servers in turn.
"""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.redis_server import running_redis

# Set by `make test-fleet`.
ON_FLEET = bool(os.environ.get("MUSTER_TEST_FLEET"))

# Tests of one process: how it starts, its sockets, what it says when it is killed, the file of its store.
OF_ONE_SERVER = frozenset(
    f"tests.api.test_{name}" for name in ("connections", "fleet", "kill", "serve", "service", "sse", "streams")
)
# Also run on a fleet by `make test`.
ON_BOTH = frozenset({"tests.api.test_battles"})


@dataclass(frozen=True, kw_only=True)
class FleetStore:
    """Where a fleet keeps its state."""

    database_url: str
    redis_url: str
    servers: int = 2
    workers: int = 4

    @property
    def variables(self) -> dict[str, str]:
        return {"MUSTER_DATABASE_URL": self.database_url, "REDIS_URL": self.redis_url}

    def stored(self) -> bytes:
        """Return all rows of all tables as text."""
        with psycopg.connect(self.database_url) as connection:
            names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            rows = [row for (name,) in names for row in connection.execute(f'SELECT t::text FROM "{name}" t'.encode())]
        return "\n".join(text for (text,) in rows).encode()


MakeFleetStore = Callable[[], FleetStore]


@contextmanager
def fleet_store(server: str, template: str, folder: Path) -> Iterator[FleetStore]:
    """Make an empty database and start an empty Redis."""
    name = f"fleet_{uuid.uuid4().hex}"
    socket = quote(str(conninfo_to_dict(server)["host"]), safe="")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy".encode())
    try:
        with running_redis(folder) as redis:
            yield FleetStore(database_url=f"postgresql:///{name}?host={socket}&user=muster", redis_url=redis.url)
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
