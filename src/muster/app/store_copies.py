"""A whole store copied into another: from a file to a database that several machines share, or back."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path

from muster.app.stores import load_postgres
from muster.domain.errors import NotFound
from muster.settings import DATABASE, is_database_url, show_database
from muster.store.copying import CopyConnection, TableCopy, copy_tables
from muster.store.sqlite import open_file

OnCopied = Callable[[str, int, int], None]  # table, rows copied, rows in all


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCopy:
    """What was copied, from where to where; passwords are left out."""

    source: str
    target: str
    tables: Sequence[TableCopy]

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return sum(table.rows for table in self.tables)


async def copy_store(
    source: str | Path, target: str | Path, *, on_progress: OnCopied = lambda table, done, total: None
) -> StoreCopy:
    """Copy a store into an empty one, verified by counts and digests; canceled or failed, nothing of it is kept.

    Each is the folder of a store, its file, or the address of a PostgreSQL database.
    """
    stop = threading.Event()

    def work() -> StoreCopy:
        with _connected(source, create=False) as from_, _connected(target, create=True) as to:
            tables = copy_tables(from_, to, now=time.time(), on_progress=on_progress, stopped=stop.is_set)
        return StoreCopy(source=_shown(source), target=_shown(target), tables=tables)

    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait({working})
        working.exception()
        raise


def _connected(place: str | Path, *, create: bool) -> "AbstractContextManager[CopyConnection]":
    if is_database_url(str(place)):
        return closing(load_postgres().open_database(str(place)))
    file = _file(place)
    if not create and not file.exists():
        raise NotFound(f"no store found at {file}", suggestions=("name the folder of the store, such as .muster",))
    return closing(open_file(file))


def _file(place: str | Path) -> Path:
    """Return the file of a store whose folder, or file, is named."""
    path = Path(place)
    return path if path.suffix == Path(DATABASE).suffix and not path.is_dir() else path / DATABASE


def _shown(place: str | Path) -> str:
    return show_database(str(place)) if is_database_url(str(place)) else str(_file(place))
