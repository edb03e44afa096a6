"""A run from a file that `muster runs export` wrote, in a store of its own that is gone afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from muster.domain.run import Run
from muster.reports.cassette import import_run
from muster.store.base import Store
from muster.store.sqlite import open_sqlite


@asynccontextmanager
async def borrow(path: Path) -> AsyncIterator[tuple[Store, Run]]:
    """Open the run of a file; the user's own store is not touched."""
    with TemporaryDirectory(prefix="muster-") as folder:
        store = open_sqlite(Path(folder) / "muster.db")
        try:
            yield store, await import_run(store, path)
        finally:
            await store.housekeeping.close()
