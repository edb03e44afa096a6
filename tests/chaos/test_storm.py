"""A storm of 429: the server takes twenty at a time, and the limiter finds that out without being a nuisance."""

from collections.abc import Iterator

import pytest

from muster.domain.agent import Timeouts
from muster.domain.entry import AttemptState
from muster.engine.calls.retry import RetryPolicy
from muster.sim.audit import Audit
from muster.store.base import Attempt
from tests.chaos.books import Books, check_books, check_paid_once, check_whole, read_books
from tests.chaos.stage import Stage
from tests.rehearsal import ForkedRehearsal

CAPACITY = 20


@pytest.fixture
def sim() -> Iterator[ForkedRehearsal]:
    with ForkedRehearsal(latency_ms=50, capacity=CAPACITY) as running:
        yield running


def refused(audit: Audit) -> int:
    return audit.statuses.get("429", 0)


def attempts_after(books: Books, replies: int) -> list[Attempt]:
    """Return the attempts that were begun when there were so many replies."""
    ends = sorted(attempt.ended_at or 0.0 for attempt in books.attempts if attempt.state is AttemptState.SUCCEEDED)
    return [attempt for attempt in books.attempts if attempt.started_at >= ends[replies - 1]]


async def weather(stage: Stage, calls: int) -> None:
    """Send a run with far too much concurrency against the server."""
    ended = await stage.drive(
        stage.order(calls, concurrency=100, mixed=False, policy=RetryPolicy(), timeouts=Timeouts())
    )
    assert ended.run["state"] == "completed", ended
    audit = stage.sim.audit()
    books = await read_books(stage)
    check_whole(books, calls)
    check_books(books)
    check_paid_once(books, audit)
    (window,) = ended.said["windows"].values()
    last = attempts_after(books, calls * 2 // 3)
    share = sum(attempt.state is not AttemptState.SUCCEEDED for attempt in last) / len(last)
    print(
        f"{calls} calls: {audit.requests} requests ({audit.requests / calls:.2f} ×), {refused(audit)} refused, "
        f"{share:.1%} of the last {len(last)}, window {window:.1f} at the end"
    )
    assert not books.uncertain
    assert audit.requests <= 1.5 * calls
    assert share <= 0.1
    assert CAPACITY * 0.6 <= window <= CAPACITY * 1.4


async def test_300_calls_come_through_a_storm(stage: Stage) -> None:
    await weather(stage, 300)


@pytest.mark.chaos
@pytest.mark.parametrize("again", range(3))
async def test_600_calls_come_through_a_storm(stage: Stage, again: int) -> None:
    await weather(stage, 600)
