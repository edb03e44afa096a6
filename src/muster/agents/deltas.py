"""Text as it is written."""

from collections.abc import Callable

from muster.agents.base import OnDelta
from muster.domain.call import Timings


class Deltas:
    """Hands over text as it comes, or as a whole at the end, and remembers when the first came."""

    def __init__(self, clock: Callable[[], float], on_delta: OnDelta | None) -> None:
        self._clock, self._on_delta = clock, on_delta
        self._began = clock()
        self._first: float | None = None

    def add(self, text: str) -> None:
        """Hand over some text."""
        if not text:
            return
        if self._first is None:
            self._first = self._clock() - self._began
        if self._on_delta is not None:
            self._on_delta(text)

    def finish(self, text: str) -> None:
        """Hand over the whole text if none of it was handed over yet."""
        if self._first is None:
            self.add(text)

    def timings(self) -> Timings:
        """Say how long it took until now."""
        return Timings(first_token=self._first, wire=self._clock() - self._began)
