"""The named queries of the `.sql` files, spelled for one database, and the connections that run them.

A query for many rows names the columns of its row of VALUES in a common table expression: SQLite takes no column names
behind `AS v`, and the names that it makes up are not those of PostgreSQL. `FOR UPDATE` at the end of a query is left
out for SQLite, where whoever writes has the whole file for itself. `-- as NAME, where CONDITION` stands for another
query of the same file with one more condition, by which the database finds an index.
"""

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple, Protocol, TypeVar

from muster.domain.errors import MusterError, StoreFailed

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_AS = re.compile(r"-- as (\w+), where (.+)")
_PARAMETER = re.compile(r"(?<![:\w]):(\w+)")
_FOR_UPDATE = re.compile(r"\s+FOR UPDATE$")

SQLITE, POSTGRES = "sqlite", "postgres"
KEPT_TEXTS = 1_000  # of queries for many rows, a few kilobytes each: there are as many as numbers of rows


@cache
def queries() -> Mapping[str, str]:
    """Load every named query, spelled for SQLite."""
    return {name: for_sqlite(text) for name, text in _written(SQLITE).items()}


@dataclass(frozen=True, slots=True)
class NumberedQuery:
    """A query as PostgreSQL takes it: parameters are `$1`, `$2` …, by the order of their names."""

    text: bytes
    names: tuple[str, ...]

    def values(self, parameters: "Parameters") -> list[Any]:
        """Return the values of its parameters in their order."""
        return [parameters[name] for name in self.names]


@cache
def numbered_queries() -> Mapping[str, NumberedQuery]:
    """Load every named query, spelled for PostgreSQL."""
    return {name: for_postgres(text) for name, text in _written(POSTGRES).items()}


@cache
def _written(database: str) -> Mapping[str, str]:
    """Load every named query as it is written: those of all databases, and those of one alone."""
    folder = resources.files("muster.store").joinpath("sql")
    found: dict[str, str] = {}
    for file in sorted(_files_in(folder) + _files_in(folder.joinpath(database)), key=lambda file: file.name):
        parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"{file.name} names the query {name} a second time")
            found[name] = _narrowed(text.strip(), found)
    return found


def _narrowed(text: str, others: Mapping[str, str]) -> str:
    """Return a query that is spelled as another one with a condition."""
    match = _AS.fullmatch(text)
    return others[match[1]].replace("WHERE ", f"WHERE {match[2]} AND ", 1) if match else text


def _files_in(folder: Traversable) -> list[Traversable]:
    return [file for file in folder.iterdir() if file.is_file()] if folder.is_dir() else []


@dataclass(frozen=True, slots=True)
class Rows:
    """A query whose one row of VALUES can be repeated, so that many rows take one statement."""

    before: str
    row: str  # parameters as "?"
    after: str
    names: tuple[str, ...]  # in the order of the parameters

    def text(self, count: int) -> str:
        """Spell the query for so many rows."""
        return f"{self.before}{', '.join([self.row] * count)}{self.after}"


@cache
def rows_of(name: str, database: str = SQLITE) -> Rows:
    """Take a named query apart at its row of VALUES, which must hold all its parameters."""
    written = _written(database)[name]
    text = written if database == POSTGRES else for_sqlite(written)
    start = text.index("(", text.index("VALUES"))
    end = _closing(text, start) + 1
    before, row, after = text[:start], text[start:end], text[end:]
    if _PARAMETER.search(before) or _PARAMETER.search(after):
        raise ValueError(f"the query {name} has parameters outside of its row of VALUES")
    return Rows(before, _PARAMETER.sub("?", row), after, tuple(_PARAMETER.findall(row)))


@lru_cache(KEPT_TEXTS)
def numbered_rows(name: str, count: int) -> NumberedQuery:
    """Spell a query for so many rows as PostgreSQL takes it."""
    rows = rows_of(name, POSTGRES)
    numbers, parts = itertools.count(1), rows.row.split("?")
    spelled = (parts[0] + "".join(f"${next(numbers)}{part}" for part in parts[1:]) for _ in range(count))
    return NumberedQuery(f"{rows.before}{', '.join(spelled)}{rows.after}".encode(), rows.names)


def _closing(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError("a bracket is not closed")


def for_sqlite(query: str) -> str:
    """Spell a query the way SQLite takes it: `:name` as it is, and no locks on rows."""
    return _FOR_UPDATE.sub("", query)


def for_postgres(query: str) -> NumberedQuery:
    """Spell a query the way PostgreSQL takes it: a parameter that is named twice has one number."""
    names = tuple(dict.fromkeys(_PARAMETER.findall(query)))
    return NumberedQuery(_PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", query).encode(), names)


@cache
def migrations(database: str) -> tuple[tuple[int, str, str], ...]:
    """Load the numbered migrations of a database: number, name, statements."""
    files = sorted(_migration_files(database), key=lambda file: file.name)
    return tuple((int(file.name[:4]), file.name[5:-4], file.read_text(encoding="utf-8")) for file in files)


@cache
def newest_version(database: str) -> int:
    """Return the number of the last migration, without reading any: most stores need none."""
    return max(int(file.name[:4]) for file in _migration_files(database))


def _migration_files(database: str) -> list[Traversable]:
    folder = resources.files("muster.store").joinpath("migrations", database)
    return [file for file in folder.iterdir() if file.name.endswith(".sql")]


@cache
def schema(database: str) -> str:
    """Load what all migrations of a database make of an empty one."""
    return resources.files("muster.store").joinpath("migrations", f"{database}.sql").read_text(encoding="utf-8")


Row = Mapping[str, Any]
Parameters = Mapping[str, Any]
NamedRow = TypeVar("NamedRow", bound=NamedTuple)
T = TypeVar("T")


class Locked(StoreFailed):
    """Another process has the lock that a write needs, the server is away, or the disk full; nothing was written."""

    pause = 0.0  # seconds after which it is worth trying again
    refuses_new = False  # what begins something new is refused meanwhile, and only the rest waits


class CommitUnknown(Exception):
    """The connection was lost while a transaction was committed.

    `confirm` returns whether it is there; it raises Locked while nobody can tell.
    """

    def __init__(self, confirm: Callable[[], bool]) -> None:
        super().__init__("the outcome of a commit is unknown")
        self.confirm = confirm


def upgraded(version: int, newest: int) -> StoreFailed:
    """Make the error for tables that a newer program has changed under this one; clients of a server read it too."""
    return StoreFailed(
        f"the store was upgraded to version {version} while it was open, and this program supports versions up to "
        f"{newest}: it must be stopped, and started again with the new version of muster",
    )


class Locks(NamedTuple):
    """What a write keeps other writers from until its transaction ends.

    They are taken in this order, and each kind in the order of its ids, so that no two writers wait for each other.
    """

    names: tuple[str, ...] = ()  # of what has no row of its own, such as the address of signals
    runs: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()  # budgets


NO_LOCKS = Locks()


def merge_locks(all_locks: Iterable[Locks]) -> Locks:
    """Return several locks as one, without repetitions and in the order in which they are taken."""
    names: set[str] = set()
    runs: set[str] = set()
    levels: set[str] = set()
    for locks in all_locks:
        names.update(locks.names)
        runs.update(locks.runs)
        levels.update(locks.levels)
    return Locks(tuple(sorted(names)), tuple(sorted(runs)), tuple(sorted(levels)))


Otherwise = Callable[[], MusterError]  # the error when a statement has changed too few rows


class DatabaseConnection(Protocol):
    """One connection, used by one thread; `query` is always the name of a query in `sql/`."""

    @property
    def changes(self) -> int:
        """Return how many rows were changed since it was opened."""

    def rows(self, query: str, parameters: Parameters) -> Sequence[Row]:
        """Run a query and return its rows."""

    def named_rows(self, query: str, parameters: Parameters, row: type[NamedRow]) -> Sequence[NamedRow]:
        """Run a query whose columns are the fields of `row`, where there are many: mappings are read slowly."""

    def rows_of_many(self, query: str, parameters: Sequence[Parameters]) -> Sequence[Row]:
        """Run a query for all sets of parameters at once and return its rows, in any order."""

    def execute(self, query: str, parameters: Parameters) -> int:
        """Run a query and return how many rows it changed."""

    def execute_many(self, query: str, parameters: Iterable[Parameters]) -> int:
        """Run a query for each set of parameters and return how many rows were changed in all."""

    def send_many(self, query: str, parameters: Iterable[Parameters], otherwise: Otherwise | None = None) -> None:
        """Run a query for each set of parameters, at the latest when something else is waited for.

        Raises `otherwise`, then, when it has not changed one row for each.
        """

    def flush(self) -> None:
        """Wait for everything that was sent; raises the first error."""

    def transaction(self) -> AbstractContextManager[None]:
        """Begin for writing, commit at the end, roll back on an error."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Read everything inside as it is at one moment, in one transaction."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo only what happens inside when it fails."""

    def lock(self, locks: Callable[[], Locks]) -> None:
        """Take locks until the transaction ends; a database that lets one writer in at a time needs none."""

    def close(self) -> None:
        """Let go of the database."""


class DatabaseReader(ABC):
    """Reads for the event loop, which stays free meanwhile: how is the database's business.

    Called by the parts of a store. A read that is canceled has changed nothing.
    """

    @abstractmethod
    async def read(self, work: Callable[[DatabaseConnection], T]) -> T:
        """Run some queries that belong together."""

    async def rows(self, query: str, parameters: Parameters) -> Sequence[Row]:
        """Run a query and return its rows."""
        return await self.read(lambda database: database.rows(query, parameters))

    async def named_rows(self, query: str, parameters: Parameters, row: type[NamedRow]) -> Sequence[NamedRow]:
        """Run a query whose columns are the fields of `row`."""
        return await self.read(lambda database: database.named_rows(query, parameters, row))

    async def rows_of_many(self, query: str, parameters: Sequence[Parameters]) -> Sequence[Row]:
        """Run a query for all sets of parameters at once and return its rows, in any order."""
        return await self.read(lambda database: database.rows_of_many(query, parameters))


def first(rows: Sequence[Row]) -> Row | None:
    """Return the first row, if there is one."""
    return rows[0] if rows else None
