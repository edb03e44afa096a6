"""The batches that the runs driven by this process wait for."""

import asyncio
from typing import TYPE_CHECKING

from muster.domain.batch import Batch

if TYPE_CHECKING:
    from muster.app import Muster

LOOK_SECONDS = 0.5


class Awaited:
    """Looks them up now and then, and remembers them in between."""

    def __init__(self, muster: "Muster") -> None:
        self._muster = muster
        self._next = 0.0
        self.batches: tuple[Batch, ...] = ()

    @property
    def submitted(self) -> int:
        """How many of them the provider has for sure."""
        return sum(batch.provider_id is not None for batch in self.batches)

    async def look(self) -> tuple[Batch, ...]:
        """Give the batches under way with calls of runs that are driven here, children too."""
        now = asyncio.get_running_loop().time()
        if now >= self._next:
            self._next = now + LOOK_SECONDS
            self.batches = tuple(await self._muster.batches.awaited_here())
        return self.batches
