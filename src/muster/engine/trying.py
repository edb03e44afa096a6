"""Asking a provider again and again until it answers: network faults, refusals and sleeping laptops are outlived."""

from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from muster.domain.errors import BatchLost, TryLater, UnknownModel, WireError
from muster.engine.clock import Clock
from muster.engine.patience import Patience

T = TypeVar("T")


class NotThere(WireError):
    """The provider answered, but what was asked for is not there yet."""


class Pulse:
    """Delays between questions: from short to long, with chance in them so that many processes do not ask in step."""

    def __init__(self, patience: Patience, random: Random) -> None:
        self._patience, self._random = patience, random
        self._next = patience.poll_first

    def delay(self, asked: float | None = None) -> float:
        """Give the next delay; a provider's wish to wait longer is honoured up to the longest delay."""
        longest = self._patience.poll_longest
        delay = min(longest, max(self._next, asked or 0.0)) * self._random.uniform(0.8, 1.2)
        self._next = min(longest, self._next * 1.5)
        return delay


class Asker:
    """Asks until there is an answer, or an error that will not pass."""

    def __init__(self, clock: Clock, random: Random, patience: Patience) -> None:
        self._clock, self._random, self._patience = clock, random, patience

    async def ask(self, question: Callable[[], Awaitable[T]], what: str, until: float) -> T | None:
        """Ask; None when the time is over. A 404 may pass, but not for ever."""
        pulse = Pulse(self._patience, self._random)
        missing_since: float | None = None
        while True:
            try:
                return await question()
            except TryLater as error:
                delay = pulse.delay(error.retry_after)
            except (UnknownModel, NotThere) as error:
                now = self._clock.monotonic()
                missing_since = now if missing_since is None else missing_since
                if now - missing_since > self._patience.grace:
                    raise _gone(what, error) from error
                delay = pulse.delay()
            left = until - self._clock.monotonic()
            await self._clock.sleep(max(0.0, min(delay, left)))
            if delay >= left:
                return None


def _gone(what: str, error: WireError) -> BatchLost:
    return BatchLost(
        f"{what} is not at the provider any more: {error.message}",
        suggestions=(
            "results are kept for some weeks only; was it deleted there?",
            "give it up and ask again, at the risk of paying twice: muster batch reconcile --resubmit",
        ),
    )
