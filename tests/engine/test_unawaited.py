"""What a workload made and did not wait for: what never began fails the run, what was cut at the end is told by it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from muster.domain.canonical import Json
from muster.domain.errors import InvalidRequest
from muster.domain.run import RunState
from muster.engine.context import LEFT, Context
from tests.engine.house import Hanging, echo, failing, house

Work = Callable[[Context, Any], Awaitable[Json]]


async def label(number: int, item: str) -> str:
    return item


async def forgotten_map(ctx: Context, spec: Any) -> Json:
    ctx.map(label, ["a"])
    return "done"


async def forgotten_task(ctx: Context, spec: Any) -> Json:
    task = asyncio.create_task(ctx.call("a", "hi", key="late"))
    return str(len(task.get_name()) > 0)


@pytest.mark.parametrize(
    ("work", "what"), [(forgotten_map, "ctx.map of label"), (forgotten_task, "ctx.call under 'late'")]
)
async def test_what_never_began_fails_the_run(tmp_path: Path, work: Work, what: str) -> None:
    async with house(tmp_path, a=echo()) as h:
        run = await h.drive(work)
        assert run.state is RunState.FAILED
        assert run.error is not None
        assert run.error["message"] == f"{what} was not awaited, so nothing was done"


async def race(ctx: Context, spec: Any) -> Json:
    """Return the first answer, and leave the other call as it is."""
    tasks = {asyncio.create_task(ctx.call(agent, "hi", key=agent)) for agent in ("quick", "slow")}
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    return [task.result().text for task in done]


async def failed_gather(ctx: Context, spec: Any) -> Json:
    with suppress(InvalidRequest):
        await asyncio.gather(ctx.call("broken", "hi", key="broken"), ctx.call("slow", "hi", key="slow"))
    return "partial"


async def left_step(ctx: Context, spec: Any) -> Json:
    async def waits() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(ctx.step("slow", waits))
    await ctx.now("now")
    return task.done()


@pytest.mark.parametrize(
    ("work", "what"),
    [(race, "ctx.call under 'slow'"), (failed_gather, "ctx.call under 'slow'"), (left_step, "ctx.step under 'slow'")],
)
async def test_what_was_cut_at_the_end_is_told_by_the_run(
    tmp_path: Path, work: Work, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken = failing(InvalidRequest("no"))
    async with house(tmp_path, slow=Hanging().puppet, quick=echo(), broken=broken) as h:
        run = await h.drive(work)
        assert run.state is RunState.COMPLETED
        left = [event.data for event in await h.store.events.read(run.id, 0, 100) if event.kind == LEFT]
        assert left == [{"work": [what], "total": 1}]
    assert f"{what} was still at work when the workload returned" in caplog.text


async def canceled(ctx: Context, spec: Any) -> Json:
    """Give up a race by canceling its loser, which may be waited for elsewhere."""

    async def both() -> object:
        return await asyncio.gather(ctx.call("slow", "hi", key="one"), ctx.call("slow", "hi", key="two"))

    task = asyncio.create_task(both())
    await ctx.call("quick", "hi", key="quick")
    task.cancel()
    return "done"


async def broken_off(ctx: Context, spec: Any) -> Json:
    """Look for the first answer that will do."""

    async def ask(number: int, agent: str) -> str:
        return (await ctx.call(agent, "hi", key=agent)).text

    async for text in ctx.map(ask, ["quick", "slow"]):
        if text:
            break
    return text


async def listening(ctx: Context, spec: Any) -> Json:
    """Listen beside the work, and lose nothing when that is done."""
    listener = asyncio.create_task(ctx.receive("stop", "stop"))
    await ctx.call("quick", "hi", key="quick")
    return listener.done()


async def waited_for(ctx: Context, spec: Any) -> Json:
    tasks = [asyncio.create_task(ctx.call("quick", text, key=text)) for text in "ab"]
    async with asyncio.TaskGroup() as group:
        group.create_task(ctx.call("quick", "c", key="c"))
    return [(await task).text for task in tasks]


@pytest.mark.parametrize("work", [canceled, broken_off, listening, waited_for])
async def test_what_was_given_up_on_purpose_is_not_told(tmp_path: Path, work: Work) -> None:
    async with house(tmp_path, quick=echo(), slow=Hanging().puppet) as h:
        run = await h.drive(work)
        assert run.state is RunState.COMPLETED
        assert LEFT not in await h.kinds(run.id)
