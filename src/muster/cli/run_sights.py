"""What there is to see of a suite run while it goes on: cases times subjects and epochs, and how they ended so far."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from muster.app.suite_values import read_spec
from muster.cli.fresh_events import FreshEvents
from muster.cli.sights import Sight, facts, run_sight
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
        self._cases = 0
        self._counts: Counter[str] = Counter()

    async def look(self, run: Run, on_wire: int, batches: "Sequence[Batch]" = ()) -> Sight:
        """Give what is to be seen."""
        async for event in self._events.of(run):
            self._take(event)
        usual = run_sight(run, on_wire, batches)
        if self._total is None:  # calls are another unit, so nothing is counted before the cases are
            return replace(usual, total=None, done=0)
        ended = ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in self._counts.items())
        return Sight(
            title=usual.title,
            words=", ".join(part for part in (ended, facts(run, on_wire, "calls ")) if part),
            done=self._done,
            total=self._total,
            unit=self._unit(run),
            waits=usual.waits,
            since=usual.since,
        )

    def _unit(self, run: Run) -> str:
        epochs = read_spec(run.spec).epochs
        subjects = self._cases * epochs < (self._total or 0)
        return " × ".join(["cases", *(["subjects"] if subjects else []), *(["epochs"] if epochs > 1 else [])])

    def _take(self, event: Event) -> None:
        if event.kind == "suite.started":
            self._cases, self._total = int(event.data["cases"]), int(event.data["units"])
        elif event.kind == "suite.cases":
            self._done, self._total = int(event.data["done"]), int(event.data["total"])
            self._counts = Counter(event.data.get("ended", event.data["counts"]))  # of the unit that is counted
