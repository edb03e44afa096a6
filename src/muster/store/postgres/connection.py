"""One connection to a PostgreSQL database: named queries, locks, and transactions whose commit is never in doubt.

A transaction that wrote something leaves its number in a row of the writer's own. When the connection is lost while it
is committed, that row tells whether it is there. Every transaction of a writer has a lock from its beginning, for which
whoever asks waits: until the server is through with the old session. The row is dated by the clock of the server, so
that those of writers that crashed can be forgotten.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from muster.domain.errors import MusterError, StoreFailed
from muster.store.postgres.commands import Commands, Expectation, changed_by
from muster.store.postgres.failures import PostgresAddress, ServerAway, explained, read_only
from muster.store.postgres.session import WATCHED, connect
from muster.store.queries import (
    CommitUnknown,
    Locked,
    Locks,
    NamedRow,
    Otherwise,
    Parameters,
    Row,
    numbered_queries,
    numbered_rows,
)

PAGE_ROWS = 1000  # of one statement
PREPARED_ROWS = 4  # of statements that the server keeps prepared
TURN = "1s"  # for which a writer waits for a lock before it looks whether it still should
# After which the server ends a transaction whose process stands still: others go on before their leases are lost.
IDLE = "4s"
RECONNECT_SECONDS = 0.5
MAX_PAUSE = 0.05  # seconds before a transaction that lost a deadlock is tried again


class SpelledQuery(NamedTuple):
    """A query spelled for some rows."""

    text: bytes
    values: list[Any]
    keep: bool  # whether the server is to keep it prepared
    rows: int


def _pages(query: str, rows: Sequence[Parameters]) -> Iterator[SpelledQuery]:
    """Spell a query for many rows, a page of them at a time."""
    for start in range(0, len(rows), PAGE_ROWS):
        page = rows[start : start + PAGE_ROWS]
        found = numbered_rows(query, len(page))
        # Kept prepared only for few rows: there are as many texts as numbers of rows.
        values = [row[name] for row in page for name in found.names]
        yield SpelledQuery(found.text, values, len(page) <= PREPARED_ROWS, len(page))


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterMark:
    """The name under which a writer leaves the number of its last transaction, and is known to listeners."""

    token: str

    @property
    def trait(self) -> str:
        """The name of its row."""
        return f"{WRITERS}{self.token}"


WRITERS = "writer:"
OFFERING = frozenset({"insert_run", "release_run", "expire_run", "requeue_run", "wake_run", "restore_run"})  # queries


class PostgresConnection:
    """One session, opened again when it is lost; with a `mark` it can write.

    Outside of transactions every query sees what is committed when it begins.
    """

    sign = "%s"  # of a parameter

    def __init__(
        self,
        address: PostgresAddress,
        mark: WriterMark | None = None,
        on_snapshot: "Callable[[PostgresConnection], None]" = lambda connection: None,
    ) -> None:
        """Open the session; `on_snapshot` may read along whenever several queries are read at one moment."""
        self.address, self._mark, self._on_snapshot = address, mark, on_snapshot
        self._queries = numbered_queries()
        self._held: set[str] = set()  # locks of this transaction
        self._number = 0  # of the last transaction
        self._offered: set[str] = set()  # runs that this transaction may have made due
        self._open(changes=0)
        if mark is not None:
            self.execute("begin_mark", {"name": mark.trait})

    def _open(self, changes: int) -> None:
        self._raw = connect(self.address)
        self._commands = Commands(self._raw, changes)
        limits = (TURN, IDLE) if self._mark is not None else ("0", "0")
        session = self.rows("set_session", {"lock_timeout": limits[0], "idle_timeout": limits[1]})[0]
        self.process = session["process"]  # of the server, that this session has to itself
        if self._mark is not None and session["read_only"] == "on":
            self._raw.close()
            raise read_only(self.address, "all transactions are read-only")

    @property
    def raw(self) -> "psycopg.Connection[Any]":
        """The session itself, for what is not a query."""
        return self._raw

    @property
    def is_lost(self) -> bool:
        """Return whether the session is over."""
        return self._raw.closed or self._raw.broken

    @property
    def changes(self) -> int:
        """Return how many rows were changed since it was opened."""
        return self._commands.changes

    def rows(self, query: str, parameters: Parameters) -> Sequence[Row]:
        """Run a query and return its rows."""
        return self._mappings(*self._spelled(query, parameters), keep=True)

    def named_rows(self, query: str, parameters: Parameters, row: type[NamedRow]) -> Sequence[NamedRow]:
        """Run a query whose columns are the fields of `row`."""
        columns, rows = self._read(*self._spelled(query, parameters), keep=True)
        if columns != row._fields:
            raise ValueError(f"the query {query} has the columns {columns}, not those of {row.__name__}")
        return [row._make(values) for values in rows]

    def rows_of_many(self, query: str, parameters: Sequence[Parameters]) -> Sequence[Row]:
        """Run a query for all sets of parameters, a page at a time, and return its rows."""
        pages = _pages(query, parameters)
        return [row for page in pages for row in self._mappings(page.text, page.values, keep=page.keep)]

    def execute(self, query: str, parameters: Parameters) -> int:
        """Run a query and return how many rows it changed."""
        if query in OFFERING:
            self._offered.add(parameters["id"])
        return self._run(*self._spelled(query, parameters), keep=True)

    def execute_many(self, query: str, parameters: Iterable[Parameters]) -> int:
        """Run a query for each set of parameters and return how many rows were changed in all."""
        pages = _pages(query, list(parameters))
        return sum(self._run(page.text, page.values, keep=page.keep) for page in pages)

    def send_many(self, query: str, parameters: Iterable[Parameters], otherwise: Otherwise | None = None) -> None:
        """Run a query for each set of parameters, at the latest with the next one that is waited for."""
        for page in _pages(query, list(parameters)):
            must = None if otherwise is None else (page.rows, otherwise)
            self._send(page.text, page.values, keep=page.keep, must=must)

    def flush(self) -> None:
        """Wait for everything that was sent; raises the first error."""
        with explained(self.address, self._raw):
            self._commands.flush()

    def _send(
        self, text: bytes, values: Sequence[Any] = (), *, keep: bool = False, must: Expectation | None = None
    ) -> None:
        with explained(self.address, self._raw):
            self._commands.send(text, values, keep=keep, must=must)

    def _run(self, text: bytes, values: Sequence[Any] = (), *, keep: bool = False) -> int:
        """Run a statement whose rows nobody reads and return how many it changed."""
        with explained(self.address, self._raw):
            self._commands.send(text, values, keep=keep)
            return changed_by(self._commands.flush()[-1])

    def _mappings(self, text: bytes, values: Sequence[Any], *, keep: bool) -> Sequence[Row]:
        columns, rows = self._read(text, values, keep=keep)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def _read(self, text: bytes, values: Sequence[Any], *, keep: bool) -> tuple[tuple[str, ...], Sequence[Any]]:
        """Run a statement and return the names of its columns, and its rows."""
        with explained(self.address, self._raw):
            self._commands.send(text, values, keep=keep)
            result = self._commands.flush()[-1]
            columns = tuple((result.fname(number) or b"").decode() for number in range(result.nfields))
            return columns, self._commands.rows(result)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read everything as it is at one moment."""
        self._send(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            self._on_snapshot(self)
            yield
        finally:
            self._roll_back()

    def statement(self, text: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        """Run a statement of a copy and return its rows."""
        self.flush()
        with explained(self.address, self._raw), self._raw.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(text.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def now(self) -> float:
        """Return the time of the server, by which leases end."""
        return float(self.rows("select_time", {})[0]["now"])

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of a table."""
        return tuple(row["name"] for row in self.rows("select_columns", {"name": table}))

    def insert(self, table: str, columns: Sequence[str]) -> str:
        """Spell the beginning of an insertion, up to its rows."""
        return f"INSERT INTO {table} ({', '.join(columns)}) OVERRIDING SYSTEM VALUE"

    def finish_copy(self) -> None:
        """Let the numbers of entries and of the audit log go on after those that were copied."""
        self.rows("continue_positions", {})
        self.rows("continue_audit", {})

    def script(self, text: str) -> None:
        """Run the statements of a migration inside the transaction that is open."""
        with explained(self.address, self._raw):
            self._commands.script(text.encode())

    def lock(self, locks: Callable[[], Locks]) -> None:
        """Take locks until the transaction ends: names, runs and budgets, each in the order of their ids."""
        wanted = locks()
        for name in self._missing("name", wanted.names):
            self._lock_name(name)
        for query, ids in (("lock_runs", wanted.runs), ("lock_budgets", wanted.levels)):
            self.send_many(query, [{"id": one} for one in self._missing(query, ids)])

    def _lock_name(self, name: str) -> None:
        """Take a lock that may be waited for by the main thread: psycopg can be interrupted there, libpq cannot."""
        self.flush()
        with explained(self.address, self._raw), psycopg.RawCursor(self._raw) as cursor:
            cursor.execute(*self._spelled("lock_name", {"name": name}))

    def _missing(self, kind: str, ids: Iterable[str]) -> list[str]:
        """Return what is not locked yet, in order, and note that it will be."""
        found = [one for one in sorted(set(ids)) if f"{kind} {one}" not in self._held]
        self._held.update(f"{kind} {one}" for one in found)
        return found

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin for writing, commit at the end, roll back on an error."""
        self._reopen()
        self._held.clear()
        self._offered.clear()
        before = self.changes
        self._send(b"BEGIN")
        try:
            if self._mark is not None:  # answered before the commit is sent, so that a late one finds it locked
                self._lock_mark(self._mark)
            yield
            self.flush()
            self._commit(changed=self.changes != before)
        except CommitUnknown:
            raise
        except BaseException as error:
            self._roll_back()
            self._commands.changes = before
            if isinstance(error, Locked):
                time.sleep(random.uniform(0, MAX_PAUSE))  # noqa: S311 - so that two do not meet again
            raise

    def _roll_back(self) -> None:
        """Undo the transaction, unless the session is over; psycopg would drop all that is prepared."""
        with suppress(psycopg.Error, MusterError):
            self._commands.flush()
        with suppress(psycopg.Error):
            self._commands.script(b"ROLLBACK")

    def _reopen(self) -> None:
        """Open the session again if it was lost; raises ServerAway, after a while, when that is not possible."""
        if not self.is_lost:
            return
        try:
            self._open(self.changes)
        except StoreFailed as error:
            time.sleep(RECONNECT_SECONDS)
            raise ServerAway(error.message, suggestions=error.suggestions) from None

    def _commit(self, *, changed: bool) -> None:
        self._number += 1
        try:
            if changed and self._mark is not None:
                if self._offered:
                    self._send(*self._spelled("notify_offers", {"runs": " ".join(self._offered)}), keep=True)
                mark = {"name": self._mark.trait, "number": str(self._number)}
                told = {"sender": self._mark.token, "watched": WATCHED}
                self._send(*self._spelled("mark_commit", {**mark, **told}), keep=True)
            self._run(b"COMMIT")
        except ServerAway:
            if not changed or self._mark is None:
                raise  # it may be repeated: nothing comes of it
            raise CommitUnknown(partial(self._confirm, self._number)) from None

    def _spelled(self, query: str, parameters: Parameters) -> tuple[bytes, list[Any]]:
        found = self._queries[query]
        return found.text, found.values(parameters)

    def _confirm(self, number: int) -> bool:
        """Return whether a transaction is there; raises Locked while the server is not through with its session."""
        if self._mark is None:
            return False  # it had nothing to write
        self._reopen()
        self._send(b"BEGIN")
        try:
            self._lock_mark(self._mark)
            rows = self.rows("select_trait", {"name": self._mark.trait})
        finally:
            self._roll_back()
        return bool(rows) and int(rows[0]["value"].split()[0]) >= number

    def _lock_mark(self, mark: WriterMark) -> None:
        """Take the lock of a writer until the transaction ends; unlike that of a row it is no change for others."""
        self._send(*self._spelled("lock_name", {"name": mark.trait}), keep=True)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo only what happens inside when it fails."""
        self.flush()  # what fails of it does not belong to this
        held, changes = set(self._held), self.changes
        self._send(b"SAVEPOINT item")
        try:
            yield
            self.flush()
        except BaseException:
            if not self.is_lost:
                with suppress(psycopg.Error, MusterError):
                    self._commands.flush()
                self._held, self._commands.changes = held, changes  # locks that were taken inside are given back
                self._run(b"ROLLBACK TO SAVEPOINT item")
                self._send(b"RELEASE SAVEPOINT item")
            raise
        self._send(b"RELEASE SAVEPOINT item")

    def close(self) -> None:
        """End the session, and forget the mark that nobody needs any more."""
        if self._mark is not None and not self.is_lost:
            with suppress(StoreFailed):
                self.execute("delete_trait", {"name": self._mark.trait, "value": self._last_mark()})
        self._raw.close()

    def _last_mark(self) -> str:
        rows = self.rows("select_trait", {"name": self._mark.trait if self._mark else ""})
        return rows[0]["value"] if rows else ""
