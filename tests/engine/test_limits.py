"""Limits by name inside of one run: how many pieces of its work use one thing at a time."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from muster.domain.canonical import Json
from muster.domain.entry import NewSignal
from muster.domain.errors import BadArgument
from muster.domain.run import RunState
from muster.engine.context import Context
from muster.testing.clock import FakeClock
from tests.engine.house import house


async def test_a_limit_lets_so_many_in_at_a_time_by_name(tmp_path: Path) -> None:
    inside, most = 0, 0

    async def uses(ctx: Context, spec: Any) -> Json:
        async def one(number: int, item: int) -> int:
            nonlocal inside, most
            async with ctx.limit("database", 3):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1
            return item

        return [value async for value in ctx.map(one, range(20), limit=10)]

    async with house(tmp_path) as h:
        assert (await h.drive(uses)).result == list(range(20))
        assert most == 3


async def test_who_waits_for_a_limit_uses_up_none_of_the_time_of_the_run(tmp_path: Path) -> None:
    clock = FakeClock()

    async def uses(ctx: Context, spec: Any) -> Json:
        async def held() -> None:
            async with ctx.limit("tool", 1):
                await ctx.receive("go on", "go on")

        async def waits() -> float:
            await asyncio.sleep(0)
            async with ctx.limit("tool", 1):
                return ctx.seconds

        _, seconds = await ctx.gather(held(), waits())
        return seconds

    async with house(tmp_path, clock=clock) as h:
        run = await h.create(uses, timeout=10.0)
        driving = asyncio.create_task(h.engine.drive(run.id))
        for _ in range(20):
            clock.advance(60.0)
            await h.store.changes.wait(0.02, h.store.changes.commits)
        assert not driving.done()
        signal = NewSignal(address=run.lineage_level, channel="go on", payload=None, client_id="x", at=clock.now())
        await h.store.signals.send(signal)
        while not driving.done():
            clock.advance(0.5)
            await h.store.changes.wait(0.02, h.store.changes.commits)
        assert driving.result().state is RunState.COMPLETED


@pytest.mark.parametrize("limit", [0, -1, True])
async def test_a_limit_lets_somebody_in(tmp_path: Path, limit: int) -> None:
    async def uses(ctx: Context, spec: Any) -> Json:
        with pytest.raises(BadArgument, match="limit must be 1 or more"):
            async with ctx.limit("nothing", limit):
                pass
        with pytest.raises(BadArgument, match="limit must be 1 or more"):
            ctx.map(lambda number, item: ctx.now("k"), [1], limit=limit)
        async with ctx.limit("one", 1):
            pass
        with pytest.raises(BadArgument, match="is 1 in this run and cannot be 2 too"):
            async with ctx.limit("one", 2):
                pass
        return "refused"

    async with house(tmp_path) as h:
        assert (await h.drive(uses)).result == "refused"


async def test_a_limit_inside_of_itself_is_refused(tmp_path: Path) -> None:
    async def held(ctx: Context, spec: Any) -> Json:
        async def inner() -> None:
            async with ctx.limit("db", 2):
                pass

        async with ctx.limit("db", 2):
            with pytest.raises(BadArgument, match="the limit 'db' is held here already"):
                await inner()
            with pytest.raises(BadArgument, match="is held here already"):
                await ctx.gather(inner(), inner())
        await inner()
        return "done"

    async with house(tmp_path) as h:
        assert (await h.drive(held)).result == "done"
