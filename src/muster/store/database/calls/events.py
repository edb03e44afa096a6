"""Events in the database: numbered from the counter in the run's row, inside somebody's transaction."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muster.domain.errors import NotFound
from muster.domain.ids import RunId
from muster.store.codec import Codec
from muster.store.queries import DatabaseConnection, Parameters


@dataclass(slots=True, kw_only=True)
class CounterChange:
    """What changes in the counters of one run."""

    total: int = 0
    done: int = 0
    failed: int = 0
    uncertain: int = 0
    reused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event that has no number yet."""

    run: RunId
    kind: str
    data: Mapping[str, object]
    at: float


class EventBuffer:
    """Collects the events and counter changes of a group and writes them in one go."""

    def __init__(self, database: DatabaseConnection, codec: Codec) -> None:
        self._database = database
        self._codec = codec
        self._events: defaultdict[RunId, list[NewEvent]] = defaultdict(list)
        self._tallies: defaultdict[RunId, CounterChange] = defaultdict(CounterChange)

    def tally(self, run: RunId) -> CounterChange:
        """Return the counters of a run, to be changed."""
        return self._tallies[run]

    def add(self, event: NewEvent) -> None:
        """Add an event."""
        self._events[event.run].append(event)

    def write(self) -> dict[RunId, int]:
        """Write it all and return the last number of each run."""
        runs = sorted({*self._events, *self._tallies})
        last = _count(self._database, {run: (self._tallies[run], len(self._events.get(run, ()))) for run in runs})
        self._database.send_many("insert_event", [row for run in runs for row in self._rows(run, last[run])])
        return last

    def _rows(self, run: RunId, last: int) -> Iterable[Parameters]:
        events = self._events.get(run, [])
        for seq, event in enumerate(events, last - len(events) + 1):
            data = self._codec.text(event.data)
            yield {"run_id": run, "seq": seq, "kind": event.kind, "at": event.at, "data": data}


def _count(database: DatabaseConnection, changes: Mapping[RunId, tuple[CounterChange, int]]) -> dict[RunId, int]:
    """Change the counters of runs that have so many new events, and return the number of the last event of each."""
    rows = [
        {
            "run_id": run,
            "events": events,
            "total": tally.total,
            "done": tally.done,
            "failed": tally.failed,
            "uncertain": tally.uncertain,
            "reused": tally.reused,
        }
        for run, (tally, events) in changes.items()
    ]
    last = {row["id"]: int(row["last_seq"]) for row in database.rows_of_many("count_runs", rows)}
    for run in changes:
        if run not in last:
            raise NotFound(f"run {run} not found")
    return last


def write_event(database: DatabaseConnection, codec: Codec, event: NewEvent) -> int:
    """Write a single event and return its number."""
    buffer = EventBuffer(database, codec)
    buffer.add(event)
    return buffer.write()[event.run]
