"""The time of the server: machines whose clocks differ agree on it, and so on when a lease ends."""

import time
from collections.abc import Callable

from muster.store.queries import DatabaseConnection

STALE_SECONDS = 7.0  # after which the server is asked again; longer than between two sweeps
OLD_SECONDS = 3.0  # after which it is asked along with what is read together anyway
MAX_ANSWER = 0.5  # seconds: the time in a later answer is too old to be of use, unless it is the first


class ServerTime:
    """Tells the time of the server from the last answer and what passed here since. Implements `StoreTime`.

    What passed is taken from the monotonic clock, so that nobody who sets the clock of this machine moves it.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ahead: float | None = None  # of the monotonic clock
        self._asked_at = 0.0

    def now(self) -> float:
        """Return the seconds since 1970; by the clock of this machine until the server has answered."""
        return time.time() if self._ahead is None else self._monotonic() + self._ahead

    @property
    def is_stale(self) -> bool:
        """Return whether the server should be asked again."""
        return self._ahead is None or self._monotonic() - self._asked_at > STALE_SECONDS

    @property
    def is_old(self) -> bool:
        """Return whether to ask the server again where that takes no transaction of its own."""
        return self._ahead is None or self._monotonic() - self._asked_at > OLD_SECONDS

    def ask(self, database: DatabaseConnection) -> None:
        """Ask the server; its answer is taken as that of the middle of the time that it took."""
        before = self._monotonic()
        at = float(database.rows("select_time", {})[0]["now"])
        after = self._monotonic()
        if self._ahead is None or after - before <= MAX_ANSWER:
            self._ahead = at - (before + after) / 2
        self._asked_at = after
