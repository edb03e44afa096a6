"""The SQLite file of a store: how it is made, and one connection to it, whose failures say what to do."""

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from muster.domain.errors import StoreFailed
from muster.store.queries import (
    Locked,
    Locks,
    NamedRow,
    Otherwise,
    Parameters,
    Row,
    newest_version,
    queries,
    rows_of,
    schema,
)
from muster.store.sqlite.failures import explained, identity_of, vanished

BUSY_SECONDS = 30.0
MAX_ROWS = 32
PAGE_ROWS = 1000  # of groups that are larger still: pages of results
IGNORE = ".gitignore"  # is put into a folder that is made for a store
OWN_FOLDER = ".muster"  # may hold markers before there is a store
PRIVATE = stat.S_IRUSR | stat.S_IWUSR  # prompts and answers: nobody else on the machine may read them
_FORMATS = slice(18, 20)  # in the header of a file: 2 where it is written with a log
_LOGGED = b"\x02\x02"


class Access(StrEnum):
    """How a connection shares its file with others."""

    SHARED = "shared"
    ALONE = "alone"  # no other may be open, and no memory is shared, for which a full disk has no room
    READ_ONLY = "read-only"  # others may write
    IMMUTABLE = "immutable"  # nobody writes: no lock is taken, and no log is looked for


_PARAMETERS = {Access.READ_ONLY: "?mode=ro", Access.IMMUTABLE: "?mode=ro&immutable=1"}


class SqliteConnection:
    """One connection to the file; every failure says which file and what to do.

    `patience` is how long it waits for a lock.
    """

    sign = "?"  # of a parameter

    def __init__(self, path: Path, *, patience: float | None = None, access: Access = Access.SHARED) -> None:
        self.path = path
        self._queries = queries()
        with explained(path):
            only_reads = access in _PARAMETERS
            self._raw = sqlite3.connect(
                path.absolute().as_uri() + _PARAMETERS[access] if only_reads else path,
                uri=only_reads,
                timeout=BUSY_SECONDS if patience is None else patience,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=512,
            )
            self._raw.row_factory = sqlite3.Row
            try:
                self._set_up(alone=access is Access.ALONE)
            except sqlite3.Error:
                self._raw.close()  # else it would keep what it has locked
                raise
        self._file = identity_of(path)

    def _set_up(self, *, alone: bool) -> None:
        if alone:
            self._raw.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._raw.execute("PRAGMA synchronous = FULL")
        self._raw.execute("PRAGMA cache_size = -4000")  # 4 MB: memory must not grow with the file

    @property
    def changes(self) -> int:
        """Return how many rows were changed since it was opened."""
        return self._raw.total_changes

    def rows(self, query: str, parameters: Parameters) -> Sequence[Row]:
        """Run a query and return its rows."""
        with explained(self.path):
            return self._raw.execute(self._queries[query], parameters).fetchall()

    def named_rows(self, query: str, parameters: Parameters, row: type[NamedRow]) -> Sequence[NamedRow]:
        """Run a query whose columns are the fields of `row`."""
        with explained(self.path):
            cursor = self._raw.cursor()
            cursor.row_factory = None
            found = cursor.execute(self._queries[query], parameters).fetchall()
        columns = tuple(name for name, *_ in cursor.description)
        if columns != row._fields:
            raise ValueError(f"the query {query} has the columns {columns}, not those of {row.__name__}")
        return [row._make(values) for values in found]

    def rows_of_many(self, query: str, parameters: Sequence[Parameters]) -> Sequence[Row]:
        """Run a query for all sets of parameters, a page at a time, and return its rows."""
        pages = (parameters[start : start + PAGE_ROWS] for start in range(0, len(parameters), PAGE_ROWS))
        return [row for page in pages for row in self._rows_of_page(query, page)]

    def _rows_of_page(self, query: str, parameters: Sequence[Parameters]) -> Sequence[Row]:
        template = rows_of(query)
        values = [row[name] for row in parameters for name in template.names]
        with explained(self.path):
            return self._raw.execute(template.text(len(parameters)), values).fetchall()

    def execute(self, query: str, parameters: Parameters) -> int:
        """Run a query and return how many rows it changed."""
        return self._change(self._queries[query], parameters)

    def execute_many(self, query: str, parameters: Iterable[Parameters]) -> int:
        """Run a query for each set of parameters and return how many rows were changed in all."""
        rows = list(parameters)
        # One statement for many rows: every statement gives the interpreter lock to an event loop that is slow to
        # return it. Up to so many, so that SQLite keeps the spelling for each number of rows prepared.
        whole = len(rows) - len(rows) % PAGE_ROWS
        starts = [(start, PAGE_ROWS) for start in range(0, whole, PAGE_ROWS)]
        starts += [(start, MAX_ROWS) for start in range(whole, len(rows), MAX_ROWS)]
        return sum(self._execute_rows(query, rows[start : start + size]) for start, size in starts)

    def send_many(self, query: str, parameters: Iterable[Parameters], otherwise: Otherwise | None = None) -> None:
        """Run a query for each set of parameters; raises `otherwise` when it has not changed one row for each."""
        rows = list(parameters)
        if self.execute_many(query, rows) != len(rows) and otherwise is not None:
            raise otherwise()

    def flush(self) -> None:
        """Do nothing: whatever was sent is done."""

    def _execute_rows(self, query: str, rows: Sequence[Parameters]) -> int:
        template = rows_of(query)
        values = [row[name] for row in rows for name in template.names]
        return self._change(template.text(len(rows)), values)

    def _change(self, text: str, parameters: Parameters | Sequence[Any]) -> int:
        with explained(self.path):
            before = self._raw.total_changes  # the cursor counts no rows of a statement that begins with WITH
            self._raw.execute(text, parameters)
            return self._raw.total_changes - before

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin for writing, commit at the end, roll back on an error."""
        with explained(self.path):
            # IMMEDIATE takes the write lock at once and waits its turn for it; a plain BEGIN would fail half-way.
            self._raw.execute("BEGIN IMMEDIATE")
            try:
                yield
                if identity_of(self.path) != self._file:
                    self._save_log()
                    raise vanished(self.path, self._file)
                self._raw.execute("COMMIT")
            except BaseException:
                if self._raw.in_transaction:
                    self._raw.execute("ROLLBACK")
                raise

    def _save_log(self) -> None:
        """Put what the log holds into a file that was moved, perhaps without its log."""
        self._raw.execute("ROLLBACK")
        with suppress(sqlite3.Error):
            self._raw.execute("PRAGMA wal_checkpoint(PASSIVE)")

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

    def lock(self, locks: Callable[[], Locks]) -> None:
        """Take nothing: whoever writes has locked the whole file."""

    def pragma(self, text: str) -> Any:
        """Run a pragma and return its first value."""
        with explained(self.path):
            row = self._raw.execute(f"PRAGMA {text}").fetchone()
            return row[0] if row else None

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read everything as it is at one moment."""
        with explained(self.path):
            self._raw.execute("BEGIN")
            try:
                yield
            finally:
                self._raw.execute("ROLLBACK")

    def statement(self, text: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        """Run a statement of a copy and return its rows."""
        with explained(self.path):
            cursor = self._raw.cursor()
            cursor.row_factory = None
            return cursor.execute(text, values).fetchall()

    def now(self) -> float:
        """Return the time of this machine, by which leases in a file end."""
        return time.time()

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of a table."""
        return tuple(row[1] for row in self.statement(f"PRAGMA table_info({table})"))

    def insert(self, table: str, columns: Sequence[str]) -> str:
        """Spell the beginning of an insertion, up to its rows."""
        return f"INSERT INTO {table} ({', '.join(columns)})"

    def finish_copy(self) -> None:
        """Do nothing: numbers go on after the highest by themselves."""

    def script(self, text: str) -> None:
        """Run the statements of a migration inside the transaction that is open."""
        with explained(self.path):
            for statement in text.split(";\n"):
                if statement.strip():
                    self._raw.execute(statement)

    def vacuum(self) -> None:
        """Return free space to the disk."""
        with explained(self.path):
            self._raw.execute("VACUUM")
            busy, _, _ = self._raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:  # the smaller file is in the log until then
            raise Locked(f"the store {self.path} is being read by another process: its log could not be truncated")

    def interrupt(self) -> None:
        """End the statement that another thread is executing."""
        self._raw.interrupt()

    def close(self) -> None:
        """Let go of the file."""
        self._raw.close()


def prepare_file(path: Path) -> None:
    """Make the file and its folder where there are none; raises StoreFailed where that cannot be done."""
    try:
        own = not path.parent.exists() or (path.parent.name == OWN_FOLDER and not path.exists())
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        ignore = path.parent / IGNORE
        if own and not ignore.exists():
            # What is in there is private, and belongs into no repository that it happens to lie in.
            ignore.write_text("*\n", encoding="utf-8")
        if not path.exists():
            with suppress(OSError):
                _make_whole(path)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, PRIVATE))  # without tables, if it is still not there
    except OSError as error:
        file = next((each for each in path.parents if each.is_file()), None)
        why = error.strerror if file is None else f"{file} is a file, not a folder"
        way = "make the folder writable, or choose another with --home"
        raise StoreFailed(
            f"the store {path} cannot be created: {why}",
            suggestions=(way if file is None else "choose a folder with --home",),
        ) from error


def _make_whole(path: Path) -> None:
    """Make the file with its tables at once; nothing is left where that fails, or another process was faster."""
    unnamed = getattr(os, "O_TMPFILE", None)  # of Linux, and not of all its file systems
    if unnamed is None:
        return
    file = os.open(path.parent, unnamed | os.O_RDWR, PRIVATE)
    with os.fdopen(file, "wb") as made:
        made.write(empty_store())
        made.flush()
        os.fsync(file)
        # With a folder it is the system call that follows the link to the file.
        os.link(f"/proc/self/fd/{file}", path, src_dir_fd=file)


@cache
def empty_store() -> bytes:
    """Return the file of an empty store: to make its tables takes five times as long as to write it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.executescript(schema("sqlite"))
        database.execute(f"PRAGMA user_version = {newest_version('sqlite')}")
        made = bytearray(database.serialize())
    made[_FORMATS] = _LOGGED
    return bytes(made)
