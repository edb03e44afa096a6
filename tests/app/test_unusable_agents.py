"""A run whose agent has no key, no price or no section is not done, whatever its workload makes of the errors."""

from pathlib import Path
from typing import Any

import pytest

import muster

MODEL = {"kind": "openai", "model": "nobody-knows-it", "base_url": "http://127.0.0.1:9/v1"}
BROKEN: dict[str, dict[str, Any]] = {
    "no key": {"late": {**MODEL, "key_env": "MUSTER_TEST_KEY", "price": {"input": 1, "output": 1}}},
    "no price": {"late": {**MODEL, "key_env": "PATH"}},
    "no section": {},
}


async def yes(request: muster.Request) -> str:
    return "yes"


@muster.workload("swallows errors of agents")
async def swallow(ctx: muster.Context, agents: list[str]) -> list[str]:
    async def one(number: int, agent: str) -> str:
        try:
            return (await ctx.call(agent, f"row {number}", key=f"row/{number}")).text
        except Exception as error:
            return type(error).__name__

    return [text async for text in ctx.map(one, agents)]


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_swallowed_error_of_an_agent_that_cannot_be_asked_ends_the_run(tmp_path: Path, broken: str) -> None:
    async with muster.open(tmp_path, agents={"desk": yes, **BROKEN[broken]}) as m:
        run = await m.start(swallow, ["desk", "late", "desk"], name="rows")
        with pytest.raises(muster.RunFailed, match="late"):
            await run.result()
        stopped = await run.run()
        assert (stopped.state, stopped.ended_reason) == (muster.RunState.FAILED, "configuration")
        assert isinstance(muster.AgentUnusable("x"), muster.BadConfiguration)
    async with muster.open(tmp_path, agents={"desk": yes, "late": yes}) as m:
        again = await m.resume("rows")
        assert await again.result() == ["yes", "yes", "yes"]


@muster.workload("swallows errors of children")
async def above(ctx: muster.Context, agents: list[str]) -> str:
    try:
        return str(await ctx.child("rows", "swallows errors of agents", agents))
    except Exception as error:
        return type(error).__name__


async def test_a_swallowed_child_without_its_agent_ends_the_parent_too(tmp_path: Path) -> None:
    async with muster.open(tmp_path, agents={"desk": yes}) as m:
        run = await m.start(above, ["desk", "late"], name="above")
        with pytest.raises(muster.RunFailed, match="late"):
            await run.result()
        assert (await run.run()).ended_reason == "configuration"
    async with muster.open(tmp_path, agents={"desk": yes, "late": yes}) as m:
        assert await (await m.resume("above")).result() == "['yes', 'yes']"
