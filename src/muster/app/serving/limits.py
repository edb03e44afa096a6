"""How much may be started and done at the same time: decided from values, with a clock that a test can stop."""

from collections import Counter, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from muster.app.kinds import BUILT_IN, kind_of
from muster.domain.run import Run, StartLimit
from muster.engine.base.clock import Clock
from muster.engine.queue.turns import HeldBack

BATTLES = frozenset(kind.workload for kind in BUILT_IN if kind.battles is not None)  # workloads that play battles
WINDOW = 60.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCaps:
    """How many runs may be driven at the same time: of one client address, and battles; the others stay queued.

    A scale test counts as the battles that it plays at the same time, at most as all that there may be. Without a
    number of battles there may be any.
    """

    per_client: int
    battles: int | None = None

    def held(self, driven: Collection[Run], awaited: Run | None) -> HeldBack:
        """Return what has to wait; battles that come after an awaited run wait for it, so that it gets its turn."""
        clients = Counter(run.request.client for run in driven if run.request is not None)
        waits = awaited is not None or (self.battles is not None and self._played(driven) >= self.battles)
        return HeldBack(
            clients=frozenset(client for client, number in clients.items() if number >= self.per_client),
            workloads=BATTLES if waits else frozenset(),
        )

    def fits(self, run: Run, driven: Collection[Run]) -> bool:
        """Return whether the battles of a run may be played beside those of others."""
        return self._places(run) == 0 or self._played(driven) + self._places(run) <= (self.battles or 0)

    def _played(self, driven: Collection[Run]) -> int:
        return sum(self._places(run) for run in driven)

    def _places(self, run: Run) -> int:
        battles = kind_of(run).battles
        return 0 if battles is None or self.battles is None else min(battles(run.spec), self.battles)


class StartRate:
    """Counts the starts of each client address in the last minute, also those that came to nothing.

    It is the count of one process; the store counts the runs that were started at all servers.
    """

    def __init__(self, clock: Clock, most: int) -> None:
        self._clock = clock
        self.limit = StartLimit(most=most, seconds=WINDOW)
        self._starts: dict[str, deque[float]] = {}

    def recall(self, starts: Iterable[tuple[str, float]]) -> None:
        """Count starts of an earlier process: clients, and when by the clock of the store."""
        ago = self._clock.now() - self._clock.monotonic()
        for client, at in starts:
            self._starts.setdefault(client, deque()).append(min(at - ago, self._clock.monotonic()))

    def admit(self, client: str) -> None:
        """Count a start; raises LimitReached, with the seconds after which another is possible, when it is too many."""
        now = self._clock.monotonic()
        self._forget(now - WINDOW)
        starts = self._starts.setdefault(client, deque())
        self.limit.require(client, len(starts), now - starts[0] if starts else 0.0)
        starts.append(now)

    def _forget(self, before: float) -> None:
        for client, starts in list(self._starts.items()):
            while starts and starts[0] <= before:
                starts.popleft()
            if not starts:
                del self._starts[client]
