"""Events in the database: numbered from the counter in the run's row, inside somebody's transaction."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from muster.domain.errors import NotFound
from muster.domain.ids import RunId
from muster.store.codec import Codec
from muster.store.queries import DatabaseConnection, first


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
        last = {}
        for run in sorted({*self._events, *self._tallies}):
            events = self._events.get(run, [])
            last[run] = count(self._database, run, self._tallies[run], len(events))
            self._insert(events, last[run] - len(events))
        return last

    def _insert(self, events: Iterable[NewEvent], after: int) -> None:
        self._database.execute_many(
            "insert_event",
            [
                {
                    "run_id": event.run,
                    "seq": after + number,
                    "kind": event.kind,
                    "at": event.at,
                    "data": self._codec.text(event.data),
                }
                for number, event in enumerate(events, 1)
            ],
        )


def count(database: DatabaseConnection, run: RunId, tally: CounterChange, events: int) -> int:
    """Change a run's counters and return the number of its last event."""
    changes = {field.name: getattr(tally, field.name) for field in fields(tally)}
    row = first(database.rows("count_run", {"id": run, "events": events, **changes}))
    if row is None:
        raise NotFound(f"run {run} not found")
    return int(row["last_seq"])


def write_event(database: DatabaseConnection, codec: Codec, event: NewEvent) -> int:
    """Write a single event and return its number."""
    buffer = EventBuffer(database, codec)
    buffer.add(event)
    return buffer.write()[event.run]
