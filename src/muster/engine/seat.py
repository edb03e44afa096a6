"""A seat: a place in the run and a place at the provider, taken together and given back together."""

import asyncio
from types import TracebackType

from muster.domain.budget import Level
from muster.engine.activity import Activity
from muster.engine.limiter import Limiter, Place, ahead
from muster.engine.purse import Purse


class Places:
    """The places of one run: so many calls on the wire, and a few more that get ready."""

    def __init__(self, concurrency: int) -> None:
        self.ready = asyncio.Semaphore(concurrency + ahead(concurrency))
        self.wire = asyncio.Semaphore(concurrency)


class Seat:
    """Waits in line for money, for the run and for the provider; inside, a call gets ready and then boards."""

    def __init__(
        self,
        *,
        limiter: Limiter,
        tokens: int,
        places: Places,
        purse: Purse,
        levels: tuple[Level, ...],
        activity: Activity,
        in_turn: bool,
    ) -> None:
        self._limiter, self._tokens = limiter, tokens
        self._places, self._purse, self._levels = places, purse, levels
        self._activity = activity
        self._in_turn = in_turn  # it has waited in the line for money already
        self._place = Place()
        self._boarded = self._left = False

    async def __aenter__(self) -> "Seat":
        self._activity.begin_wait()
        try:
            if not self._in_turn:
                await self._purse.queue_up(self._levels)
            await self._places.ready.acquire()
            try:
                if not self._limiter.gets_ahead:
                    await self._places.wire.acquire()
                    self._boarded = True
                self._place = await self._limiter.enter(self._tokens)
            except BaseException:
                self._stand_up()
                raise
        finally:
            self._activity.end_wait()
        return self

    async def board(self) -> None:
        """Wait for the moment to go on the wire."""
        self._activity.begin_wait()
        try:
            if not self._boarded:
                await self._places.wire.acquire()
                self._boarded = True
            await self._limiter.board(self._place)
        finally:
            self._activity.end_wait()

    def leave(self, outcome: object = None) -> None:
        """Give the places back, with what the exchange came to for the limiter to learn from; once is enough."""
        if self._left:
            return
        self._left = True
        self._stand_up()
        self._place.outcome = outcome
        self._limiter.leave(self._place)

    def _stand_up(self) -> None:
        if self._boarded:
            self._places.wire.release()
        self._places.ready.release()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()
