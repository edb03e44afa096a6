"""The fixture of the pytest plugin: a Muster of its own for a test, whose clock stands still."""

import asyncio
import subprocess
import sys
import time
from typing import Any

import pytest

import muster
from muster.testing import FakeAgent, MusterTest

DAY = 24 * 60 * 60


@muster.workload("a night of a test")
async def night(ctx: muster.Context, spec: Any) -> str:
    await ctx.sleep("night", DAY)
    return (await ctx.call("desk", "good morning", key="morning")).text


@muster.workload("a greeting of a test")
async def greeting(ctx: muster.Context, spec: Any) -> str:
    return (await ctx.call("desk", spec["to"], key="greeting")).text


async def test_a_day_passes_when_the_test_says_so(muster_test: MusterTest) -> None:
    agent = FakeAgent("morning")
    muster_test.agents["desk"] = agent
    async with muster_test.open() as m:
        run = await m.start("a night of a test", None)
        waiting = asyncio.ensure_future(run.result())
        assert await muster_test.clock.someone_sleeps(at_least=DAY) == DAY
        muster_test.clock.advance(DAY - 1)
        assert await muster_test.clock.someone_sleeps() <= 1
        assert agent.asked == []
        muster_test.clock.advance(1)
        assert await waiting == "morning"


def test_a_night_passes_at_once_where_nothing_else_is_waited_for(muster_test: MusterTest) -> None:
    muster_test.agents["desk"] = FakeAgent([muster.Overloaded("busy"), "morning"])
    began = muster_test.clock.now()

    assert muster_test.run(night, None, timeout=5) == "morning"
    assert DAY <= muster_test.clock.now() - began < DAY + 60
    assert len(muster_test.clock.slept) < 20  # nobody looks again and again whether the run's own time is over


def look_for_a_while() -> None:
    time.sleep(0.05)  # of real time, in which that of the test stands still


@muster.workload("a poll of a test")
async def poll(ctx: muster.Context, spec: Any) -> str:
    async def look() -> str:
        for number in range(5):
            await ctx.sleep(f"poll/{number}", 60)
            await ctx.step(f"look/{number}", look_for_a_while)
        return "ready"

    async def deadline() -> str:
        await ctx.sleep("deadline", 600)
        return "gave up"

    tasks = [asyncio.ensure_future(one()) for one in (look, deadline)]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    return done.pop().result()


def test_sleepers_wake_in_the_order_of_their_times(muster_test: MusterTest) -> None:
    assert muster_test.run(poll, None) == "ready"


def test_an_agent_that_never_answers_sees_the_time_pass(muster_test: MusterTest) -> None:
    async def never(request: muster.Request) -> str:
        await asyncio.Event().wait()
        return "too late"

    muster_test.agents["desk"] = never
    with pytest.raises(muster.RunFailed, match="60 s"):
        muster_test.run(greeting, {"to": "Ada"}, timeout=60)


async def test_in_an_async_test_it_says_what_to_use(muster_test: MusterTest) -> None:
    with pytest.raises(muster.Conflict, match="for tests that are not async"):
        muster_test.run(poll, None)


def test_a_test_that_is_not_async_runs_a_workload(muster_test: MusterTest) -> None:
    muster_test.agents["desk"] = agent = FakeAgent({"Ada": "Hello, Ada"}, cost_usd="0.01")

    assert muster_test.run(greeting, {"to": "Ada"}, budget_usd="0.01") == "Hello, Ada"
    assert [request.messages[-1].text for request in agent.asked] == ["Ada"]
    with pytest.raises(muster.RunFailed, match="no answer to 'Bob'"):
        muster_test.run(greeting, {"to": "Bob"})


async def test_the_store_of_a_test_stays_when_it_is_opened_again(muster_test: MusterTest) -> None:
    muster_test.agents["desk"] = FakeAgent("hello")
    async with muster_test.open() as m:
        await (await m.start("a greeting of a test", {"to": "Ada"}, name="first")).result()
    async with muster_test.open() as m:
        assert (await m.runs.find("first")).result == "hello"


async def test_nothing_of_this_machine_is_read(muster_test: MusterTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-this-machine")
    async with muster_test.open() as m:
        with pytest.raises(muster.BadConfiguration, match="ANTHROPIC_API_KEY"):
            await m.ask("anthropic/claude-haiku-5-5", "hello")


def test_the_plugin_loads_nothing_before_a_test_asks_for_it() -> None:
    code = "import sys, muster.pytest_plugin; print([name for name in sys.modules if name.startswith('muster.')])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['muster.pytest_plugin']"
