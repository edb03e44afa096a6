"""One connection to an SQLite file: named queries, transactions, and failures that say what to do."""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from muster.domain.errors import KeyTaken, MusterError, StoreAway, StoreFailed
from muster.store.queries import Locked, Locks, NamedRow, Otherwise, Parameters, Row, queries, rows_of

BUSY_SECONDS = 30.0
MOST_ROWS = 32
PAGE_ROWS = 1000  # of groups that are larger still: pages of results
LEAST_ROOM = 262_144  # bytes; with less a disk counts as full: the log and the memory of a file take as much at once
WRITE_LOCK = "120"  # the byte of the -shm file that SQLite locks for writing


class DiskFull(Locked, StoreAway):
    """The file has no room to grow in; nothing of the transaction was written."""

    pause = 0.25
    refuses_new = True


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
        starts += [(start, MOST_ROWS) for start in range(whole, len(rows), MOST_ROWS)]
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


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn failures of SQLite into errors that say what happened, where, and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(path, error) from error


_EXPLANATIONS: Mapping[str, tuple[str, str]] = {
    "SQLITE_BUSY": ("is locked by another process", "end the process that holds it, or wait and try again"),
    "SQLITE_PROTOCOL": ("is locked by another process", "end the process that holds it, or wait and try again"),
    "SQLITE_IOERR": ("cannot be read or written", "check the disk; nothing was half-written; then resume"),
    "SQLITE_READONLY": ("cannot be written", "make the folder writable or choose another with --home"),
    "SQLITE_CANTOPEN": ("cannot be opened", "make the folder readable and writable or choose another with --home"),
    "SQLITE_NOTADB": ("is not a Muster store", "move the file away or choose another folder with --home"),
    "SQLITE_CORRUPT": ("is damaged", "restore it from a backup, or move it away to start with a new one"),
}


def explain(path: Path, error: sqlite3.Error) -> MusterError:
    """Make the error that a person can act on."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name == "SQLITE_CONSTRAINT_UNIQUE" and "journal.key" in str(error):
        return KeyTaken("the journal already has an entry under this key")
    if name == "SQLITE_FULL" or (name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")) and is_full(path)):
        return disk_full(path)
    kind = Locked if name.startswith(("SQLITE_BUSY", "SQLITE_PROTOCOL")) else StoreFailed
    for prefix, (what, remedy) in _EXPLANATIONS.items():
        if name.startswith(prefix):
            return kind(f"the store {path} {what} ({error})", suggestions=(remedy,))
    return StoreFailed(f"the store {path} failed: {error} ({name or type(error).__name__})")


def disk_full(path: Path) -> DiskFull:
    """Make the error for a file that has no room to grow in."""
    way = "free some space; nothing was half-written; then resume"
    return DiskFull(f"the store {path} cannot grow: the disk is full", suggestions=(way,))


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from any other that may stand in its place; None when there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - done for every commit, and twice as quick
    except OSError:
        return None
    return found.st_dev, found.st_ino


def vanished(path: Path, file: tuple[int, int] | None) -> StoreFailed:
    """Make the error for a file that was moved or deleted while it was open."""
    place = _place_of(file)
    if place is not None:
        what = f"the store {path} was moved to {place} while it was in use; everything written before is there"
        return StoreFailed(what, suggestions=(f"move it back to {path}, then resume",))
    gone = "deleted or moved to another file system"
    done = gone if identity_of(path) is None else "replaced by another file"
    return StoreFailed(
        f"the store {path} was {done} while it was in use; its contents are lost unless there is a backup",
        suggestions=(f"move it back to {path} or restore it from a backup, then resume; or start with a new one",),
    )


def _place_of(file: tuple[int, int] | None) -> str | None:
    """Return where a file that this process has open is now; None when it is deleted, or nobody knows."""
    with suppress(OSError):
        for handle in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                found = handle.stat()
                if (found.st_dev, found.st_ino) == file and found.st_nlink:
                    return str(handle.readlink())
    return None


def is_full(path: Path) -> bool:
    """Return whether the disk of a file is full."""
    try:
        return shutil.disk_usage(path.parent).free < LEAST_ROOM
    except OSError:
        return False


def is_read_only(path: Path) -> bool:
    """Return whether a store that is there cannot be written to by this process."""
    # Readable too: what may not even be looked at is told as that.
    return os.access(path, os.R_OK) and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def lock_holder(path: Path) -> int | None:
    """Return the number of the process that holds the write lock, where the system tells."""
    memory = identity_of(Path(f"{path}-shm"))
    with suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            fields = line.replace("-> ", "").split()
            inode = fields[5].rpartition(":")[2]
            if memory and inode == str(memory[1]) and fields[3] == "WRITE" and fields[6] == WRITE_LOCK:
                return int(fields[4]) if int(fields[4]) > 0 else None
    return None
