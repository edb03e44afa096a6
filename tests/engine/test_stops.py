"""A run that is told to stop once: whatever its workload does, the calls on the wire are answered and settled."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from muster.domain.canonical import Json
from muster.domain.entry import AttemptState
from muster.domain.errors import Interrupted
from muster.domain.run import Run, RunState
from muster.engine.context import Context
from muster.engine.worker import Worker
from muster.testing.stores import new_run
from tests.engine.house import Hanging, House, check_books, house

Work = Callable[[Context, Any], Awaitable[Json]]


async def call(ctx: Context, number: int) -> str:
    return (await ctx.call("a", f"hi {number}", key=f"k{number}")).text


async def step_between_results(ctx: Context, spec: Any) -> Json:
    """As a suite does: a page of results is kept while the next cases are asked."""

    async def one(number: int, wait: bool) -> str:
        return await call(ctx, number) if wait else ""

    pages = 0
    async for _ in ctx.map(one, [False, True, True]):
        await ctx_is_free.wait()
        pages += 1
        await ctx.step(f"page/{pages}", lambda: 1)
    return None


async def in_a_task_group(ctx: Context, spec: Any) -> Json:
    async with asyncio.TaskGroup() as group:
        group.create_task(call(ctx, 1))
        group.create_task(call(ctx, 2))
        await ctx_is_free.wait()
        group.create_task(call(ctx, 3))
    return None


async def in_a_plain_gather(ctx: Context, spec: Any) -> Json:
    async def later() -> None:
        await ctx_is_free.wait()
        await ctx.step("later", lambda: 1)

    await asyncio.gather(call(ctx, 1), call(ctx, 2), later())
    return None


async def children_in_a_task_group(ctx: Context, spec: Any) -> Json:
    async with asyncio.TaskGroup() as group:
        for number in (1, 2):
            group.create_task(ctx.child(f"child/{number}", "one_call", number))
        await ctx_is_free.wait()
        group.create_task(ctx.child("child/3", "one_call", 3))
    return None


async def a_child_beside_calls(ctx: Context, spec: Any) -> Json:
    async with asyncio.TaskGroup() as group:
        group.create_task(call(ctx, 1))
        group.create_task(call(ctx, 2))
        group.create_task(ctx.child("child", "one_step", None))
    return None


async def one_step(ctx: Context, spec: Any) -> Json:
    await ctx_is_free.wait()
    return await ctx.step("only", lambda: 1)


async def one_call(ctx: Context, spec: Any) -> Json:
    return await call(ctx, spec)


async def left_to_themselves(ctx: Context, spec: Any) -> Json:
    tasks = [asyncio.create_task(call(ctx, number)) for number in (1, 2)]
    await ctx_is_free.wait()
    await ctx.call("a", "more", key="more")
    return len(tasks)


ctx_is_free = asyncio.Event()  # whether a workload may go on after it has calls on the wire


@pytest.fixture(autouse=True)
def workloads_wait() -> None:
    global ctx_is_free
    ctx_is_free = asyncio.Event()


async def on_the_wire(hanging: Hanging, calls: int) -> None:
    for _ in range(calls):
        await hanging.arrived.get()


async def settle_down(h: House) -> None:
    """Give every task that can go on its turn, also after a few commits, so that whatever is cut is cut by now."""
    for number in range(10):
        await h.store.runs.create(new_run(f"flush{number}"))
        for _ in range(10):
            await asyncio.sleep(0)


async def stop_with_two_on_the_wire(h: House, hanging: Hanging, run: Run) -> Run:
    driving = asyncio.create_task(h.engine.drive(run.id))
    await on_the_wire(hanging, 2)
    h.engine.stop_all(Interrupted("stop"), now=False)
    ctx_is_free.set()
    await settle_down(h)
    assert not driving.done()
    hanging.let_go.set()
    return await driving


async def check_answered(h: House, run: Run) -> None:
    runs = [run, *await h.store.archive.children(run.id)]
    attempts = [attempt for one in runs for attempt in await h.store.archive.attempts(one.id)]
    assert [attempt.state for attempt in attempts] == [AttemptState.SUCCEEDED] * 2
    assert all(one.spent.reserved == 0 for one in runs)


@pytest.mark.parametrize(
    "work",
    [
        step_between_results,
        in_a_task_group,
        in_a_plain_gather,
        children_in_a_task_group,
        a_child_beside_calls,
        left_to_themselves,
    ],
)
async def test_a_run_told_to_stop_keeps_its_calls_on_the_wire_whatever_its_workload_does(
    tmp_path: Path, work: Work
) -> None:
    hanging = Hanging()
    async with house(tmp_path, a=hanging.puppet) as h:
        h.workloads.workload("one_call")(one_call)
        h.workloads.workload("one_step")(one_step)
        stopped = await stop_with_two_on_the_wire(h, hanging, await h.create(work))
        assert stopped.state is RunState.INTERRUPTED
        await check_answered(h, stopped)
        assert (await h.engine.drive(stopped.id)).state is RunState.COMPLETED
        assert len({request.messages[-1].text for request in hanging.puppet.asked}) == len(hanging.puppet.asked)


async def test_a_workload_that_fails_leaves_its_calls_on_the_wire_until_they_are_answered(tmp_path: Path) -> None:
    hanging = Hanging()

    async def fails(ctx: Context, spec: Any) -> Json:
        async def break_down() -> str:
            await ctx_is_free.wait()
            raise ValueError("broken")

        return await asyncio.gather(call(ctx, 1), call(ctx, 2), break_down())

    async with house(tmp_path, a=hanging.puppet) as h:
        run = await h.create(fails)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await on_the_wire(hanging, 2)
        ctx_is_free.set()
        await settle_down(h)
        hanging.let_go.set()
        failed = await driving
        assert failed.state is RunState.FAILED
        await check_answered(h, failed)


async def test_a_second_stop_cuts_what_the_first_waits_for(tmp_path: Path) -> None:
    hanging = Hanging()
    async with house(tmp_path, a=hanging.puppet) as h:
        run = await h.create(left_to_themselves)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await on_the_wire(hanging, 2)
        h.engine.stop_all(Interrupted("stop"), now=False)
        ctx_is_free.set()
        await settle_down(h)
        h.engine.stop_all(Interrupted("stop"), now=True)
        stopped = await driving
        assert (stopped.state, stopped.calls.uncertain) == (RunState.INTERRUPTED, 2)
        await check_books(h.store, run.id)


@pytest.mark.parametrize("turns", range(12))
async def test_a_stop_that_comes_before_a_run_is_claimed_holds_for_it(tmp_path: Path, turns: int) -> None:
    hanging = Hanging()
    hanging.let_go.set()
    async with house(tmp_path, a=hanging.puppet) as h:
        run = await h.create(one_call, spec=1)
        driving = asyncio.create_task(h.engine.drive(run.id))
        for _ in range(turns):
            await asyncio.sleep(0)
        asked = len(hanging.puppet.asked)
        h.engine.stop_all(Interrupted("stop"), now=False)
        stopped = await driving
        assert asked or stopped.state is RunState.INTERRUPTED
        assert len(hanging.puppet.asked) == asked


async def test_a_worker_that_is_canceled_waits_for_the_calls_on_the_wire(tmp_path: Path) -> None:
    hanging, ended = Hanging(), list[Run]()

    async def note_end(run: Run) -> None:
        ended.append(run)

    async with house(tmp_path, a=hanging.puppet) as h:
        runs = [await h.create(one_call, spec=number, submitted=True) for number in (1, 2)]
        worker = Worker(
            h.store, h.engine, h.clock, most=2, on_end=note_end, on_error=lambda run, error: pytest.fail(str(error))
        )
        serving = asyncio.create_task(worker.serve())
        await on_the_wire(hanging, 2)
        serving.cancel()
        await settle_down(h)
        assert not serving.done()
        hanging.let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await serving
        after = [await h.store.runs.get(run.id) for run in runs]
        assert [run and run.calls.done for run in after] == [1, 1]
        for run in runs:
            await check_books(h.store, run.id)
