"""Waiting for a moment: counted from the first time, over by the clock whoever drives, and no process is held."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.domain.run import RunState
from muster.engine.context import Context
from muster.engine.drive import Leave
from muster.testing.clock import FakeClock
from tests.engine.house import House, echo, house

DAY = 86_400.0


async def sleeps_a_day(ctx: Context, spec: Any) -> Json:
    await ctx.call("a", "before", key="before")
    await ctx.sleep("pause", DAY)
    return (await ctx.call("a", "after", key="after")).text


async def pass_time(h: House, clock: FakeClock, seconds: float) -> None:
    clock.advance(seconds)
    await h.store.changes.wait(0.05, h.store.changes.commits)


async def drive_until_left(h: House, clock: FakeClock, run: Any) -> Any:
    """Drive a run as a worker does, until it is let go of."""
    driving = asyncio.create_task(h.engine.drive(run.id, leave=Leave.FOR_SIGNALS))
    while not driving.done():
        await pass_time(h, clock, 0.1)
    return driving.result()


async def test_a_sleep_of_a_day_holds_no_process_and_is_over_a_day_after_it_began(tmp_path: Path) -> None:
    clock, agent = FakeClock(), echo()
    async with house(tmp_path, clock=clock, a=agent) as h:
        run = await h.create(sleeps_a_day, timeout=60.0)
        left = await drive_until_left(h, clock, run)
        assert (left.state, left.lease.driver) == (RunState.WAITING, None)
        await pass_time(h, clock, DAY / 2)
        await h.engine.sweep()
        assert not await h.store.runs.submitted(10)
        assert (await drive_until_left(h, clock, run)).state is RunState.WAITING  # driven anew, it waits for the rest
        await pass_time(h, clock, DAY / 2)
        await h.engine.sweep()
        assert [one.id for one in await h.store.runs.submitted(10)] == [run.id]
        done = await drive_until_left(h, clock, run)
        assert (done.state, done.result) == (RunState.COMPLETED, "after")
        assert len(agent.asked) == 2


async def test_the_first_moment_under_a_key_counts(tmp_path: Path) -> None:
    clock = FakeClock()
    began = clock.now()

    async def waits(ctx: Context, spec: Any) -> Json:
        await ctx.until("eight", datetime.fromtimestamp(clock.now() + 3600.0, UTC))
        return clock.now() - began

    async with house(tmp_path, clock=clock) as h:
        run = await h.create(waits)
        assert (await drive_until_left(h, clock, run)).state is RunState.WAITING
        await pass_time(h, clock, 3000.0)
        assert (await drive_until_left(h, clock, run)).state is RunState.WAITING
        await pass_time(h, clock, 600.0)
        done = await drive_until_left(h, clock, run)
        assert done.state is RunState.COMPLETED
        assert 3600.0 <= done.result < 3700.0


async def test_a_moment_that_is_over_is_not_waited_for(tmp_path: Path) -> None:
    async def waits(ctx: Context, spec: Any) -> Json:
        await ctx.sleep("nothing", 0)
        await ctx.until("past", 1.0)
        return "went on"

    async with house(tmp_path) as h:
        assert (await h.drive(waits)).result == "went on"


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan"), "5", True, None])
async def test_what_is_no_time_to_wait_is_refused(tmp_path: Path, seconds: Any) -> None:
    async def waits(ctx: Context, spec: Any) -> Json:
        with pytest.raises(BadArgument, match="seconds must be 0 or more"):
            await ctx.sleep("pause", seconds)
        return "refused"

    async with house(tmp_path) as h:
        assert (await h.drive(waits)).result == "refused"


@pytest.mark.parametrize("moment", [datetime(2030, 1, 1), float("nan"), "tomorrow", None])
async def test_a_moment_must_be_certain(tmp_path: Path, moment: Any) -> None:
    async def waits(ctx: Context, spec: Any) -> Json:
        with pytest.raises(BadArgument, match="time must"):
            await ctx.until("then", moment)
        return "refused"

    async with house(tmp_path) as h:
        assert (await h.drive(waits)).result == "refused"
