"""The events of a run that were not there at the last look."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from muster.domain.event import Event
from muster.domain.run import Run

if TYPE_CHECKING:
    from muster.app import Muster

PAGE = 1000  # events at a time


class FreshEvents:
    """Reads the events of one run, each once; remembers how far it has come."""

    def __init__(self, muster: "Muster") -> None:
        self._muster = muster
        self._seen = 0

    async def of(self, run: Run) -> AsyncIterator[Event]:
        """Give what has come since."""
        while self._seen < run.last_seq:
            events = await self._muster.runs.events(run.id, self._seen, PAGE)
            if not events:
                return
            for event in events:
                yield event
            self._seen = events[-1].seq
