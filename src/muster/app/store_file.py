"""The store as a file: its size and condition, its free space, and what keeps it from being written. `Muster.store`."""

from collections.abc import Mapping

from muster.app.backend import Backend
from muster.domain.batch import UNDER_WAY
from muster.domain.canonical import Json

MOST_BATCHES = 1000


class StoreFile:
    """The store of an open Muster."""

    def __init__(self, backend: Backend) -> None:
        self._store, self._engine, self._clock = backend.store, backend.engine, backend.clock

    async def info(self) -> Mapping[str, Json]:
        """Return where the store is, how large, whether it is sound, and how many batches are under way."""
        under_way = len(await self._store.batches.select(UNDER_WAY, limit=MOST_BATCHES))
        return {**await self._store.maintenance.info(), "batches_under_way": under_way}

    async def vacuum(self) -> None:
        """Give the free space of the store back to the disk; refused while runs are driven."""
        await self._engine.sweep()
        await self._store.commands.finish_deletions()
        await self._store.maintenance.vacuum(self._engine.driver, self._clock.now())

    async def sweep(self) -> None:
        """Mark the runs of dead drivers as interrupted."""
        await self._engine.sweep()

    async def shortage(self) -> str | None:
        """Return why the store cannot be written to; None when it can."""
        return await self._store.maintenance.shortage()

    def stop_waiting(self) -> None:
        """Wait no longer for a lock that another process holds."""
        self._store.maintenance.give_up()
