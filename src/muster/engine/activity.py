"""Whether a run is at work: its clock stops while every open call of it only waits."""

from collections.abc import Iterator
from contextlib import contextmanager

from muster.engine.clock import Stopwatch


class Activity:
    """Counts open calls and those of them that wait for a place, for money or for their next attempt."""

    def __init__(self, stopwatch: Stopwatch) -> None:
        self.stopwatch = stopwatch
        self._open = self._waiting = self._parked = 0

    def open_call(self) -> None:
        """Count a call that is under way."""
        self._open += 1
        self._update()

    def close_call(self) -> None:
        """Count a call that is over."""
        self._open -= 1
        self._update()

    def begin_wait(self) -> None:
        """Count an open call that only waits from now on."""
        self._waiting += 1
        self._update()

    def end_wait(self) -> None:
        """Count an open call that is at work again."""
        self._waiting -= 1
        self._update()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let an open call wait without using up the run's time."""
        self.begin_wait()
        try:
            yield
        finally:
            self.end_wait()

    def begin_park(self) -> None:
        """Count an open call that waits for a batch from now on."""
        self._parked += 1
        self.begin_wait()

    def end_park(self) -> None:
        """Count an open call that came back from a batch."""
        self._parked -= 1
        self.end_wait()

    @property
    def open(self) -> int:
        """How many calls are under way."""
        return self._open

    @property
    def all_parked(self) -> bool:
        """Whether every call that is under way waits in a batch."""
        return self._parked > 0 and self._parked >= self._open

    def _update(self) -> None:
        if self._waiting and self._waiting >= self._open:
            self.stopwatch.pause()
        else:
            self.stopwatch.resume()
