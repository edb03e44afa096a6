"""Parked calls: what waits to be put into a batch, and who waits for the results of one."""

import asyncio
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from muster.agents.base import Batching
from muster.domain.batch import Member
from muster.domain.budget import Level
from muster.domain.call import Reply, Request
from muster.domain.entry import AttemptId, Opening
from muster.domain.ids import BatchId
from muster.domain.money import NOTHING, Microdollars

Outcome = Reply | None  # None: look into the journal again


@dataclass(slots=True, kw_only=True)
class Parked:
    """A call that waits for the next batch; it holds the request until that is stored, and no longer."""

    batching: Batching
    request: Request
    text: str  # the request as canonical JSON
    attempt: AttemptId
    digest: str
    agent: str
    first: bool
    reopens: bool
    cache: bool
    levels: Callable[[float], tuple[Level, ...]]
    since: float
    future: "asyncio.Future[Outcome]"
    most: Microdollars = NOTHING
    media_tokens: int = 0  # of what the request shows, at most

    def member(self, place: int, body: bytes, at: float) -> Member:
        """Make the member that goes into a plan."""
        size = len(body) + self.media_tokens
        self.most = self.batching.quote(self.request, size).most
        opening = Opening(
            attempt=self.attempt,
            digest=self.digest,
            agent=self.agent,
            request=self.text,
            most=self.most,
            levels=self.levels(at),
            at=at,
            first=self.first,
            reopens=self.reopens,
        )
        return Member(opening=opening, place=place, size=size, max_tokens=self.request.max_tokens or 0)


class Waiters:
    """Who waits for which member of which batch in this process."""

    def __init__(self) -> None:
        self._waiting: dict[BatchId, dict[int, list[asyncio.Future[Outcome]]]] = {}
        self._answering = 0
        self.on_answered: Callable[[], None] = lambda: None

    @property
    def being_answered(self) -> bool:
        """Return whether results are being read, so that some of those who wait are about to go on."""
        return self._answering > 0

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Report that results are being read."""
        self._answering += 1
        try:
            yield
        finally:
            self._answering -= 1
            self.on_answered()

    def add(self, batch: BatchId, place: int, future: "asyncio.Future[Outcome]") -> None:
        """Register a waiter for a member."""
        self._waiting.setdefault(batch, {}).setdefault(place, []).append(future)

    def remove(self, batch: BatchId, place: int, future: "asyncio.Future[Outcome]") -> None:
        """Remove a waiter that gave up."""
        futures = self._waiting.get(batch, {}).get(place, [])
        if future in futures:
            futures.remove(future)

    def places(self, batch: BatchId) -> Container[int]:
        """Return which members of a batch are awaited."""
        return self._waiting.get(batch, {})

    def answer(self, batch: BatchId, place: int, outcome: Reply | BaseException) -> None:
        """Pass a member's outcome to whoever waits for it."""
        for future in self._waiting.get(batch, {}).pop(place, []):
            _finish(future, outcome)

    def end(self, batch: BatchId, outcome: BaseException | None) -> None:
        """Let everybody go who still waits: with an error, or to look into the journal again."""
        for futures in self._waiting.pop(batch, {}).values():
            for future in futures:
                _finish(future, outcome)


def _finish(future: "asyncio.Future[Outcome]", outcome: Reply | BaseException | None) -> None:
    if future.done():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
        future.exception()  # whoever waited may be gone
    else:
        future.set_result(outcome)
