"""A storm of 429: the server takes twenty at a time, and the limiter finds that out without being a nuisance."""

import asyncio
from collections.abc import Iterator

import pytest

from muster.domain.agent import Timeouts
from muster.engine.calls.retry import RetryPolicy
from muster.sim.audit import Audit
from muster.testing.sim import RehearsalProcess
from tests.chaos.books import check_books, check_paid_once, check_whole, read_books
from tests.chaos.stage import Stage, until

CAPACITY = 20


@pytest.fixture
def sim() -> Iterator[RehearsalProcess]:
    with RehearsalProcess(latency_ms=50, capacity=CAPACITY) as running:
        yield running


def refused(audit: Audit) -> int:
    return audit.statuses.get("429", 0)


async def weather(stage: Stage, calls: int) -> None:
    """Send a run with far too much concurrency against the server."""
    driver = await stage.start(
        stage.order(calls, concurrency=100, mixed=False, policy=RetryPolicy(), timeouts=Timeouts())
    )
    seen: list[Audit] = []

    async def two_thirds_are_answered() -> bool:
        seen[:] = [await asyncio.to_thread(stage.sim.audit)]
        return seen[0].calls >= calls * 2 // 3

    await until(two_thirds_are_answered)
    ended = await driver.end()
    assert ended.run["state"] == "completed", ended
    audit = stage.sim.audit()
    books = await read_books(stage)
    check_whole(books, calls)
    check_books(books)
    check_paid_once(books, audit)
    (window,) = ended.said["windows"].values()
    last = audit.requests - seen[0].requests
    share = (refused(audit) - refused(seen[0])) / last
    print(
        f"{calls} calls: {audit.requests} requests ({audit.requests / calls:.2f} ×), {refused(audit)} refused, "
        f"{share:.1%} of the last {last}, window {window:.1f} at the end"
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
