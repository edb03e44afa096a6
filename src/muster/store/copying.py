"""A store copied into another, table by table, in one transaction, and verified by counts and digests.

Statements are made of the names of tables and columns that the code knows, since they are the same for every table.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from muster.domain.errors import Conflict, Interrupted, MusterError, StoreFailed
from muster.store.queries import Parameters, Row
from muster.store.tables import FEW_ROWS, TABLES
from muster.text import typed

PAGE_ROWS = 200
_KEPT_BACK = ("writer:", "claim")  # traits that say what processes are doing just now

TableRow = tuple[Any, ...]
OnProgress = Callable[[str, int, int], None]


class CopyConnection(Protocol):
    """A database of which whole tables are read and written; both ends of a copy have the same version."""

    sign: str  # of a parameter

    def statement(self, text: str, values: Sequence[Any] = ()) -> Sequence[TableRow]:
        """Run a statement and return its rows."""

    def rows(self, query: str, parameters: Parameters) -> Sequence[Row]:
        """Run a named query and return its rows."""

    def now(self) -> float:
        """Return the time by which leases end: that of the server, or of this machine for a file."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Read everything as it is at one moment."""

    def transaction(self) -> AbstractContextManager[None]:
        """Begin for writing, commit at the end, roll back on an error."""

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the columns of a table."""

    def insert(self, table: str, columns: Sequence[str]) -> str:
        """Spell the beginning of an insertion, up to its rows."""

    def finish_copy(self) -> None:
        """Let numbers that the database gives itself go on after those that were copied."""


class TableCopy(NamedTuple):
    """What was copied of a table."""

    table: str
    rows: int
    digest: str  # of all rows, in the order of their keys


def copy_tables(
    source: CopyConnection,
    target: CopyConnection,
    *,
    on_progress: OnProgress = lambda table, done, total: None,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[TableCopy, ...]:
    """Copy all tables into a store that is empty; what was written is read again and compared before it is committed.

    Raises Conflict while runs of the source are driven, or when the target holds anything; then nothing was written.
    """
    with source.snapshot(), target.transaction():
        _require_idle(source)
        _require_empty(target)
        copied = tuple(_copy(source, target, table, on_progress, stopped) for table in TABLES)
        target.finish_copy()
        for one in copied:
            found = _digest(target, one.table, stopped)
            if found != one:
                raise StoreFailed(
                    f"the copy of table {one.table} differs: {one.rows} rows, digest {one.digest[:12]} in the source; "
                    f"{found.rows} rows, digest {found.digest[:12]} in the copy; nothing was kept",
                    suggestions=("try again; if it happens again, report it",),
                )
    return copied


def _require_idle(source: CopyConnection) -> None:
    driven = source.rows("select_driven", {"now": source.now()})
    if driven:
        run, pid, host = driven[0]["id"], driven[0]["driver_pid"], driven[0]["driver_host"]
        raise Conflict(
            f"run {run} is in progress (process {pid} on {host}): what it writes meanwhile would be lost",
            suggestions=("stop servers and workers first, and resume their runs in the new store",),
        )


def _require_empty(target: CopyConnection) -> None:
    for table in TABLES:
        if next(_pages(target, table), None):
            raise Conflict(
                f"the store to copy into is not empty: its table {table} has rows",
                suggestions=("name an empty database, or a folder without a store",),
            )


def _copy(
    source: CopyConnection, target: CopyConnection, table: str, on_progress: OnProgress, stopped: Callable[[], bool]
) -> TableCopy:
    columns = sorted(target.columns(table))
    if columns != sorted(source.columns(table)):
        raise StoreFailed(f"the table {table} has other columns in the two stores", suggestions=("upgrade both",))
    total = source.statement(f"SELECT COUNT(*) FROM {table}")[0][0]  # noqa: S608 - names of our own
    done, digest = 0, hashlib.sha256()
    for page in _pages(source, table):
        _require_going_on(stopped)
        try:
            _insert(target, table, columns, page)
        except MusterError as error:
            raise StoreFailed(
                f"table {table} cannot be copied: {error.message}", suggestions=error.suggestions
            ) from error
        for row in page:
            digest.update(_line(row))
        done += len(page)
        on_progress(table, done, total)
    return TableCopy(table, done, digest.hexdigest())


def _insert(target: CopyConnection, table: str, columns: Sequence[str], page: Sequence[TableRow]) -> None:
    row = f"({', '.join([target.sign] * len(columns))})"
    text = f"{target.insert(table, columns)} VALUES {', '.join([row] * len(page))}"
    target.statement(text, [value for values in page for value in values])


def _digest(database: CopyConnection, table: str, stopped: Callable[[], bool]) -> TableCopy:
    count, digest = 0, hashlib.sha256()
    for page in _pages(database, table):
        _require_going_on(stopped)
        for row in page:
            digest.update(_line(row))
        count += len(page)
    return TableCopy(table, count, digest.hexdigest())


def _line(row: TableRow) -> bytes:
    return typed.encode(row) + b"\n"


def _require_going_on(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise Interrupted("the copy was stopped; nothing of it was kept")


def _pages(database: CopyConnection, table: str) -> Iterator[list[TableRow]]:
    """Yield the rows of a table in the order of its keys, without what says what processes are doing just now."""
    columns, keys = sorted(database.columns(table)), TABLES[table]
    limit = FEW_ROWS.get(table, PAGE_ROWS)
    order, places = ", ".join(keys), [columns.index(key) for key in keys]
    head = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608 - names of our own
    tail = f"ORDER BY {order} LIMIT {limit}"
    after = f"WHERE ({order}) > ({', '.join([database.sign] * len(keys))})"
    page = database.statement(f"{head} {tail}")
    while page:
        kept = [tuple(row) for row in page if table != "traits" or not str(row[places[0]]).startswith(_KEPT_BACK)]
        if kept:
            yield kept
        page = database.statement(f"{head} {after} {tail}", [page[-1][place] for place in places])
