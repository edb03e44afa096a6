"""What everything shares that takes a batch from one state to the next: services, patience, asking again."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from muster.agents.base import Directory
from muster.domain.agent import Timeouts
from muster.domain.errors import BatchLost, TryLater, UnknownModel, WireError
from muster.domain.observation import Observer
from muster.domain.patience import Patience as Patience  # who waits for batches takes it from here
from muster.domain.run import Driver
from muster.engine.base.clock import Clock
from muster.engine.base.killpoints import KillPoints
from muster.store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchServices:
    """What the batches of one process share."""

    store: Store
    directory: Directory
    clock: Clock
    random: Random
    kill: KillPoints
    driver: Driver
    is_gone: Callable[[Driver], bool]  # whether a driver is certainly dead
    patience: Patience
    timeouts: Timeouts  # of questions; for what goes up or comes down only silence counts
    create_timeouts: Timeouts
    observe: Observer | None = None


T = TypeVar("T")


class NotThere(WireError):
    """The provider answered, but what was asked for is not there yet."""


class PollDelays:
    """Delays between questions: from short to long, with chance in them so that many processes do not ask in step."""

    def __init__(self, patience: Patience, random: Random) -> None:
        self._patience, self._random = patience, random
        self._next = patience.poll_first

    def delay(self, asked: float | None = None) -> float:
        """Return the next delay; a provider's wish to wait longer is honoured up to the longest delay."""
        longest = self._patience.poll_longest
        delay = min(longest, max(self._next, asked or 0.0)) * self._random.uniform(0.8, 1.2)
        self._next = min(longest, self._next * 1.5)
        return delay


OnTrouble = Callable[[WireError], Awaitable[None]]


class Asker:
    """Asks until there is an answer, or an error that will not pass."""

    def __init__(self, clock: Clock, random: Random, patience: Patience) -> None:
        self._clock, self._random, self._patience = clock, random, patience

    async def ask(
        self, question: Callable[[], Awaitable[T]], what: str, until: float, on_trouble: OnTrouble | None = None
    ) -> T | None:
        """Ask; None when the time is over. A 404 may pass, but not for ever. `on_trouble` hears of what may pass."""
        delays = PollDelays(self._patience, self._random)
        missing_since: float | None = None
        while True:
            try:
                return await question()
            except TryLater as error:
                if on_trouble is not None:
                    await on_trouble(error)
                delay = delays.delay(error.retry_after)
            except (UnknownModel, NotThere) as error:
                now = self._clock.monotonic()
                missing_since = now if missing_since is None else missing_since
                grace = missing_since + self._patience.grace - now
                if grace <= 0 and now > missing_since:
                    raise _gone(what, error) from error
                delay = min(delays.delay(), max(grace, self._patience.poll_first))
            left = until - self._clock.monotonic()
            await self._clock.sleep(max(0.0, min(delay, left)))
            if delay >= left:
                return None


def _gone(what: str, error: WireError) -> BatchLost:
    return BatchLost(
        f"{what} no longer exists at the provider: {error.message}",
        suggestions=(
            "results are kept for some weeks only, or it was deleted there",
            "send its calls again, at the risk of paying twice: muster batch reconcile --resubmit",
        ),
    )
