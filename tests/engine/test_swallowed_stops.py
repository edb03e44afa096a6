"""A workload that catches every error: what stops the run decides its end all the same, and it can be resumed."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from muster.domain.budget import Allowance
from muster.domain.call import Reply, Request
from muster.domain.canonical import Json
from muster.domain.errors import AuthRefused, BudgetExhausted, ChildFailed, Interrupted, InvalidRequest
from muster.domain.money import Microdollars
from muster.domain.run import Origin, Reuse, Run, RunState
from muster.engine.context import Context
from tests.engine.house import Hanging, House, Puppet, echo, failing, house, reply

Work = Callable[[Context, Any], Awaitable[Json]]
ROWS = range(8)


async def answer(ctx: Context, number: int, **options: Any) -> str:
    text: str = (await ctx.call("a", f"row {number}", key=f"row/{number}", **options)).text
    return text


async def answer_or_say_why(ctx: Context, number: int) -> str:
    try:
        return await answer(ctx, number)
    except Exception as error:
        return f"FAILED {type(error).__name__}"


async def in_a_map(ctx: Context, spec: Any) -> Json:
    async def row(number: int, _: int) -> str:
        return await answer_or_say_why(ctx, number)

    return [text async for text in ctx.map(row, ROWS)]


async def in_a_gather(ctx: Context, spec: Any) -> Json:
    return await ctx.gather(*(answer_or_say_why(ctx, number) for number in ROWS))


async def in_a_plain_gather(ctx: Context, spec: Any) -> Json:
    rows = await asyncio.gather(*(answer(ctx, number) for number in ROWS), return_exceptions=True)
    return [row if isinstance(row, str) else f"FAILED {type(row).__name__}" for row in rows]


async def one_by_one(ctx: Context, spec: Any) -> Json:
    return [await answer_or_say_why(ctx, number) for number in ROWS]


async def in_steps(ctx: Context, spec: Any) -> Json:
    rows = []
    for number in ROWS:
        try:
            rows.append(await ctx.step(f"step/{number}", partial(answer_or_say_why, ctx, number)))
        except Exception as error:
            rows.append(f"FAILED {type(error).__name__}")
    return rows


async def in_steps_of_steps(ctx: Context, spec: Any) -> Json:
    async def outer(number: int) -> Json:
        try:
            return await ctx.step(f"inner/{number}", lambda: answer_or_say_why(ctx, number))
        except Exception:
            return "FAILED in its step"

    try:
        return [await ctx.step(f"outer/{number}", partial(outer, number)) for number in ROWS]
    except Exception:
        return "FAILED"


async def as_another_error(ctx: Context, spec: Any) -> Json:
    try:
        return [await answer(ctx, number) for number in ROWS]
    except Exception as error:
        raise ValueError("a row failed") from error


async def of_children(ctx: Context, spec: Any) -> Json:
    async def row(_: int, number: int) -> Json:
        try:
            return await ctx.child(f"child/{number}", "one_row", number)
        except Exception as error:
            return f"FAILED {type(error).__name__}"

    return [text async for text in ctx.map(row, ROWS, limit=1)]


async def of_grandchildren(ctx: Context, spec: Any) -> Json:
    try:
        return await ctx.child("all", "of_children", None)
    except Exception as error:
        return f"FAILED {type(error).__name__}"


async def one_row(ctx: Context, number: int) -> Json:
    return await answer_or_say_why(ctx, number)


SWALLOWERS = [
    in_a_map,
    in_a_gather,
    in_a_plain_gather,
    one_by_one,
    in_steps,
    in_steps_of_steps,
    as_another_error,
    of_children,
    of_grandchildren,
]


async def create(h: House, work: Work, cap: int | None = None) -> Run:
    for below in (one_row, of_children):
        h.workloads.workload(below.__name__)(below)
    return await h.create(work, cap=None if cap is None else Microdollars(cap))


@pytest.mark.parametrize("work", SWALLOWERS, ids=lambda work: work.__name__)
async def test_a_spent_budget_ends_the_run_whatever_its_workload_returns(tmp_path: Path, work: Work) -> None:
    agent = echo(cost=10, most=10)
    async with house(tmp_path, a=agent) as h:
        run = await h.engine.drive((await create(h, work, 35)).id)
        assert (run.state, run.ended_reason, run.result) == (RunState.FAILED, "budget", None)
        assert run.error is not None
        assert "does not cover this call" in run.error["message"]
        assert (len(agent.asked), run.spent.settled, run.spent.reserved) == (3, 30, 0)


@pytest.mark.parametrize("work", SWALLOWERS, ids=lambda work: work.__name__)
async def test_what_was_stopped_is_resumed_without_a_hole_and_without_paying_again(tmp_path: Path, work: Work) -> None:
    agent = echo(cost=10, most=10)
    async with house(tmp_path, a=agent) as h:
        stopped = await h.engine.drive((await create(h, work, 35)).id)
        resumed = await h.descend(stopped, Origin(run=stopped.id, reuse=Reuse.REPLIES))
        run = await h.engine.drive(resumed.id)
        assert (run.state, run.result) == (RunState.COMPLETED, [f"row {number}" for number in ROWS])
        assert len(agent.asked) == len(ROWS)


@pytest.mark.parametrize("work", SWALLOWERS, ids=lambda work: work.__name__)
async def test_a_refused_key_ends_the_run_whatever_its_workload_returns(tmp_path: Path, work: Work) -> None:
    agent = failing(*[AuthRefused("the key was revoked", status=401)] * 100)
    async with house(tmp_path, a=agent) as h:
        run = await h.engine.drive((await create(h, work)).id)
        assert (run.state, run.ended_reason, run.result) == (RunState.FAILED, "auth_refused", None)


async def test_after_a_stop_no_call_reaches_a_provider_even_one_that_would_fit(tmp_path: Path) -> None:
    dear, cheap = echo(cost=50, most=50), echo(cost=1, most=1)
    raised: list[Exception] = []

    async def work(ctx: Context, spec: Any) -> Json:
        for agent, key in (("dear", "first"), ("cheap", "second"), ("cheap", "third")):
            try:
                await ctx.call(agent, "hi", key=key)
            except BudgetExhausted as error:
                raised.append(error)
        return "done"

    async with house(tmp_path, dear=dear, cheap=cheap) as h:
        run = await h.drive(work, cap=Microdollars(20))
        assert (run.state, len(dear.asked), len(cheap.asked)) == (RunState.FAILED, 0, 0)
        assert len(raised) == 3
        assert all(error is raised[0] for error in raised)


async def test_a_child_is_not_started_after_a_stop(tmp_path: Path) -> None:
    async def work(ctx: Context, spec: Any) -> Json:
        await answer_or_say_why(ctx, 0)
        try:
            return await ctx.child("child", "one_row", 1)
        except BudgetExhausted:
            return "FAILED"

    async with house(tmp_path, a=echo(most=10)) as h:
        run = await h.engine.drive((await create(h, work, 5)).id)
        assert (run.state, run.ended_reason) == (RunState.FAILED, "budget")
        assert await h.store.archive.children(run.id) == []


async def test_the_refusal_of_an_allowance_can_be_caught(tmp_path: Path) -> None:
    small = Allowance(name="small", cap=Microdollars(15))

    async def work(ctx: Context, spec: Any) -> Json:
        rows = []
        for number in range(3):
            try:
                rows.append(await ctx.step(f"s/{number}", partial(answer, ctx, number, allowance=small)))
            except BudgetExhausted:
                rows.append("no money")
        return [*rows, await answer(ctx, 7)]

    async with house(tmp_path, a=echo(cost=10, most=10)) as h:
        run = await h.drive(work, cap=Microdollars(1000))
        assert (run.state, run.result) == (RunState.COMPLETED, ["row 0", "no money", "no money", "row 7"])


async def test_a_call_that_the_workload_can_do_without_is_refused_and_the_run_goes_on(tmp_path: Path) -> None:
    async def work(ctx: Context, spec: Any) -> Json:
        try:
            await ctx.call("dear", "improve it", key="better", optional=True)
        except BudgetExhausted:
            return await answer(ctx, 1)
        return "paid"

    async with house(tmp_path, a=echo(cost=10, most=10), dear=echo(most=50)) as h:
        run = await h.drive(work, cap=Microdollars(20))
        assert (run.state, run.result) == (RunState.COMPLETED, "row 1")


async def test_the_failure_of_a_single_call_can_be_caught(tmp_path: Path) -> None:
    async with house(tmp_path, a=failing(InvalidRequest("too long", status=400), then="ok")) as h:
        run = await h.drive(one_by_one)
        assert (run.state, run.result) == (RunState.COMPLETED, ["FAILED InvalidRequest", *["ok"] * 7])


async def test_a_child_that_spends_its_own_budget_can_be_caught(tmp_path: Path) -> None:
    async def work(ctx: Context, spec: Any) -> Json:
        try:
            await ctx.child("small", "one_by_one", None, budget_usd="0.000025")
        except ChildFailed as error:
            return [error.reason, await answer(ctx, 100)]
        return "completed"

    async with house(tmp_path, a=echo(cost=10, most=10)) as h:
        h.workloads.workload("one_by_one")(one_by_one)
        run = await h.drive(work, cap=Microdollars(1000))
        assert (run.state, run.result) == (RunState.COMPLETED, ["budget", "row 100"])


async def test_an_optional_child_that_its_parents_budget_stops_can_be_caught(tmp_path: Path) -> None:
    async def work(ctx: Context, spec: Any) -> Json:
        try:
            return await ctx.child("child", "one_by_one", None, optional=True)
        except ChildFailed as error:
            return error.reason

    async with house(tmp_path, a=echo(cost=10, most=10)) as h:
        h.workloads.workload("one_by_one")(one_by_one)
        run = await h.drive(work, cap=Microdollars(35))
        assert (run.state, run.result) == (RunState.COMPLETED, "budget")


async def test_an_optional_child_whose_key_is_refused_ends_the_run_all_the_same(tmp_path: Path) -> None:
    async def work(ctx: Context, spec: Any) -> Json:
        try:
            return await ctx.child("child", "one_by_one", None, optional=True)
        except ChildFailed as error:
            return error.reason

    async with house(tmp_path, a=failing(*[AuthRefused("the key was revoked", status=401)] * 100)) as h:
        h.workloads.workload("one_by_one")(one_by_one)
        run = await h.drive(work)
        assert (run.state, run.ended_reason) == (RunState.FAILED, "auth_refused")


async def test_a_workload_that_survives_its_cancellation_does_not_complete_without_its_rows(tmp_path: Path) -> None:
    hanging = Hanging()

    async def stubborn(ctx: Context, spec: Any) -> Json:
        rows = []
        for number in range(3):
            try:
                rows.append(await answer(ctx, number))
            except BaseException as error:
                rows.append(f"FAILED {type(error).__name__}")
        return rows

    async with house(tmp_path, a=hanging.puppet) as h:
        created = await h.create(stubborn)
        driving = asyncio.create_task(h.engine.drive(created.id))
        await hanging.arrived.get()
        h.engine.stop_all(Interrupted("stop"), now=False)
        hanging.let_go.set()
        assert (await driving).state is RunState.INTERRUPTED
        run = await h.engine.drive(created.id)
        assert (run.state, run.result) == (RunState.COMPLETED, ["row 0", "row 1", "row 2"])


async def test_a_map_returns_the_failures_of_items_in_their_places(tmp_path: Path) -> None:
    async def refuse_odd(request: Request, n: int) -> Reply:
        if int(request.messages[-1].text.split()[-1]) % 2:
            raise InvalidRequest("too odd", status=400)
        return reply(request.messages[-1].text)

    async def work(ctx: Context, spec: Any) -> Json:
        async def row(number: int, _: int) -> str:
            return await answer(ctx, number)

        rows = ctx.map(row, range(5), limit=2, return_exceptions=True)
        return [repr(row) if isinstance(row, Exception) else row async for row in rows]

    async with house(tmp_path, a=Puppet(refuse_odd)) as h:
        run = await h.drive(work)
        assert run.state is RunState.COMPLETED
        assert [text[:14] for text in run.result] == ["row 0", "InvalidRequest", "row 2", "InvalidRequest", "row 4"]


async def test_a_map_that_returns_failures_still_ends_with_a_stop_of_the_run(tmp_path: Path) -> None:
    heard: list[object] = []

    async def work(ctx: Context, spec: Any) -> Json:
        async def row(number: int, _: int) -> str:
            return await answer(ctx, number)

        async for text in ctx.map(row, ROWS, limit=1, return_exceptions=True):
            heard.append(text)  # noqa: PERF401  # what came before the stop is heard
        return "done"

    async with house(tmp_path, a=echo(cost=10, most=10)) as h:
        run = await h.drive(work, cap=Microdollars(25))
        assert (run.state, run.ended_reason, heard) == (RunState.FAILED, "budget", ["row 0", "row 1"])
