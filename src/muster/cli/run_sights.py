"""What there is to see of a suite run while it goes on: cases, and how they ended so far."""

from collections import Counter
from typing import TYPE_CHECKING

from muster.cli.fresh_events import FreshEvents
from muster.cli.sights import Sight, run_sight
from muster.domain.batch import Batch
from muster.domain.event import Event
from muster.domain.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muster.app import Muster


class SuiteSights:
    """Looks at a suite run."""

    def __init__(self, muster: "Muster") -> None:
        self._events = FreshEvents(muster)
        self._done = 0
        self._total: int | None = None
        self._counts: Counter[str] = Counter()

    async def look(self, run: Run, on_wire: int, batches: "Sequence[Batch]" = ()) -> Sight:
        """Give what is to be seen."""
        async for event in self._events.of(run):
            self._take(event)
        usual = run_sight(run, on_wire, batches)
        if self._total is None:
            return usual
        ended = ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in self._counts.items())
        return Sight(
            title=usual.title,
            words=", ".join(part for part in (ended, usual.words) if part),
            done=self._done,
            total=self._total,
            unit="cases",
            waits=usual.waits,
            since=usual.since,
        )

    def _take(self, event: Event) -> None:
        if event.kind == "suite.started":
            self._total = int(event.data["units"])
        elif event.kind == "suite.cases":
            self._done, self._total = int(event.data["done"]), int(event.data["total"])
            self._counts = Counter(event.data["counts"])
