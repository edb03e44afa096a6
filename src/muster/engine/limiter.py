"""How many calls may be at one provider's model at a time, and how fast; learns from refusals."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from muster.domain.agent import Pace
from muster.domain.call import Reply
from muster.domain.errors import Overloaded, RateLimited
from muster.engine.clock import Clock

LONGEST_PAUSE = 60.0
BURST = 0.1  # of a minute's allowance may go out at once


@dataclass(slots=True)
class Window:
    """The adaptive part, pure: shrinks once for a wave of refusals, grows back by one a round."""

    most: int
    limit: float = field(init=False)
    generation: int = 0
    ceiling: float | None = None  # where the last refusal was met

    def __post_init__(self) -> None:
        self.limit = float(self.most)

    def succeed(self) -> None:
        """Grow by one place a round, more slowly where it was refused before."""
        near = self.ceiling is not None and abs(self.limit - self.ceiling) <= 1
        self.limit = min(self.most, self.limit + (0.5 if near else 1.0) / self.limit)

    def refuse(self, generation: int, in_flight: int) -> None:
        """Shrink, unless this call left before the last shrinking."""
        if generation != self.generation:
            return
        self.generation += 1
        reached = min(self.limit, float(max(in_flight, 1)))
        # Far above what the provider takes it halves; back at a ceiling that is known it only steps aside.
        known = self.ceiling is not None and reached >= self.ceiling * 0.75
        self.ceiling = reached
        self.limit = max(1.0, reached - 1.0 if known else reached / 2)


class Bucket:
    """An allowance a minute; gives the time at which the next amount may go."""

    def __init__(self, per_minute: int | None) -> None:
        self._second = None if per_minute is None else per_minute / 60
        self._ready = 0.0

    def wait(self, now: float) -> float:
        """Give the seconds until something may go."""
        return 0.0 if self._second is None else max(0.0, self._ready - BURST * 60 - now)

    def take(self, amount: int, now: float) -> None:
        """Use up an amount."""
        if self._second is not None:
            self._ready = max(self._ready, now) + amount / self._second


@dataclass(slots=True)
class Place:
    """A place at the provider; learns the outcome before it is given back."""

    generation: int
    outcome: object = None  # a reply, an error, or None when nothing was sent


class Limiter:
    """One lane: places, rates and pauses, first come first served."""

    def __init__(self, pace: Pace, clock: Clock) -> None:
        self.window = Window(pace.concurrency)
        self._requests = Bucket(pace.requests_per_minute)
        self._tokens = Bucket(pace.tokens_per_minute)
        self._clock = clock
        self._pause_until = 0.0
        self._queue: deque[tuple[asyncio.Future[None], int]] = deque()
        self._timer: asyncio.Task[None] | None = None
        self.in_flight = 0

    async def enter(self, tokens: int) -> Place:
        """Wait for a place."""
        if not self._queue and self._open() and self._delay() <= 0:
            self._admit(tokens)
        else:
            await self._line_up(tokens)
        return Place(self.window.generation)

    def leave(self, place: Place) -> None:
        """Give a place back with what was learned."""
        outcome = place.outcome
        if isinstance(outcome, RateLimited | Overloaded):
            self.window.refuse(place.generation, self.in_flight)
            if outcome.retry_after:
                until = self._clock.monotonic() + min(outcome.retry_after, LONGEST_PAUSE)
                self._pause_until = max(self._pause_until, until)
        elif isinstance(outcome, Reply):
            self.window.succeed()
        self.in_flight -= 1
        self._pump()

    async def _line_up(self, tokens: int) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((waiter, tokens))
        self._pump()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.in_flight -= 1  # it was let in at the very moment it gave up
            self._pump()
            raise

    def _open(self) -> bool:
        return self.in_flight < int(self.window.limit)

    def _delay(self) -> float:
        now = self._clock.monotonic()
        return max(self._pause_until - now, self._requests.wait(now), self._tokens.wait(now))

    def _admit(self, tokens: int) -> None:
        now = self._clock.monotonic()
        self._requests.take(1, now)
        self._tokens.take(tokens, now)
        self.in_flight += 1

    def _pump(self) -> None:
        while self._queue and self._open():
            delay = self._delay()
            if delay > 0:
                self._pump_in(delay)
                return
            waiter, tokens = self._queue.popleft()
            if not waiter.done():
                self._admit(tokens)
                waiter.set_result(None)

    def _pump_in(self, delay: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().create_task(self._pump_later(delay))

    async def _pump_later(self, delay: float) -> None:
        await self._clock.sleep(delay)
        self._timer = None
        self._pump()

    async def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()


class Limiters:
    """The limiters of this process, one a lane."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lanes: dict[str, Limiter] = {}

    def lane(self, name: str, pace: Pace) -> Limiter:
        """Give the limiter of a lane; whoever comes first sets its pace."""
        if name not in self._lanes:
            self._lanes[name] = Limiter(pace, self._clock)
        return self._lanes[name]

    async def close(self) -> None:
        """Stop all timers."""
        for limiter in self._lanes.values():
            await limiter.close()
