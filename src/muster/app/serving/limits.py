"""How much may be started and done at the same time: decided from values, with a clock that a test can stop."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

from muster.domain.errors import LimitReached
from muster.domain.run import Run
from muster.engine.clock import Clock

BATTLES = frozenset({"battle", "scale"})  # workloads that are counted as battles
WINDOW = 60.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCaps:
    """How many runs may be driven at the same time: of one client address, and battles; the others stay queued."""

    per_client: int
    battles: int

    def admits(self, run: Run, driven: Collection[Run]) -> bool:
        """Return whether a run may be driven beside those that are."""
        if run.workload in BATTLES and sum(other.workload in BATTLES for other in driven) >= self.battles:
            return False
        if run.request is None:
            return True
        client = run.request.client
        return sum(other.request is not None and other.request.client == client for other in driven) < self.per_client


class StartRate:
    """Counts the starts of each client address in the last minute."""

    def __init__(self, clock: Clock, most: int) -> None:
        self._clock, self._most = clock, most
        self._starts: dict[str, deque[float]] = {}

    def admit(self, client: str) -> None:
        """Count a start; raises LimitReached, with the seconds after which another is possible, when it is too many."""
        now = self._clock.monotonic()
        self._forget(now - WINDOW)
        starts = self._starts.setdefault(client, deque())
        if len(starts) >= self._most:
            wait = starts[0] + WINDOW - now
            raise LimitReached(
                f"{self._most} runs were started from {client} in the last minute (starts_per_minute)",
                retry_after=wait,
            )
        starts.append(now)

    def _forget(self, before: float) -> None:
        for client, starts in list(self._starts.items()):
            while starts and starts[0] <= before:
                starts.popleft()
            if not starts:
                del self._starts[client]
