"""The store of a folder for tests of the engine: a file in it, or a database of its own on a real PostgreSQL."""

import hashlib
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from muster.store.base import Store
from muster.store.postgres.store import open_postgres
from muster.store.sqlite.store import open_sqlite


class TestDatabases:
    """Databases by folder, on one server; whoever opens a folder again finds what was in it."""

    __test__ = False

    def __init__(self, server: str, template: str) -> None:
        self._server, self._template = server, template
        self._made: set[str] = set()

    def open(self, folder: Path) -> Store:
        name = f"engine_{hashlib.sha256(str(folder).encode()).hexdigest()[:20]}"
        if name not in self._made:
            self._made.add(name)
            self._run(f"CREATE DATABASE {name} TEMPLATE {self._template} STRATEGY file_copy")
        return open_postgres(make_conninfo(self._server, dbname=name))

    def drop(self) -> None:
        for name in self._made:
            self._run(f"DROP DATABASE {name} WITH (FORCE)")

    def _run(self, text: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as server:
            server.execute(text.encode())


DATABASES: list[TestDatabases] = []  # filled while a test runs on PostgreSQL


def open_store(folder: Path) -> Store:
    return DATABASES[-1].open(folder) if DATABASES else open_sqlite(folder / "muster.db")
