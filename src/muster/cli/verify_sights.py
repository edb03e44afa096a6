"""What there is to see of a verification while it goes on: which wave it is at, and how many calls are done."""

from typing import TYPE_CHECKING

from muster.cli.fresh_events import FreshEvents
from muster.cli.sights import Sight, run_sight
from muster.domain.batch import Batch
from muster.domain.event import Event
from muster.domain.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muster.app import Muster


class WavesSights:
    """Looks at a verification."""

    def __init__(self, muster: "Muster") -> None:
        self._events = FreshEvents(muster)
        self._waves: list[int] = []
        self._begun: dict[int, int] = {}  # calls by wave
        self._words = ""

    async def look(self, run: Run, on_wire: int, batches: "Sequence[Batch]" = ()) -> Sight:
        """Give what is to be seen."""
        async for event in self._events.of(run):
            self._take(event)
        usual = run_sight(run, on_wire, batches)
        return Sight(
            title=usual.title,
            words=", ".join(part for part in (self._words, usual.words) if part),
            done=usual.done,
            total=max(usual.total or 0, sum(self._begun.values())),
            waits=usual.waits,
            since=usual.since,
        )

    def _take(self, event: Event) -> None:
        data = event.data
        if event.kind == "waves.started":
            self._waves = list(data["waves"])
        elif event.kind == "wave.started":
            self._begun[int(data["wave"])] = int(data["calls"])
            agents = len(data["agents"])
            self._words = f"{self._named(data['wave'])}, {'1 agent' if agents == 1 else f'{agents} agents'}"
        elif event.kind == "wave.ended":
            self._words = f"{self._named(data['wave'])} {'passed' if data['passed'] else 'did not pass'}"

    def _named(self, wave: int) -> str:
        """Name a wave; by how many there are only where that is what the numbers say."""
        number = len(self._waves)
        return f"wave {wave} of {number}" if self._waves == list(range(1, number + 1)) else f"wave {wave}"
