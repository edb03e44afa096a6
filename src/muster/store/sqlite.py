"""The store on one SQLite file, which several processes of one machine may open."""

import asyncio
import os
import sqlite3
import stat
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from muster.domain.canonical import Json
from muster.domain.errors import KeyTaken, MusterError, StoreFailed
from muster.store import journal
from muster.store.baselines import DatabaseBaselines
from muster.store.batches import DatabaseBatches
from muster.store.codec import Codec
from muster.store.connection import Connection, Parameters, Row
from muster.store.database import (
    DatabaseArchive,
    DatabaseAttendance,
    DatabaseEvents,
    DatabaseJournal,
    DatabaseLeases,
    DatabaseRuns,
)
from muster.store.processes import DatabaseProcesses
from muster.store.pulse import Pulse
from muster.store.queries import migrations, queries, rows_of
from muster.store.reviews import DatabaseReviews
from muster.store.writer import Group, Writer

BUSY_SECONDS = 30.0
LOOK_SECONDS = 0.1
MOST_ROWS = 32
PAGE_ROWS = 1000  # of groups that are larger still: pages of results
OWN_FOLDER = ".muster"  # may hold markers before there is a store


class SqliteConnection:
    """One connection to the file; every failure says which file and what to do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._queries = queries()
        with explained(path):
            self._raw = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=512
            )
            self._raw.row_factory = sqlite3.Row
            self._raw.execute("PRAGMA synchronous = FULL")
            self._raw.execute("PRAGMA cache_size = -4000")  # 4 MB: memory must not grow with the file

    @property
    def changes(self) -> int:
        """Say how many rows were changed since it was opened."""
        return self._raw.total_changes

    def rows(self, query: str, parameters: Parameters) -> Sequence[Row]:
        """Run a query and give its rows."""
        with explained(self.path):
            return self._raw.execute(self._queries[query], parameters).fetchall()

    def tuples(self, query: str, parameters: Parameters) -> Sequence[tuple[Any, ...]]:
        """Run a query and give its rows as tuples."""
        with explained(self.path):
            cursor = self._raw.cursor()
            cursor.row_factory = None
            return cursor.execute(self._queries[query], parameters).fetchall()

    def rows_of_many(self, query: str, parameters: Sequence[Parameters]) -> Sequence[Row]:
        """Run a query for all sets of parameters at once and give its rows."""
        template = rows_of(query)
        values = [row[name] for row in parameters for name in template.names]
        with explained(self.path):
            return self._raw.execute(template.text(len(parameters)), values).fetchall()

    def execute(self, query: str, parameters: Parameters) -> int:
        """Run a query and say how many rows it changed."""
        with explained(self.path):
            return self._raw.execute(self._queries[query], parameters).rowcount

    def execute_many(self, query: str, parameters: Iterable[Parameters]) -> int:
        """Run a query for each set of parameters and say how many rows were changed in all."""
        rows = list(parameters)
        # One statement for many rows: every statement gives the interpreter lock to an event loop that is slow to
        # return it. Up to so many, so that SQLite keeps the spelling for each number of rows prepared.
        whole = len(rows) - len(rows) % PAGE_ROWS
        starts = [(start, PAGE_ROWS) for start in range(0, whole, PAGE_ROWS)]
        starts += [(start, MOST_ROWS) for start in range(whole, len(rows), MOST_ROWS)]
        return sum(self._execute_rows(query, rows[start : start + size]) for start, size in starts)

    def _execute_rows(self, query: str, rows: Sequence[Parameters]) -> int:
        template = rows_of(query)
        values = [row[name] for row in rows for name in template.names]
        with explained(self.path):
            return self._raw.execute(template.text(len(rows)), values).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin for writing, commit at the end, roll back on an error."""
        with explained(self.path):
            # IMMEDIATE takes the write lock at once and waits its turn for it; a plain BEGIN would fail half-way.
            self._raw.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._raw.execute("COMMIT")
            except BaseException:
                if self._raw.in_transaction:
                    self._raw.execute("ROLLBACK")
                raise

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo only what happens inside when it fails."""
        if not self._raw.in_transaction:  # else what follows would be written on its own
            raise StoreFailed(f"the store {self.path} ended a transaction by itself; nothing of it is written")
        self._raw.execute("SAVEPOINT item")
        try:
            yield
        except BaseException:
            if self._raw.in_transaction:  # a full disk ends the transaction by itself
                self._raw.execute("ROLLBACK TO item")
                self._raw.execute("RELEASE item")
            raise
        self._raw.execute("RELEASE item")

    def pragma(self, text: str) -> Any:
        """Run a pragma and give its first value."""
        with explained(self.path):
            row = self._raw.execute(f"PRAGMA {text}").fetchone()
            return row[0] if row else None

    def script(self, text: str) -> None:
        """Run the statements of a migration inside the transaction that is open."""
        with explained(self.path):
            for statement in text.split(";\n"):
                if statement.strip():
                    self._raw.execute(statement)

    def vacuum(self) -> None:
        """Give free space back to the disk."""
        with explained(self.path):
            self._raw.execute("VACUUM")
            self._raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the smaller file is in the log until then

    def close(self) -> None:
        """Let go of the file."""
        self._raw.close()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn failures of SQLite into errors that say what happened, where, and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(path, error) from error


_EXPLANATIONS: Mapping[str, tuple[str, str]] = {
    "SQLITE_BUSY": ("is locked by another process", "end the process that holds it, or wait and try again"),
    "SQLITE_FULL": ("cannot grow: the disk is full", "free some space; nothing was half-written; then resume"),
    "SQLITE_IOERR": ("cannot be read or written", "check the disk; nothing was half-written; then resume"),
    "SQLITE_READONLY": ("cannot be written", "make the folder writable or choose another with --home"),
    "SQLITE_CANTOPEN": ("cannot be opened", "make the folder readable and writable or choose another with --home"),
    "SQLITE_NOTADB": ("is not a store of ours", "move the file away or choose another folder with --home"),
    "SQLITE_CORRUPT": ("is damaged", "restore it from a copy, or move it away to start anew"),
}


def explain(path: Path, error: sqlite3.Error) -> MusterError:
    """Make the error that a person can act on."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name == "SQLITE_CONSTRAINT_UNIQUE" and "journal.key" in str(error):
        return KeyTaken("the journal has an entry under this key already")
    for prefix, (what, remedy) in _EXPLANATIONS.items():
        if name.startswith(prefix):
            return StoreFailed(f"the store {path} {what} ({error})", suggestions=(remedy,))
    return StoreFailed(f"the store {path} failed: {error} ({name or type(error).__name__})")


class SqliteHousekeeping:
    """The store as a file."""

    def __init__(self, path: Path, reader: SqliteConnection, writer: Writer, close: Callable[[], Awaitable[None]]):
        self._path, self._reader, self._writer, self._close = path, reader, writer, close

    async def info(self) -> Mapping[str, Json]:
        """Say where the store is, how large, of which version."""
        sizes = {name: _size(Path(f"{self._path}{end}")) for name, end in (("bytes", ""), ("wal_bytes", "-wal"))}
        return {
            "path": str(self._path),
            "kind": "sqlite",
            "version": self._reader.pragma("user_version"),
            "sqlite": sqlite3.sqlite_version,
            **sizes,
            "free_bytes": self._reader.pragma("freelist_count") * self._reader.pragma("page_size"),
            "check": self._reader.pragma("quick_check"),
        }

    async def vacuum(self) -> None:
        """Give free space back to the disk."""
        connection = SqliteConnection(self._path)
        try:
            await asyncio.to_thread(connection.vacuum)
        finally:
            connection.close()

    async def close(self) -> None:
        """Write what is queued and let go of the file."""
        await self._close()


class SqliteStore:
    """All parts of the store on one file."""

    def __init__(self, path: Path, *, secrets: Sequence[str], reach: Callable[[str], None]) -> None:
        codec = Codec(secrets)
        self._reader = reader = SqliteConnection(path)
        self.changes = Pulse(lambda: reader.pragma("data_version"), LOOK_SECONDS)
        opens = Group(partial(_with_codec, journal.open_attempts, codec))
        settles = Group(partial(_with_codec, journal.settle_attempts, codec))
        self._writer = writer = Writer(
            partial(SqliteConnection, path), groups=(opens, settles), on_commit=self.changes.beat, reach=reach
        )
        self.journal = self.reuser = DatabaseJournal(reader, writer, codec, opens, settles)
        self.runs = self.desk = DatabaseRuns(reader, writer, codec)
        self.leases = DatabaseLeases(writer, codec)
        self.attendance = DatabaseAttendance(reader, writer)
        self.processes = DatabaseProcesses(reader, writer)
        self.events = DatabaseEvents(reader, writer, codec)
        self.batches = self.batch_book = DatabaseBatches(reader, writer, codec)
        self.reviews = DatabaseReviews(reader, writer, codec)
        self.baselines = DatabaseBaselines(reader, writer, codec)
        self.archive = DatabaseArchive(reader, writer, codec)
        self.housekeeping = SqliteHousekeeping(path, reader, writer, self._shut)

    async def _shut(self) -> None:
        await self._writer.close()
        self._reader.close()


def _with_codec(apply: Any, codec: Codec, database: Connection, items: Sequence[Any]) -> Any:
    return apply(database, codec, items)


def _nowhere(point: str) -> None:
    """Pass a kill point without dying."""


def open_sqlite(path: Path, *, secrets: Sequence[str] = (), reach: Callable[[str], None] = _nowhere) -> SqliteStore:
    """Open the store, making the file or bringing it up to date; call inside a running event loop."""
    _prepare_file(path)
    connection = SqliteConnection(path)
    try:
        migrate(connection)
    finally:
        connection.close()
    return SqliteStore(path, secrets=secrets, reach=reach)


def _prepare_file(path: Path) -> None:
    try:
        own = not path.parent.exists() or (path.parent.name == OWN_FOLDER and not path.exists())
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        ignore = path.parent / ".gitignore"
        if own and not ignore.exists():
            # What is in there is private, and belongs into no repository that it happens to lie in.
            ignore.write_text("*\n", encoding="utf-8")
        if not path.exists():
            # Prompts and answers are private: nobody else on the machine may read them.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, stat.S_IRUSR | stat.S_IWUSR))
    except OSError as error:
        raise StoreFailed(
            f"the store {path} cannot be made: {error.strerror}",
            suggestions=("make the folder writable or choose another with --home",),
        ) from error


def migrate(connection: SqliteConnection) -> None:
    """Bring the file up to this version; a newer one is refused."""
    steps = migrations("sqlite")
    newest = steps[-1][0]
    version = connection.pragma("user_version")
    if version > newest:
        raise StoreFailed(
            f"the store {connection.path} is of version {version}; this program knows versions up to {newest}",
            suggestions=("upgrade muster, or choose another folder with --home",),
        )
    if version == newest:
        return
    _switch_to_wal(connection)
    with connection.transaction():
        version = connection.pragma("user_version")  # another process may have been faster
        if 0 < version < newest:
            _require_undriven(connection)
        for number, _, text in steps:
            if number > version:
                connection.script(text)
                connection.pragma(f"user_version = {number}")


def _require_undriven(connection: SqliteConnection) -> None:
    """Refuse to change the tables under an older program that is at work: what it is about to write would be lost."""
    driven = connection.rows("select_driven", {"now": time.time()})
    if driven:
        run, pid = driven[0]["id"], driven[0]["driver_pid"]
        raise StoreFailed(
            f"the store {connection.path} must be brought up to date, and run {run} is under way in it (process {pid})",
            suggestions=("wait until it is done, or stop it; after a crash wait 15 seconds; then try again",),
        )


def _switch_to_wal(connection: SqliteConnection) -> None:
    """Switch the log on; SQLite does not wait its turn for this, so we do."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.pragma("journal_mode = WAL")
            return
        except StoreFailed as error:
            busy = isinstance(error.__cause__, sqlite3.OperationalError) and "locked" in str(error.__cause__)
            if not busy or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
