"""Keys: each names one thing in a run. One that forgets its item is refused, and a resume finds each value again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muster.domain.canonical import Json
from muster.domain.run import Origin, Reuse, RunState
from muster.engine.context import Context
from tests.engine.house import echo, house

Use = Callable[[Context, int], Any]


async def doubled(ctx: Context, item: int) -> Json:
    return await ctx.step("double", lambda: 2 * item)


async def told(ctx: Context, item: int) -> Json:
    await ctx.emit("done", "test.done", {"item": item})
    return item


async def drawn(ctx: Context, item: int) -> Json:
    return ctx.random("order").random()


async def timed(ctx: Context, item: int) -> Json:
    return await ctx.now("began")


async def step_then_event(ctx: Context, item: int) -> Json:
    return await (doubled(ctx, item) if item % 2 else ctx.emit("double", "test.done"))


USES = [doubled, told, drawn, timed, step_then_event]


@pytest.mark.parametrize("window", [1, 4])
@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
async def test_a_key_that_forgets_its_item_is_refused(tmp_path: Path, use: Use, window: int) -> None:
    async def work(ctx: Context, spec: Any) -> Json:
        async def one(_: int, item: int) -> Any:
            return await use(ctx, item)

        return [value async for value in ctx.map(one, [1, 2, 3, 4], limit=window)]

    async with house(tmp_path) as h:
        run = await h.drive(work)
        assert (run.state, run.ended_reason) == (RunState.FAILED, "key_reused")
        assert run.error is not None
        assert "use a different key for each" in run.error["suggestions"][0]
        again = await h.engine.drive((await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLIES))).id)
        assert again.ended_reason == "key_reused"


async def test_a_resume_finds_the_value_of_every_key_once(tmp_path: Path) -> None:
    made: list[str] = []
    fails = True

    def make() -> Json:
        made.append("first")
        return len(made)

    async def work(ctx: Context, spec: Any) -> Json:
        first = await ctx.step("first", make)
        chance = ctx.random("order").random()
        await ctx.emit("told", "test.told")
        if fails:
            raise ValueError("not yet")
        return [first, chance, ctx.random("another").random() != chance]

    async with house(tmp_path, a=echo()) as h:
        failed = await h.drive(work)
        assert failed.ended_reason == "workload_error"
        fails = False
        run = await h.engine.drive((await h.descend(failed, Origin(run=failed.id, reuse=Reuse.REPLIES))).id)
        assert (run.state, run.result[0], run.result[2], made) == (RunState.COMPLETED, 1, True, ["first"])


async def test_a_step_that_failed_may_be_tried_again_under_its_key(tmp_path: Path) -> None:
    tries: list[int] = []

    def flaky() -> Json:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("not now")
        return len(tries)

    async def work(ctx: Context, spec: Any) -> Json:
        try:
            return await ctx.step("flaky", flaky)
        except OSError:
            return await ctx.step("flaky", flaky)

    async with house(tmp_path) as h:
        assert (await h.drive(work)).result == 2
