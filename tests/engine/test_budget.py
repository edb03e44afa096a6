"""Money in the call path: hard caps, waiting, refusing, overdrafts, days and parents."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.domain.budget import Budgets, Granted, Level, lineage_level
from muster.domain.call import Reply, Request
from muster.domain.canonical import Json
from muster.domain.errors import BudgetExhausted, Interrupted, OutcomeUnknown, Overloaded
from muster.domain.money import Microdollars
from muster.domain.run import RunState
from muster.engine.base.clock import Activity, Stopwatch
from muster.engine.base.driven_run import Levels
from muster.engine.calls.admission import LOOK_SECONDS, Admission, BudgetQueue, RunPlaces
from muster.engine.calls.limiter import Limiter
from muster.engine.context import Context
from muster.testing.clock import FakeClock
from muster.testing.stores import NOW, new_run, opening
from tests.engine.house import Hanging, House, Puppet, check_books, dead_driver, echo, house, reply


async def all_at_once(ctx: Context, spec: Any) -> Json:
    async def one(i: int) -> int:
        try:
            await ctx.call("a", f"hi {i}", key=f"k{i}", optional=True)
        except BudgetExhausted:
            return 0
        return 1

    return sum(await asyncio.gather(*(one(i) for i in range(spec))))


async def test_calls_wait_while_others_hold_money_and_as_many_as_can_be_paid_are_paid(tmp_path: Path) -> None:
    agent = echo(cost=10, most=400)
    async with house(tmp_path, a=agent) as h:
        run = await h.drive(all_at_once, spec=200, cap=Microdollars(400 + 49 * 10), concurrency=50)
        assert run.result == 50
        assert (run.spent.settled, run.spent.reserved) == (500, 0)
        await check_books(h.store, run.id)


@asynccontextmanager
async def budget_queue(folder: Path, sweep: Callable[[], Awaitable[None]]) -> AsyncIterator[tuple[House, BudgetQueue]]:
    """Open a house with a queue of its own, in which nothing is written and so nobody is woken by it."""
    async with house(folder, a=echo()) as h:
        queue = BudgetQueue(h.store.changes, sweep, h.clock)
        yield h, queue
        await queue.close()


async def sweep_nothing() -> None: ...


async def turns_of_the_loop() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_money_that_came_back_between_a_refusal_and_the_wait_ends_that_wait(tmp_path: Path) -> None:
    async with budget_queue(tmp_path, sweep_nothing) as (h, queue):
        seen = queue.commits
        await h.store.runs.create(new_run("run1"))
        told = asyncio.ensure_future(queue.turn().wait("day", seen))
        await asyncio.sleep(0)
        assert told.done()

        untold = asyncio.ensure_future(queue.turn().wait("day", queue.commits))
        await asyncio.sleep(0)
        assert not untold.done()
        await h.store.runs.create(new_run("run2"))
        await untold


DAY, RUN = Level(id="day"), Level(id="run:run1")


@pytest.mark.parametrize("end", ["canceled while it waits for a place", "canceled as it is woken", "stopped"])
async def test_a_wake_up_that_is_not_used_goes_to_the_next_in_line(end: str, tmp_path: Path) -> None:
    async with budget_queue(tmp_path, sweep_nothing) as (_, queue):
        places, free = RunPlaces(1), asyncio.Event()
        await places.ready.acquire()  # all that there are: whoever is woken goes on to wait for one

        async def attempt(places: RunPlaces) -> None:
            turn = queue.turn()
            admission = Admission(
                limiter=Limiter(echo().profile.pace, FakeClock()),
                tokens=1,
                places=places,
                turn=turn,
                levels=(DAY,),
                activity=Activity(Stopwatch(FakeClock())),
            )
            try:
                async with admission:
                    if not free.is_set():
                        raise Interrupted("stopped before it asked for money")
            finally:
                turn.end()

        head = asyncio.ensure_future(queue.turn().wait(DAY.id, queue.commits))
        await turns_of_the_loop()
        first = asyncio.ensure_future(attempt(RunPlaces(1) if end == "stopped" else places))
        await turns_of_the_loop()
        second = asyncio.ensure_future(attempt(RunPlaces(1)))
        await turns_of_the_loop()
        queue.wake(DAY.id)
        await head
        queue.wake(DAY.id)
        if end != "canceled as it is woken":
            await turns_of_the_loop()
        free.set()
        first.cancel()
        await turns_of_the_loop()
        assert first.done()
        assert second.done(), "nobody was woken in place of the one that did not use its turn"


async def test_whoever_finds_no_room_elsewhere_lets_the_next_in_line_try(tmp_path: Path) -> None:
    async with budget_queue(tmp_path, sweep_nothing) as (_, queue):
        turn = queue.turn()
        waits = asyncio.ensure_future(turn.wait(RUN.id, queue.commits))
        await turns_of_the_loop()
        next_of_run = asyncio.ensure_future(queue.turn().queue_up((RUN,)))
        await turns_of_the_loop()
        queue.wake(RUN.id)
        await waits
        again = asyncio.ensure_future(turn.wait(DAY.id, queue.commits))
        await turns_of_the_loop()
        assert not again.done()
        assert next_of_run.done()
        again.cancel()


async def test_whoever_waits_is_woken_although_the_sweep_fails(tmp_path: Path) -> None:
    async def fail() -> None:
        raise OSError("the disk is gone")

    async with house(tmp_path, a=echo()) as h:
        clock = FakeClock()
        queue = BudgetQueue(h.store.changes, fail, clock)
        waiting = asyncio.ensure_future(queue.turn().wait("day", queue.commits))
        await turns_of_the_loop()
        clock.advance(LOOK_SECONDS)
        await h.store.runs.create(new_run("run1"))
        await asyncio.wait({waiting}, timeout=60)
        assert waiting.done()
        await queue.close()


async def test_a_cap_holds_with_faults_and_retries(tmp_path: Path) -> None:
    dice = random.Random(3)

    async def answer(request: Request, n: int) -> Reply:
        await asyncio.sleep(0)
        roll = dice.random()
        if roll < 0.2:
            raise Overloaded("full")
        if roll < 0.23:
            raise OutcomeUnknown("cut")
        return reply(cost=10)

    agent = Puppet(answer, most=400)
    async with house(tmp_path, a=agent) as h:
        run = await h.drive(all_at_once, spec=200, cap=Microdollars(2000), concurrency=50)
        assert run.state is RunState.COMPLETED
        assert 0 < run.spent.settled <= 2000
        assert 2000 - run.spent.settled < 400, "money was left that would have paid for another call"
        assert run.result == len(agent.answered)
        await check_books(h.store, run.id)


async def test_a_budget_too_small_for_one_call_is_told_with_the_numbers(tmp_path: Path) -> None:
    async def one(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", "hi", key="k")).text

    agent = echo(most=100_000)
    async with house(tmp_path, a=agent) as h:
        run = await h.drive(one, cap=Microdollars(50_000))
        assert (run.state, run.ended_reason, len(agent.asked)) == (RunState.FAILED, "budget", 0)
        message = (run.error or {})["message"]
        assert "$0.00 of $0.05 is spent" in message
        assert "up to $0.10" in message
        first, second = (run.error or {})["suggestions"]
        assert first.startswith(f"raise the budget: muster runs resume {run.id} --budget TOTAL")
        assert second.startswith("or lower the maximum cost of a call")


async def test_a_call_that_can_cost_more_than_one_may_is_not_sent(tmp_path: Path) -> None:
    async def both(ctx: Context, spec: Any) -> Json:
        await ctx.call("small", "hi", key="small")
        return (await ctx.call("large", "hi", key="large")).text

    small, large = echo(most=100_000), echo(most=100_001)
    async with house(tmp_path, small=small, large=large, call_cap=Microdollars(100_000)) as h:
        run = await h.drive(both)
        assert (run.state, run.ended_reason) == (RunState.FAILED, "budget")
        assert (len(small.asked), len(large.asked)) == (1, 0)
        error = run.error or {}
        assert error["message"] == "the call can cost up to $0.100001, and call_usd is $0.10"
        assert "raise call_usd in muster.toml" in error["suggestions"]
        await check_books(h.store, run.id)


async def test_the_day_holds_over_all_runs(tmp_path: Path) -> None:
    async with house(tmp_path, a=echo(cost=60, most=100), day_cap=200) as h:
        first = await h.drive(all_at_once, spec=2)
        second = await h.drive(all_at_once, spec=2)
        assert (first.result, second.result) == (2, 0)
        assert first.spent.settled + second.spent.settled <= 200


async def test_a_small_call_goes_through_where_a_large_one_was_refused(tmp_path: Path) -> None:
    large, small = echo(most=1000), echo(cost=5, most=50)

    async def both(ctx: Context, spec: Any) -> Json:
        try:
            await ctx.call("large", "hi", key="large", optional=True)
        except BudgetExhausted:
            return (await ctx.call("small", "hi", key="small")).text
        return "not refused"

    async with house(tmp_path, large=large, small=small) as h:
        run = await h.drive(both, cap=Microdollars(100))
        assert run.result == "hi"


async def test_a_cost_above_its_reservation_is_booked_told_and_stops_new_calls(tmp_path: Path) -> None:
    agent = echo(cost=150, most=100)

    async def two(ctx: Context, spec: Any) -> Json:
        first = await ctx.call("a", "one", key="one")
        await ctx.call("a", "two", key="two")
        return first.text

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(two, cap=Microdollars(10_000))
        assert (run.state, run.ended_reason, len(agent.asked)) == (RunState.FAILED, "budget", 1)
        assert run.spent.billed == 150
        assert "overdraft" in await h.kinds(run.id)


async def test_waiting_for_money_holds_no_seat_and_no_time(tmp_path: Path) -> None:
    """One call holds all the money; another, without a budget problem, still gets its turn in the same lane."""
    hanging = Hanging()
    hanging.puppet.most = 100

    async def poor(ctx: Context, spec: Any) -> Json:
        return [(await each).text for each in [ctx.call("a", f"hi {i}", key=f"k{i}") for i in range(2)]]

    async def waiting(ctx: Context, spec: Any) -> Json:
        first = asyncio.create_task(ctx.call("a", "first", key="first"))
        await hanging.arrived.get()
        second = asyncio.create_task(ctx.call("a", "second", key="second"))
        cheap = await ctx.call("cheap", "cheap", key="cheap")
        hanging.let_go.set()
        return [cheap.text, (await first).text, (await second).text]

    async with house(tmp_path, a=hanging.puppet, cheap=echo(cost=0, most=0)) as h:
        run = await h.drive(waiting, cap=Microdollars(150), concurrency=2)
        assert run.result == ["cheap", "first", "second"]


async def test_money_of_a_dead_process_comes_back_as_uncertain(tmp_path: Path) -> None:
    """A driver died with the whole day reserved; a new call waits, buries it, and is then refused for good."""

    async with house(tmp_path, a=echo(most=100), day_cap=150) as h:
        dead = dead_driver()
        run = await h.store.runs.create(new_run("run1"))
        claim = await h.store.leases.claim(run.id, dead, 0, NOW, NOW + 15)
        day = h.clock.now()
        levels = Levels((Level(id="run:run1"),), Microdollars(150)).now(day)
        opened = opening(run.id, claim.epoch, "k", most=100)._replace(levels=levels)
        assert await h.store.journal.open(opened) == Granted()
        other = await h.drive(all_at_once, spec=1)
        assert other.result == 0
        expired = await h.store.runs.get(run.id)
        assert expired is not None
        assert (expired.state, expired.spent.uncertain) == (RunState.INTERRUPTED, 100)


async def call_once(ctx: Context, spec: Any) -> Json:
    return (await ctx.call("a", "hi", key="k")).text


async def call_in_child(ctx: Context, spec: Any) -> Json:
    return await ctx.child("part", "call_once", None)


async def test_a_level_that_a_run_is_stored_with_by_name_counts_what_its_children_and_resumes_spend(
    tmp_path: Path,
) -> None:
    async with house(tmp_path, a=echo(cost=10, most=20)) as h:
        for work in (call_once, call_in_child):
            h.workloads.workload(work.__name__)(work)
        new = replace(new_run("first"), workload="call_in_child")
        budgets = Budgets(lineage=lineage_level(new.id), above=("pool:crew",))
        run = await h.engine.drive((await h.engine.create(replace(new, budgets=budgets))).id)
        (child,) = await h.store.archive.children(run.id)
        inherited = await h.engine.budgets_of(run)
        resumed = replace(new_run("second"), workload="call_once", budgets=inherited)
        await h.engine.drive((await h.engine.create(resumed)).id)

        assert child.budgets is not None
        assert "pool:crew" in child.budgets.above
        assert (await h.store.runs.balances(["pool:crew"]))["pool:crew"].settled == 20
