"""`start(…, name=…, resume=True)`: a program that is run again goes on with what it has begun."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import muster

asked: Counter[str] = Counter()
broken: set[str] = set()


async def clerk(request: muster.Request) -> str:
    asked[request.prompt] += 1
    if request.prompt in broken:
        raise ValueError("broken")
    return request.prompt.upper()


@muster.workload("resumable")
async def resumable(ctx: muster.Context, spec: list[str]) -> list[str]:
    return [(await ctx.call("clerk", word, key=word)).text for word in spec]


@muster.workload("resumable-waits")
async def waits(ctx: muster.Context, spec: None) -> str:
    signal = await ctx.receive("news", "news")
    return "none" if signal is None else str(signal.payload)


async def test_a_run_is_started_once_and_gives_its_result_to_whoever_starts_it_again(tmp_path: Path) -> None:
    asked.clear()
    async with muster.open(tmp_path, agents={"clerk": clerk}, allow_unpriced=True) as m:
        runs = [await m.start(resumable, ["a", "b"], name="once", resume=True, budget_usd=5) for _ in range(2)]
        assert [await run.result() for run in runs] == [["A", "B"], ["A", "B"]]
        assert await (await m.start(resumable, ["a", "b"], name="once", resume=True)).result() == ["A", "B"]
        assert {run.id for run in runs} == {runs[0].id}
        assert asked == {"a": 1, "b": 1}
        assert (await m.start(resumable, ["a", "b"], name="once")).id != runs[0].id


async def test_a_run_is_submitted_once_and_goes_on_when_it_is_submitted_again(tmp_path: Path) -> None:
    asked.clear()
    broken.add("b")
    async with muster.open(tmp_path, agents={"clerk": clerk}, allow_unpriced=True) as m:
        first, same = [await m.submit(resumable, ["a", "b"], name="once", resume=True) for _ in range(2)]
        assert first.id == same.id
        await m.worker().serve(until_idle=True)
        with pytest.raises(muster.RunFailed):
            await first.result()
        broken.clear()
        again = await m.submit(resumable, ["a", "b"], name="once", resume=True)
        await m.worker().serve(until_idle=True)
        done = await m.submit(resumable, ["a", "b"], name="once", resume=True)
        assert [await run.result() for run in (again, done)] == [["A", "B"], ["A", "B"]]
        assert (again.id == done.id, asked) == (True, {"a": 1, "b": 2})
        with pytest.raises(muster.Conflict):
            await m.submit(resumable, ["other"], name="once", resume=True)
        with pytest.raises(muster.BadArgument, match="resume needs a name"):
            await m.submit(resumable, ["a"], resume=True)


async def test_a_failed_run_goes_on_at_the_end_of_its_lineage(tmp_path: Path) -> None:
    asked.clear()
    broken.add("y")
    async with muster.open(tmp_path, agents={"clerk": clerk}, allow_unpriced=True) as m:
        for _ in range(2):
            with pytest.raises(muster.RunFailed):
                await (await m.start(resumable, ["x", "y"], name="half", resume=True)).result()
        broken.clear()
        assert await (await m.start(resumable, ["x", "y"], name="half", resume=True)).result() == ["X", "Y"]
        assert asked["x"] == 1
        assert len(await m.runs.list()) == 3


async def test_a_run_that_somebody_canceled_goes_on_only_where_that_is_said(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        first = await m.start(waits, None, name="stopped", resume=True)
        await first.cancel()
        for _ in range(2):
            with pytest.raises(muster.Conflict, match="named 'stopped', was canceled") as raised:
                await m.start(waits, None, name="stopped", resume=True)
            assert f'm.resume("{first.id}")' in raised.value.suggestions[0]
        again = await m.resume(first.id)
        await m.runs.send(again.id, "news", "hello")
        assert await again.result() == "hello"
        assert await (await m.start(waits, None, name="stopped", resume=True)).result() == "hello"


async def test_a_run_that_somebody_drives_is_followed(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        first = await m.start(waits, None, name="long", resume=True)
        second = await m.start(waits, None, name="long", resume=True)
        assert first.id == second.id
        results = asyncio.gather(first.result(), second.result())
        await m.runs.send(first.id, "news", "hello")
        assert set(await results) == {"hello"}


@pytest.mark.parametrize(
    ("workload", "spec", "options", "wrong"),
    [
        ("resumable", ["other"], {"name": "taken"}, "named 'taken', does other work: it has another spec"),
        ("resumable-waits", None, {"name": "taken"}, "it has another workload"),
        ("resumable", [], {}, "resume needs a name"),
    ],
)
async def test_other_work_under_the_name_is_refused(
    tmp_path: Path, workload: str, spec: Any, options: dict[str, Any], wrong: str
) -> None:
    async with muster.open(tmp_path) as m:
        await (await m.start(resumable, [], name="taken")).result()
        with pytest.raises(muster.MusterError, match=wrong):
            await m.start(workload, spec, resume=True, **options)
        assert len(await m.runs.list()) == 1


async def test_of_several_that_start_it_at_once_the_first_does_and_the_others_follow(tmp_path: Path) -> None:
    asked.clear()
    async with AsyncExitStack() as stack:
        opened = [muster.open(tmp_path, agents={"clerk": clerk}, allow_unpriced=True) for _ in range(3)]
        programs = [await stack.enter_async_context(m) for m in opened]
        starting = (m.start(resumable, ["a", "b"], name="once", resume=True) for m in [*programs] * 3)
        runs = await asyncio.gather(*starting)
        assert len({run.id for run in runs}) == 1
        assert [await run.result() for run in runs] == [["A", "B"]] * 9
        assert len(await programs[0].runs.page()) == 1
        assert asked == {"a": 1, "b": 1}
