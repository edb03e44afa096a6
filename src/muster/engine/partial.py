"""What an open call has written so far, for whoever watches; overwritten, never an event."""

from muster.agents.base import OnDelta
from muster.domain.ids import RunId
from muster.engine.clock import Clock
from muster.store.base import Events

SECONDS_BETWEEN = 1.0


class Partial:
    """Collects the text of one attempt and stores it at most once a second."""

    def __init__(self, events: Events, run: RunId, key: str, clock: Clock, on_delta: OnDelta | None) -> None:
        self._events, self._run, self._key = events, run, key
        self._clock, self._on_delta = clock, on_delta
        self._parts: list[str] = []
        self._stored_at = clock.monotonic()

    def __call__(self, delta: str) -> None:
        """Take over some text."""
        self._parts.append(delta)
        if self._on_delta is not None:
            self._on_delta(delta)
        now = self._clock.monotonic()
        if now - self._stored_at >= SECONDS_BETWEEN:
            self._stored_at = now
            # Not awaited: a lost partial is no loss, and the writer keeps the order.
            self._events.put_partial(self._run, self._key, "".join(self._parts), self._clock.now())
