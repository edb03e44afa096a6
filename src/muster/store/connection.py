"""What the shared parts of the store need of a database: named queries in a transaction."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from muster.domain.errors import StoreFailed

Row = Mapping[str, Any]
Parameters = Mapping[str, Any]


class Locked(StoreFailed):
    """Another process holds the lock that a write needs; nothing was written."""


class Connection(Protocol):
    """One connection, used by one thread; `query` is always the name of a query in `sql/`."""

    @property
    def changes(self) -> int:
        """Say how many rows were changed since it was opened."""

    def rows(self, query: str, parameters: Parameters) -> Sequence[Row]:
        """Run a query and give its rows."""

    def tuples(self, query: str, parameters: Parameters) -> Sequence[tuple[Any, ...]]:
        """Run a query and give its rows as tuples, where there are many: names are looked up slowly."""

    def rows_of_many(self, query: str, parameters: Sequence[Parameters]) -> Sequence[Row]:
        """Run a query for all sets of parameters at once and give its rows, in any order."""

    def execute(self, query: str, parameters: Parameters) -> int:
        """Run a query and say how many rows it changed."""

    def execute_many(self, query: str, parameters: Iterable[Parameters]) -> int:
        """Run a query for each set of parameters and say how many rows were changed in all."""

    def transaction(self) -> AbstractContextManager[None]:
        """Begin for writing, commit at the end, roll back on an error."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo only what happens inside when it fails."""

    def close(self) -> None:
        """Let go of the database."""


def first(rows: Sequence[Row]) -> Row | None:
    """Give the first row, if there is one."""
    return rows[0] if rows else None
