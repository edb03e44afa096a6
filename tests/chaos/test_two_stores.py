"""Two stores under one account: which of two like batches is whose is never guessed, custom ids decide."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from muster.app.runs.batches import Reconciled
from muster.domain.batch import BatchState
from muster.domain.errors import BatchOpen
from tests.chaos import work
from tests.chaos.books import Books, check_books, check_judged, check_paid_once, check_whole, read_books
from tests.chaos.fleet import Order
from tests.chaos.stage import Ended, Stage, until
from tests.rehearsal import ForkedRehearsal


@pytest.fixture
def sim() -> Iterator[ForkedRehearsal]:
    """A rehearsal server whose batches take long enough for one store to find the other's still running."""
    with ForkedRehearsal(batch_ms=1200) as running:
        yield running


@pytest.fixture
def stores(tmp_path: Path, sim: ForkedRehearsal) -> tuple[Stage, Stage]:
    """Two folders with the same keys."""
    return Stage(tmp_path / "left", sim), Stage(tmp_path / "right", sim)


def left_order(stage: Stage, calls: int) -> Order:
    """Two batches of questions that only this store asks."""
    return stage.order(calls, workload="judged", agent=work.ANTHROPIC, topic="left: ", dispatch="batch", waits=True)


def right_order(stage: Stage, calls: int) -> Order:
    """One batch, as large as each of the other store's."""
    return stage.order(calls, mixed=False, dispatch="batch", waits=True)


async def submit_both(stores: tuple[Stage, Stage], calls: int, crash_at: str) -> "asyncio.Task[Ended]":
    """Let both submit in the same second; the left one dies over it, the right one goes on.

    The right one comes last, so that it is the first in the provider's list.
    """
    left = await stores[0].start(left_order(stores[0], calls), crash_at=crash_at)
    right = await stores[1].start(right_order(stores[1], calls))
    await asyncio.gather(left.ready(), right.ready())
    left.go()
    killed = await left.end()
    assert killed.killed, killed
    right.go()
    created = 2 if crash_at.startswith("batch.created") else 1

    async def all_are_there() -> bool:
        return len((await asyncio.to_thread(stores[0].sim.audit)).batches) == created

    await until(all_are_there)
    return asyncio.create_task(right.end())


async def resume(stage: Stage, calls: int, *, resubmit: bool = False) -> Ended:
    return await stage.drive(replace(left_order(stage, calls), waits=False, resubmit=resubmit))


async def reconcile(stage: Stage) -> Sequence[Reconciled]:
    async with stage.open() as muster:
        return await muster.batches.reconcile(resubmit=False)


async def check_both(stores: tuple[Stage, Stage], calls: int, uncertain: int = 0) -> tuple[Books, Books]:
    """Each has its own results, and everything was paid once."""
    audit = stores[0].sim.audit()
    left, right = [await read_books(stage) for stage in stores]
    check_judged(left, calls, "left: ")
    check_whole(right, calls)
    for books in (left, right):
        check_books(books)
        own = set(books.on_the_wire().values())
        paid = {name: times for name, times in audit.by_digest.items() if name in own}
        check_paid_once(books, replace(audit, by_digest=paid))
    assert audit.calls == 3 * calls
    assert (len(left.uncertain), len(right.uncertain)) == (uncertain, 0)
    print(
        f"3 × {calls} calls: {len(audit.batches)} batches at the provider, {audit.calls} paid, "
        f"{uncertain} uncertain, told by the left one: {told(left)}"
    )
    return left, right


def told(books: Books) -> list[str]:
    """Say what the run was told of its batches' creation."""
    wanted = ("batch.undecided", "batch.adopted", "batch.rejected", "batch.confirmed")
    return [event.kind for event in books.events if event.kind in wanted]


async def adopt_its_own(stores: tuple[Stage, Stage], calls: int) -> None:
    other = await submit_both(stores, calls, "batch.created:1")
    ended = await resume(stores[0], calls)
    assert ended.run["state"] == "completed", ended
    assert (await other).run["state"] == "completed"
    left, right = await check_both(stores, calls)
    assert (told(left)[0], told(left)[-1]) == ("batch.undecided", "batch.adopted")
    assert not told(right)
    assert [len(books.batches) for books in (left, right)] == [2, 1]


async def reject_the_others(stores: tuple[Stage, Stage], calls: int) -> None:
    other = await submit_both(stores, calls, "batch.claimed:1")
    ended = await resume(stores[0], calls)
    assert (ended.run["state"], ended.run["ended_reason"]) == ("waiting", "batch_open"), ended
    [reconciled] = await reconcile(stores[0])
    assert isinstance(reconciled.error, BatchOpen)
    assert reconciled.batch.state is BatchState.SENT
    assert reconciled.batch.rejected  # it looked at the other's, and did not take it
    assert (await other).run["state"] == "completed"
    ended = await resume(stores[0], calls, resubmit=True)
    assert ended.run["state"] == "completed", ended
    left, right = await check_both(stores, calls, uncertain=calls)
    assert "batch.rejected" in told(left)
    assert "batch.confirmed" not in told(left)
    assert left.batches[0].state is BatchState.ABANDONED
    assert [len(books.batches) for books in (left, right)] == [3, 1]


async def test_a_store_adopts_its_own_of_two_like_batches(stores: tuple[Stage, Stage]) -> None:
    await adopt_its_own(stores, 30)


async def test_a_store_never_adopts_the_batch_of_another_for_good(stores: tuple[Stage, Stage]) -> None:
    await reject_the_others(stores, 30)


@pytest.mark.chaos
async def test_a_store_adopts_its_own_of_two_like_batches_of_2000(stores: tuple[Stage, Stage]) -> None:
    await adopt_its_own(stores, 2000)


@pytest.mark.chaos
async def test_a_store_never_adopts_a_batch_of_2000_of_another_for_good(stores: tuple[Stage, Stage]) -> None:
    await reject_the_others(stores, 2000)
