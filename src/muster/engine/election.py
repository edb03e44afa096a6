"""Which process of a store does what is done once for all of them, such as the sweep for dead drivers.

A registration among the workers is a lease: it counts as long as it is fresh, and as nobody sees its process dead. Of
all that count the first does the work. Two that take themselves for the first for a moment do no harm.
"""

from collections.abc import Callable, Sequence

from muster.domain.run import Driver
from muster.engine.base.clock import Clock
from muster.store.base import PresentWorker

FRESH_SECONDS = 11.0  # for which a registration counts here: seen in time, and shorter than a lease of a run


class Election:
    """What this process knows of the others of its store; alone until it has met them."""

    def __init__(
        self, driver: Driver, clock: Clock, *, sees: Callable[[Driver], bool], is_gone: Callable[[Driver], bool]
    ) -> None:
        self._driver, self._clock = driver, clock
        self._sees, self._is_gone = sees, is_gone
        self._peers: Sequence[PresentWorker] = ()
        self._known_dead: frozenset[Driver] = frozenset()

    def meet(self, peers: Sequence[PresentWorker]) -> None:
        """Take note of all that are registered, as it was when this process registered itself."""
        self._peers = peers

    def is_first(self, queues: frozenset[str] = frozenset()) -> bool:
        """Return whether this process does the work of those that take runs of all these queues.

        One that is not registered does it only where nobody is.
        """
        able = [peer.driver for peer in self._fresh() if peer.queues >= queues and not self._is_gone(peer.driver)]
        return not able or min(able, key=_rank) == self._driver

    def has_lost_neighbor(self) -> bool:
        """Return whether a process of this machine has died; tells it once, to the first that is left there.

        From elsewhere it is seen only when leases end.
        """
        here = [peer.driver for peer in self._fresh() if peer.driver != self._driver and self._sees(peer.driver)]
        dead = frozenset(driver for driver in here if self._is_gone(driver))
        news, self._known_dead = dead - self._known_dead, dead
        return bool(news) and all(driver in dead or _rank(driver) > _rank(self._driver) for driver in here)

    def _fresh(self) -> list[PresentWorker]:
        since = self._clock.now() - FRESH_SECONDS
        return [peer for peer in self._peers if peer.seen_at >= since]


def _rank(driver: Driver) -> tuple[str, str, int]:
    """Return by what the processes of a store are put in order."""
    return driver.host, driver.started, driver.pid
