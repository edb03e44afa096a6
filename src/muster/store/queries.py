"""The named queries of the `.sql` files, spelled for one database.

A query for many rows names the columns of its row of VALUES in a common table expression: SQLite takes no column names
behind `AS v`, and the names that it makes up are not those of PostgreSQL.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, Protocol, TypeVar

from muster.domain.errors import StoreFailed

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):(\w+)")


@cache
def queries() -> Mapping[str, str]:
    """Load every named query, parameters written as `:name`, the way SQLite takes them."""
    found: dict[str, str] = {}
    for file in sorted(resources.files("muster.store").joinpath("sql").iterdir(), key=lambda file: file.name):
        parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"{file.name} names the query {name} a second time")
            found[name] = text.strip()
    return found


@dataclass(frozen=True, slots=True)
class Rows:
    """A query whose one row of VALUES can be repeated, so that many rows take one statement."""

    before: str
    row: str  # parameters as "?"
    after: str
    names: tuple[str, ...]  # in the order of the question marks

    def text(self, count: int) -> str:
        """Spell the query for so many rows."""
        return f"{self.before}{', '.join([self.row] * count)}{self.after}"


@cache
def rows_of(name: str) -> Rows:
    """Take a named query apart at its row of VALUES, which must hold all its parameters."""
    text = queries()[name]
    start = text.index("(", text.index("VALUES"))
    end = _closing(text, start) + 1
    before, row, after = text[:start], text[start:end], text[end:]
    if _PARAMETER.search(before) or _PARAMETER.search(after):
        raise ValueError(f"the query {name} has parameters outside of its row of VALUES")
    return Rows(before, _PARAMETER.sub("?", row), after, tuple(_PARAMETER.findall(row)))


def _closing(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError("a bracket is not closed")


def for_postgres(query: str) -> str:
    """Spell a query the way psycopg takes it: `%(name)s`."""
    return _PARAMETER.sub(r"%(\1)s", query.replace("%", "%%"))


def migrations(database: str) -> list[tuple[int, str, str]]:
    """Load the numbered migrations of a database: number, name, statements."""
    folder = resources.files("muster.store").joinpath("migrations", database)
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [(int(file.name[:4]), file.name[5:-4], file.read_text(encoding="utf-8")) for file in files]


Row = Mapping[str, Any]
Parameters = Mapping[str, Any]
NamedRow = TypeVar("NamedRow", bound=NamedTuple)


class Locked(StoreFailed):
    """Another process holds the lock that a write needs; nothing was written."""


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

    def transaction(self) -> AbstractContextManager[None]:
        """Begin for writing, commit at the end, roll back on an error."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo only what happens inside when it fails."""

    def close(self) -> None:
        """Let go of the database."""


def first(rows: Sequence[Row]) -> Row | None:
    """Return the first row, if there is one."""
    return rows[0] if rows else None
