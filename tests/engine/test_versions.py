"""Code that changed under a run: what a run began with, it goes on with."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, Interrupted, KeyReused
from muster.domain.run import Origin, Reuse, RunState
from muster.engine.context import Context
from muster.engine.workload import Workloads
from tests.engine.house import echo, house

Work = Callable[[Context, Any], Awaitable[Json]]


async def before(ctx: Context, spec: Any) -> Json:
    """Stop after one call."""
    await ctx.call("a", "a short text", key="text")
    raise Interrupted("the process is stopped")


async def after(ctx: Context, spec: Any) -> Json:
    """Ask for a long text, in runs that do not have a short one."""
    asked = "long" if ctx.version >= 2 else "short"
    return [ctx.version, ctx.is_resumed, (await ctx.call("a", f"a {asked} text", key="text")).text]


async def careless(ctx: Context, spec: Any) -> Json:
    """Ask for a long text, whatever was asked before."""
    return (await ctx.call("a", "a long text", key="text")).text


@pytest.mark.parametrize("declared", [{}, {"version": 1}])
async def test_a_run_goes_on_with_the_version_with_which_it_began(tmp_path: Path, declared: dict[str, Any]) -> None:
    agent = echo()
    async with house(tmp_path, a=agent) as h:
        old = await h.create(before, workload="work")
        h.workloads.workload("work", **declared)(before)
        assert (await h.engine.drive(old.id)).state is RunState.INTERRUPTED
        new = await h.create(after, workload="work")
        h.workloads.workload("work", version=2)(after)
        assert (await h.engine.drive(old.id)).result == [1, True, "a short text"]
        assert (await h.engine.drive(new.id)).result == [2, False, "a long text"]
        assert len(agent.asked) == 2


async def test_a_run_that_stored_nothing_yet_begins_with_the_code_that_is_there(tmp_path: Path) -> None:
    async def stopped(ctx: Context, spec: Any) -> Json:
        raise Interrupted("the process is stopped")

    async with house(tmp_path, a=echo()) as h:
        run = await h.create(stopped, workload="work")
        await h.engine.drive(run.id)
        h.workloads.workload("work", version=2, oldest=2)(after)
        assert (await h.engine.drive(run.id)).result == [2, True, "a long text"]


async def test_a_run_that_continues_another_has_its_version(tmp_path: Path) -> None:
    async with house(tmp_path, a=echo()) as h:
        run = await h.create(after, workload="work")
        h.workloads.workload("work", version=2)(after)
        await h.engine.drive(run.id)
        h.workloads.workload("work", version=3)(after)
        again = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLIES))
        assert (await h.engine.drive(again.id)).result == [2, True, "a long text"]


@pytest.mark.parametrize(
    ("options", "known"),
    [({"version": 3, "oldest": 3}, "this code has version 3"), ({"version": 1}, "this code has version 1")],
)
async def test_a_version_that_the_code_does_not_have_is_refused(
    tmp_path: Path, options: dict[str, Any], known: str
) -> None:
    async with house(tmp_path, a=echo()) as h:
        run = await h.create(before, workload="work")
        h.workloads.workload("work", version=2)(before)
        await h.engine.drive(run.id)
        h.workloads.workload("work", **options)(after)
        refused = await h.engine.drive(run.id)
        assert refused.state is RunState.FAILED
        assert f"began with version 2 of workload 'work', and {known}" in (refused.error or {})["message"]


async def test_another_request_under_a_key_says_how_to_change_code_under_runs(tmp_path: Path) -> None:
    async with house(tmp_path, a=echo()) as h:
        run = await h.create(before, workload="work")
        await h.engine.drive(run.id)
        h.workloads.workload("work")(careless)
        failed = await h.engine.drive(run.id)
        assert (failed.state, failed.ended_reason) == (RunState.FAILED, KeyReused.code)
        assert any("ctx.version" in way for way in (failed.error or {})["suggestions"])


async def test_another_order_of_keys_asks_nothing_twice(tmp_path: Path) -> None:
    agent = echo()

    async def one_way(ctx: Context, spec: Any) -> Json:
        for key in ("a", "b"):
            await ctx.call("a", key, key=key)
        raise Interrupted("the process is stopped")

    async def the_other(ctx: Context, spec: Any) -> Json:
        return [(await ctx.call("a", key, key=key)).text for key in ("b", "c", "a")]

    async with house(tmp_path, a=agent) as h:
        run = await h.create(one_way, workload="work")
        await h.engine.drive(run.id)
        h.workloads.workload("work")(the_other)
        assert (await h.engine.drive(run.id)).result == ["b", "c", "a"]
        assert [request.prompt for request in agent.asked] == ["a", "b", "c"]


@pytest.mark.parametrize("options", [{"version": 0}, {"version": 1, "oldest": 2}, {"version": 3, "oldest": 0}])
def test_versions_are_counted_from_one(options: dict[str, Any]) -> None:
    with pytest.raises(BadArgument, match="version must be"):
        Workloads().workload("work", **options)
