"""What every store must do about money: reserve, book, refuse, give back."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

import asyncio

from muster.domain.budget import Granted, Refused, Wait
from muster.domain.entry import (
    AttemptState,
    Failed,
    Unsent,
)
from muster.domain.money import MAX_COST, Lane, Microdollars
from muster.domain.run import RunState
from muster.store.base import RunRelease, Store
from muster.testing.stores.values import (
    NOW,
    Check,
    driven,
    opening,
    replied,
    settling,
    stored,
)


async def reserves_and_books_in_one_go(store: Store) -> None:
    """An attempt reserves its most; its settlement gives that back and books the cost."""
    run, claim = await driven(store, cap=1000)
    opened = opening(run, claim.epoch, "k", most=100, cap=1000)
    assert await store.journal.open(opened) == Granted()
    assert (await stored(store, run)).spent.reserved == 100
    settled = await store.journal.settle(settling(opened, replied(40)))
    after = await stored(store, run)
    assert (settled.cost, settled.kept, settled.overdraft) == (40, True, False)
    assert (after.spent.reserved, after.spent.billed, after.spent.uncertain) == (0, 40, 0)
    assert (after.calls.total, after.calls.done, after.calls.failed) == (1, 1, 0)


async def books_no_cost_below_zero(store: Store) -> None:
    """What cannot be a cost is booked as the whole reservation, uncertain; a reply with it stands."""
    run, claim = await driven(store, cap=1000)
    for place, cost in enumerate((-1, -(2**70), 2**70, float("nan"), True)):
        answered = opening(run, claim.epoch, f"reply/{place}", most=100, cap=1000)
        failed = opening(run, claim.epoch, f"failure/{place}", most=10, cap=1000)
        assert await store.journal.open(answered) == await store.journal.open(failed) == Granted()
        await store.journal.settle(settling(answered, replied(cost)))  # type: ignore[arg-type]
        error = Failed(error={}, uncertain=False, gives_up=True, cost=cost)  # type: ignore[arg-type]
        await store.journal.settle(settling(failed, error))
        entry = await store.journal.find(run, f"reply/{place}")
        assert entry is not None
        assert entry.reply is not None
        assert (entry.reply.text, entry.reply.cost, entry.reply.lane) == ("hello", 100, Lane.UNCERTAIN)
    after = await stored(store, run)
    assert (after.spent.reserved, after.spent.billed, after.spent.uncertain) == (0, 0, 550)
    assert (after.calls.done, after.calls.failed, after.calls.uncertain) == (5, 5, 5)


async def counts_sums_that_no_database_could(store: Store) -> None:
    """Costs that add up to more than 64 bits hold still stop at a number, which no cap lets pass."""
    run, claim = await driven(store)
    for place in range(3):
        opened = [opening(run, claim.epoch, f"{place}/{n}", most=0) for n in range(1500)]
        await asyncio.gather(*(store.journal.open(one) for one in opened))
        await asyncio.gather(*(store.journal.settle(settling(one, replied(MAX_COST))) for one in opened))
    spent = (await stored(store, run)).spent
    assert spent.billed == 2**60
    refused = await store.journal.open(opening(run, claim.epoch, "one more", most=1, cap=10**15))
    assert isinstance(refused, Refused)


async def waits_then_refuses_at_the_cap(store: Store) -> None:
    """What may still fit waits; what can never fit is refused with the numbers; neither leaves a trace."""
    run, claim = await driven(store, cap=150)
    first = opening(run, claim.epoch, "a", most=100, cap=150)
    assert await store.journal.open(first) == Granted()
    waits = await store.journal.open(opening(run, claim.epoch, "b", most=100, cap=150))
    assert waits == Wait(level=f"run:{run}")
    await store.journal.settle(settling(first, replied(60)))
    refused = await store.journal.open(opening(run, claim.epoch, "b", most=100, cap=150))
    assert refused == Refused(
        level=f"run:{run}", cap=Microdollars(150), settled=Microdollars(60), most=Microdollars(100)
    )
    assert await store.journal.find(run, "b") is None
    assert len(await store.archive.attempts(run)) == 1
    assert await store.journal.open(opening(run, claim.epoch, "b", most=90, cap=150)) == Granted()


async def never_reserves_above_the_cap_together(store: Store) -> None:
    """Many at once: as many as fit are granted, never one more."""
    run, claim = await driven(store, cap=1000)
    openings = [opening(run, claim.epoch, f"k{i}", most=90, cap=1000) for i in range(50)]
    decisions = await asyncio.gather(*(store.journal.open(one) for one in openings))
    assert sum(isinstance(decision, Granted) for decision in decisions) == 11
    assert (await stored(store, run)).spent.reserved == 990


async def books_an_unknown_outcome_in_full(store: Store) -> None:
    """An attempt whose outcome is unknown is booked at its reservation, as uncertain."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k", most=100)
    await store.journal.open(opened)
    error = {"code": "outcome_unknown", "message": "cut"}
    await store.journal.settle(settling(opened, Failed(error=error, uncertain=True, again_in=1.0)))
    after = await stored(store, run)
    assert (after.spent.reserved, after.spent.billed, after.spent.uncertain) == (0, 0, 100)
    assert after.calls.uncertain == 1
    second = opening(run, claim.epoch, "k", n=2)._replace(first=False)
    await store.journal.open(second)
    await store.journal.settle(settling(second, replied(10)))
    states = [attempt.state for attempt in await store.archive.attempts(run)]
    assert states == [AttemptState.UNCERTAIN, AttemptState.SUCCEEDED]


async def refunds_what_never_left(store: Store) -> None:
    """An attempt that was not sent, or was refused, costs nothing."""
    run, claim = await driven(store)
    for key, outcome in (
        ("a", Unsent()),
        ("b", Failed(error={"code": "overloaded", "message": "full"}, uncertain=False, gives_up=True)),
    ):
        opened = opening(run, claim.epoch, key)
        await store.journal.open(opened)
        await store.journal.settle(settling(opened, outcome))
    after = await stored(store, run)
    assert (after.spent.reserved, after.spent.settled) == (0, 0)
    assert after.calls.failed == 1
    entry = await store.journal.find(run, "b")
    assert entry is not None
    assert entry.error == {"code": "overloaded", "message": "full"}


async def takes_back_an_opening_that_is_still_queued(store: Store) -> None:
    """Taken back right after it was queued, an opening leaves no money reserved; one that was refused is no trouble."""
    run, claim = await driven(store, cap=150)
    opened = opening(run, claim.epoch, "k", cap=150)
    refused = opening(run, claim.epoch, "too-much", most=500, cap=150)
    writes = [
        store.journal.open(opened),
        store.journal.settle(settling(opened, Unsent())),
        store.journal.open(refused),
        store.journal.settle(settling(refused, Unsent())),
    ]
    await asyncio.gather(*writes)
    after = await stored(store, run)
    assert (after.spent.reserved, after.spent.settled) == (0, 0)
    assert [attempt.state for attempt in await store.archive.attempts(run)] == [AttemptState.UNSENT]


async def flags_an_overdraft(store: Store) -> None:
    """A cost above the reservation is booked in full and told."""
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k", most=10)
    await store.journal.open(opened)
    settled = await store.journal.settle(settling(opened, replied(25)))
    assert settled.overdraft
    assert (await stored(store, run)).spent.billed == 25
    assert "overdraft" in [event.kind for event in await store.events.read(run, 0, 100)]


async def frees_the_money_of_attempts_that_were_never_settled(store: Store) -> None:
    """A run that is let go of, or forgotten, leaves nothing reserved anywhere."""
    run, claim = await driven(store)
    await store.journal.open(opening(run, claim.epoch, "k", most=100))
    over = await store.leases.release(run, claim.epoch, RunRelease(state=RunState.FAILED, reason="x", at=NOW))
    assert (over.spent.reserved, over.spent.uncertain) == (0, 100)


async def caps_a_budget_that_is_no_runs(store: Store) -> None:
    """The budget of a server is made with its cap, and can be raised; what is spent under it stays."""
    for cap in (Microdollars(10), Microdollars(30)):
        await store.runs.cap_level("server:x", cap)
        assert (await store.runs.balances(["server:x"]))["server:x"].cap == cap


async def books_what_a_failure_says_it_cost(store: Store) -> None:
    """A failed attempt whose agent says what it cost is booked at that, in the lane that pays it."""
    run, claim = await driven(store, cap=1000)
    for key, lane in (("billed", Lane.BILLED), ("imputed", Lane.IMPUTED)):
        opened = opening(run, claim.epoch, key, most=100, cap=1000)
        await store.journal.open(opened)
        failed = Failed(error={"code": "x"}, uncertain=False, gives_up=True, cost=Microdollars(130), lane=lane)
        settled = await store.journal.settle(settling(opened, failed))
        assert (settled.cost, settled.overdraft) == (130, True)
    spent = (await stored(store, run)).spent
    assert (spent.reserved, spent.billed, spent.imputed, spent.uncertain) == (0, 130, 130, 0)


CHECKS: tuple[Check, ...] = (
    reserves_and_books_in_one_go,
    books_no_cost_below_zero,
    counts_sums_that_no_database_could,
    waits_then_refuses_at_the_cap,
    never_reserves_above_the_cap_together,
    books_an_unknown_outcome_in_full,
    refunds_what_never_left,
    takes_back_an_opening_that_is_still_queued,
    flags_an_overdraft,
    frees_the_money_of_attempts_that_were_never_settled,
    caps_a_budget_that_is_no_runs,
    books_what_a_failure_says_it_cost,
)
