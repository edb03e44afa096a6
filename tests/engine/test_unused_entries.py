"""What a driver stored and the next one does not ask for: told where it was done anew, and only there."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from muster.domain.canonical import Json
from muster.domain.errors import Interrupted
from muster.domain.run import Origin, Reuse, Run, RunState
from muster.engine.context import Context
from tests.engine.house import House, echo, house

Work = Callable[[Context, Any, int], Awaitable[Json]]  # the last: which time it is driven, from one


async def told(h: House, run: Run) -> Json:
    """Return what the run tells of stored results that it did not use."""
    event = await h.store.events.first(run.id, "journal.unused")
    return None if event is None else dict(event.data)


async def driven_twice(h: House, work: Work, **rest: Any) -> Run:
    """Interrupt a run after what it does first, and drive it to its end."""
    times: list[int] = []

    async def workload(ctx: Context, spec: Any) -> Json:
        times.append(1)
        result = await work(ctx, spec, len(times))
        if len(times) == 1:
            raise Interrupted("the process is stopped")
        return result

    run = await h.create(workload, **rest)
    assert (await h.engine.drive(run.id)).state is RunState.INTERRUPTED
    done = await h.engine.drive(run.id)
    assert done.state is RunState.COMPLETED, done.error
    return done


async def other_call(ctx: Context, spec: Any, time: int) -> Json:
    await ctx.call("a", "the same", key="stable")
    return (await ctx.call("a", "hello", key=f"call/{time}")).text


async def other_step(ctx: Context, spec: Any, time: int) -> Json:
    await ctx.step("stable", lambda: 1)
    return await ctx.step(f"step/{time}", lambda: time)


async def other_child(ctx: Context, spec: Any, time: int) -> Json:
    return await ctx.child(f"child/{time}", "a child", None)


async def a_child(ctx: Context, spec: Any) -> Json:
    return "done"


@pytest.mark.parametrize(
    ("work", "key"),
    [(other_call, "call/1"), (other_step, "step/1"), (other_child, "child/1")],
    ids=lambda one: str(one),
)
async def test_what_is_done_anew_under_another_key_is_told(
    tmp_path: Path, work: Work, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(tmp_path, a=echo()) as h:
        h.workloads.workload("a child")(a_child)
        run = await driven_twice(h, work)
        assert await told(h, run) == {"keys": [key], "total": 1, "repeated": 1}
        assert f"run {run.id}: 1 stored result was not used when the run was resumed: {key!r}" in caplog.text


async def test_a_run_that_continues_another_tells_what_it_left_unused(tmp_path: Path) -> None:
    async def first(ctx: Context, spec: Any) -> Json:
        return await other_call(ctx, spec, 1)

    async def second(ctx: Context, spec: Any) -> Json:
        return await other_call(ctx, spec, 2)

    async with house(tmp_path, a=echo()) as h:
        run = await h.drive(first, workload="work")
        whole = await h.drive(second, workload="work", origin=Origin(run=run.id, reuse=Reuse.REPLIES))
        calls = await h.drive(second, workload="work", origin=Origin(run=run.id, reuse=Reuse.CALLS))
        fork = await h.drive(second, workload="work", origin=Origin(run=run.id, reuse=Reuse.REPLIES, fork_key="stable"))
        assert await told(h, whole) == {"keys": ["call/1"], "total": 1, "repeated": 1}
        assert [await told(h, calls), await told(h, fork)] == [None, None]


async def race(ctx: Context, spec: Any, time: int) -> Json:
    """Take the first answer of two that are asked for at once, and go on."""
    tasks = [asyncio.ensure_future(ctx.call("a", "hello", key=f"race/{number}")) for number in range(2)]
    await asyncio.wait(tasks, return_when=asyncio.ALL_COMPLETED if time == 1 else asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    return (await ctx.call("a", f"after {time}", key=f"after/{time}")).text if time == 2 else None


async def hurry(ctx: Context, spec: Any, time: int) -> Json:
    """Ask somebody else too, the first time, when an answer does not come at once."""
    await ctx.call("a", "hello", key="first")
    if time == 1:
        await ctx.call("a", "hello, in other words", key="second")
    return (await ctx.call("a", "after", key="after")).text if time == 2 else None


async def further(ctx: Context, spec: Any, time: int) -> Json:
    """Do more than before, under keys of its own."""
    return [(await ctx.call("a", "hello", key=f"vote/{number}")).text for number in range(time)]


async def moved(ctx: Context, spec: Any, time: int) -> Json:
    """Read a step again that was done before, instead of doing it."""
    await (ctx.step("step", lambda: 1) if time == 1 else ctx.recall("step"))
    return await ctx.step("after", lambda: 1) if time == 2 else None


@pytest.mark.parametrize("work", [race, hurry, further, moved], ids=lambda work: str(work.__name__))
async def test_what_a_workload_has_no_use_for_is_no_alarm(
    tmp_path: Path, work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(tmp_path, a=echo()) as h:
        run = await driven_twice(h, work)
        unused: Any = await told(h, run)
        assert unused is None or unused["repeated"] == 0
        assert "not used" not in caplog.text
