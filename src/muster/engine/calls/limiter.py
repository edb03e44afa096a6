"""How many calls may be at one provider's model at a time, and how fast; learns from refusals."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.domain.agent import Pace
from muster.domain.call import Reply
from muster.domain.errors import Overloaded, RateLimited
from muster.engine.base.clock import Clock

MAX_PAUSE = 60.0
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

    def resize(self, most: int) -> None:
        """Set how many places there may be; a window that had all of them has all of them again."""
        whole = self.limit >= self.most
        self.most = most
        self.limit = float(most) if whole else min(self.limit, float(most))

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

    def __init__(self, per_minute: float | None) -> None:
        self._second = None if per_minute is None else per_minute / 60
        self._ready = 0.0

    def resize(self, per_minute: float | None) -> None:
        """Set the allowance; what was taken before is not given back."""
        self._second = None if per_minute is None else per_minute / 60

    def wait(self, now: float) -> float:
        """Return the seconds until something may go."""
        return 0.0 if self._second is None else max(0.0, self._ready - BURST * 60 - now)

    def take(self, amount: int, now: float) -> None:
        """Use up an amount."""
        if self._second is not None:
            self._ready = max(self._ready, now) + amount / self._second

    def put_back(self, amount: int) -> None:
        """Return an amount that was taken and not used."""
        if self._second is not None:
            self._ready -= amount / self._second


@dataclass(slots=True)
class Place:
    """A place at the provider; learns the outcome before it is given back."""

    tokens: int = 0  # that it took of the rate
    generation: int | None = None  # of the window when it went on the wire
    outcome: object = None  # a reply, an error, or None when nothing was sent


def ahead(places: int) -> int:
    """How many more may get ready while all places are taken, so that none stands empty while the next is written.

    None beside a single place: a crash books what was ready as uncertain too, and one at a time is one.
    """
    return max(1, places * 3 // 8) if places > 1 else 0


class LimiterStatus(NamedTuple):
    """How a limiter stands: calls on the wire, calls that wait for a place or the rate, and the places there are."""

    in_flight: int
    waiting: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaceShare:
    """The part of a pace that one of several workers has."""

    concurrency: int
    requests_per_minute: float | None
    tokens_per_minute: float | None


def share_of(pace: Pace, workers: int) -> PaceShare:
    """Return the share of one worker: together they stay within the pace, but each has at least one place.

    Processes that a worker starts itself are limited by its own machine, so each worker has all of them.
    """
    by = workers if pace.gets_ahead else 1
    requests, tokens = pace.requests_per_minute, pace.tokens_per_minute
    return PaceShare(
        concurrency=max(1, pace.concurrency // by),
        requests_per_minute=None if requests is None else requests / by,
        tokens_per_minute=None if tokens is None else tokens / by,
    )


class Limiter:
    """Places, rates and pauses, first come first served.

    A call first enters (it may get ready: rates and pauses count here), then acquires the wire, then leaves.
    """

    def __init__(self, pace: Pace, clock: Clock, workers: int = 1) -> None:
        self._pace = pace
        share = share_of(pace, workers)
        self.window = Window(share.concurrency)
        self.gets_ahead = pace.gets_ahead
        self._requests = Bucket(share.requests_per_minute)
        self._tokens = Bucket(share.tokens_per_minute)
        self._clock = clock
        self._pause_until = 0.0
        self._entry_waiters: deque[tuple[asyncio.Future[None], int]] = deque()
        self._wire_waiters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.Task[None] | None = None
        self._inside = 0
        self.in_flight = 0

    async def enter(self, tokens: int) -> Place:
        """Wait until it may get ready."""
        if not self._entry_waiters and self._has_room() and self._delay() <= 0:
            self._admit(tokens)
        else:
            await self._line_up(tokens)
        return Place(tokens=tokens)

    async def acquire_wire(self, place: Place) -> None:
        """Wait until it may go on the wire."""
        if self._wire_waiters or self.in_flight >= int(self.window.limit):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._wire_waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self.in_flight -= 1  # it was let on at the very moment it gave up
                    self._admit_waiters()
                raise
        else:
            self.in_flight += 1
        place.generation = self.window.generation

    def leave(self, place: Place) -> None:
        """Release a place with what was learned."""
        outcome = place.outcome
        if isinstance(outcome, RateLimited | Overloaded) and place.generation is not None:
            self.window.refuse(place.generation, self.in_flight)
            if outcome.retry_after:
                until = self._clock.monotonic() + min(outcome.retry_after, MAX_PAUSE)
                self._pause_until = max(self._pause_until, until)
        elif isinstance(outcome, Reply):
            self.window.succeed()
        self._inside -= 1
        if place.generation is not None:
            self.in_flight -= 1
        else:  # it never went on the wire, as a call that its budget refused: that is no request to the provider
            self._requests.put_back(1)
            self._tokens.put_back(place.tokens)
        self._admit_waiters()

    def divide(self, workers: int) -> None:
        """Keep to the share of one of so many workers from now on; calls on the wire stay there."""
        share = share_of(self._pace, workers)
        self.window.resize(share.concurrency)
        self._requests.resize(share.requests_per_minute)
        self._tokens.resize(share.tokens_per_minute)
        self._admit_waiters()

    @property
    def status(self) -> LimiterStatus:
        """Return how it stands now."""
        waiting = len(self._entry_waiters) + len(self._wire_waiters)
        return LimiterStatus(in_flight=self.in_flight, waiting=waiting, limit=int(self.window.limit))

    async def _line_up(self, tokens: int) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._entry_waiters.append((waiter, tokens))
        self._admit_waiters()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._inside -= 1  # it was let in at the very moment it gave up
            self._admit_waiters()
            raise

    def _has_room(self) -> bool:
        limit = int(self.window.limit)
        return self._inside < limit + (ahead(limit) if self.gets_ahead else 0)

    def _delay(self) -> float:
        now = self._clock.monotonic()
        return max(self._pause_until - now, self._requests.wait(now), self._tokens.wait(now))

    def _admit(self, tokens: int) -> None:
        now = self._clock.monotonic()
        self._requests.take(1, now)
        self._tokens.take(tokens, now)
        self._inside += 1

    def _admit_waiters(self) -> None:
        while self._wire_waiters and self.in_flight < int(self.window.limit):
            waiter = self._wire_waiters.popleft()
            if not waiter.done():
                self.in_flight += 1
                waiter.set_result(None)
        while self._entry_waiters and self._has_room():
            delay = self._delay()
            if delay > 0:
                self._admit_in(delay)
                return
            waiter, tokens = self._entry_waiters.popleft()
            if not waiter.done():
                self._admit(tokens)
                waiter.set_result(None)

    def _admit_in(self, delay: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().create_task(self._admit_later(delay))

    async def _admit_later(self, delay: float) -> None:
        await self._clock.sleep(delay)
        self._timer = None
        self._admit_waiters()

    async def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()


class Limiters:
    """The limiters of this process, by name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._limiters: dict[str, Limiter] = {}
        self._workers = 1  # that divide every pace among them

    def get(self, name: str, pace: Pace) -> Limiter:
        """Return the limiter of this name; whoever asks first sets its pace."""
        if name not in self._limiters:
            self._limiters[name] = Limiter(pace, self._clock, self._workers)
        return self._limiters[name]

    def divide(self, workers: int) -> None:
        """Divide every pace among so many workers, of which this process is one."""
        if workers != self._workers:
            self._workers = workers
            for limiter in self._limiters.values():
                limiter.divide(workers)

    def status(self) -> Mapping[str, LimiterStatus]:
        """Return how all of them stand, by name."""
        return {name: limiter.status for name, limiter in self._limiters.items()}

    async def close(self) -> None:
        """Stop all timers."""
        for limiter in self._limiters.values():
            await limiter.close()
