"""A seat on the wire: a place in the run and a place at the provider, taken together and given back together."""

import asyncio
from types import TracebackType

from muster.domain.budget import Level
from muster.engine.activity import Activity
from muster.engine.limiter import Limiter, Place
from muster.engine.purse import Purse


class Seat:
    """Waits in line for money, for the run's concurrency and for the provider; holds both places inside."""

    def __init__(
        self,
        *,
        limiter: Limiter,
        tokens: int,
        places: asyncio.Semaphore,
        purse: Purse,
        levels: tuple[Level, ...],
        activity: Activity,
        in_turn: bool,
    ) -> None:
        self._limiter, self._tokens = limiter, tokens
        self._places, self._purse, self._levels = places, purse, levels
        self._activity = activity
        self._in_turn = in_turn  # it has waited in the line for money already
        self._place: Place | None = None

    async def __aenter__(self) -> "Seat":
        self._activity.begin_wait()
        try:
            if not self._in_turn:
                await self._purse.queue_up(self._levels)
            await self._places.acquire()
            try:
                self._place = await self._limiter.enter(self._tokens)
            except BaseException:
                self._places.release()
                raise
        finally:
            self._activity.end_wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._places.release()
        if self._place is not None:
            self._limiter.leave(self._place)

    def learn(self, outcome: object) -> None:
        """Tell the limiter how the exchange went."""
        if self._place is not None:
            self._place.outcome = outcome
