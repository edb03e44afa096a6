"""What programs get wrong: each is told in one sentence, with what to write instead."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import muster
from muster import sync

Work = Callable[[muster.Context, Any], Awaitable[object]]


@dataclass
class Parcel:
    """A value of a program's own."""

    number: int


async def fetch() -> str:
    return "a parcel"


async def dict_prompt(ctx: muster.Context, spec: Any) -> object:
    return await ctx.call("sim/echo", {"ask": "me"}, key="k")  # type: ignore[call-overload]


async def int_key(ctx: muster.Context, spec: Any) -> object:
    return [(await ctx.call("sim/echo", "hi", key=number)).text for number in range(2)]  # type: ignore[call-overload]


async def int_key_of_a_step(ctx: muster.Context, spec: Any) -> object:
    return await ctx.step(7, fetch)  # type: ignore[call-overload]


async def swapped(ctx: muster.Context, spec: Any) -> object:
    return await ctx.step(fetch, "k")  # type: ignore[call-overload]


async def called_step(ctx: muster.Context, spec: Any) -> object:
    return await ctx.step("k", fetch())  # type: ignore[call-overload]


async def sync_map(ctx: muster.Context, spec: Any) -> object:
    def double(number: int, item: int) -> int:
        return 2 * item

    return [one async for one in ctx.map(double, [1, 2])]  # type: ignore[arg-type,var-annotated]


async def sync_map_with_exceptions(ctx: muster.Context, spec: Any) -> object:
    return [one async for one in ctx.map(lambda number, item: item, [1], return_exceptions=True)]  # type: ignore[call-overload]


async def map_without_number(ctx: muster.Context, spec: Any) -> object:
    async def double(item: int) -> int:
        return 2 * item

    return [one async for one in ctx.map(double, [1, 2])]  # type: ignore[arg-type]


async def gathered_list(ctx: muster.Context, spec: Any) -> object:
    return await ctx.gather([ctx.call("sim/echo", "a", key="a"), ctx.call("sim/echo", "b", key="b")])  # type: ignore[call-overload]


async def gathered_result(ctx: muster.Context, spec: Any) -> object:
    return await ctx.gather(await ctx.call("sim/echo", "a", key="a"))  # type: ignore[call-overload]


async def set_value(ctx: muster.Context, spec: Any) -> object:
    return await ctx.step("k", lambda: {"labels": [{1, 2}]})


async def nan_result(ctx: muster.Context, spec: Any) -> object:
    return {"scores": [0.5, float("nan")]}


async def object_result(ctx: muster.Context, spec: Any) -> object:
    return {"parcels": [Parcel(1)]}


async def int_names(ctx: muster.Context, spec: Any) -> object:
    await ctx.emit("told", "mine.told", {"who": Parcel(1)})
    return None


async def forgotten_result(ctx: muster.Context, spec: Any) -> object:
    return {"text": ctx.call("sim/echo", "hi", key="hello")}


async def forgotten_call(ctx: muster.Context, spec: Any) -> object:
    ctx.call("sim/echo", "hi", key="hello")  # type: ignore[unused-coroutine]
    return "done"


@muster.step
async def doubled(number: int) -> int:
    return 2 * number


FORGOTTEN = "ctx.emit under 'told' and ctx.child under 'inner' and ctx.sleep under 'nap' and ctx.tools under 'loop'"


async def forgotten_others(ctx: muster.Context, spec: Any) -> object:
    doubled(ctx, "fetched", 1)  # type: ignore[unused-coroutine]
    ctx.emit("told", "mine.told")  # type: ignore[unused-coroutine]
    ctx.child("inner", "ask", {})  # type: ignore[unused-coroutine]
    ctx.sleep("nap", 1)  # type: ignore[unused-coroutine]
    ctx.tools("sim/echo", "hi", tools=[], key="loop")  # type: ignore[unused-coroutine]
    return await doubled(ctx, "awaited", 2)


async def awaited_map(ctx: muster.Context, spec: Any) -> object:
    return await ctx.map(lambda number, item: ctx.now(f"{number}"), [1])  # type: ignore[misc]


async def timedelta_sleep(ctx: muster.Context, spec: Any) -> object:
    await ctx.sleep("nap", timedelta(minutes=5))  # type: ignore[arg-type]
    return None


async def step_without_context(ctx: muster.Context, spec: Any) -> object:
    return await doubled(2, "key")  # type: ignore[arg-type, call-arg]


async def unknown_name(ctx: muster.Context, spec: Any) -> object:
    return await ctx.child("k", fetch, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("work", "message", "way"),
    [
        (dict_prompt, "or a muster.Request, not a dict", "json.dumps"),
        (int_key, "a key must be a text, not 0", 'key=f"item/{number}"'),
        (int_key_of_a_step, "a key must be a text, not 7", 'key=f"item/{number}"'),
        (swapped, "a key must be a text, not <function fetch", "key="),
        (called_step, "step 'k' must be a function, not a coroutine", "ctx.step(key, work)"),
        (sync_map, "the function of ctx.map is not async: it returned an int", "write async def"),
        (sync_map_with_exceptions, "the function of ctx.map is not async: it returned an int", "write async def"),
        (map_without_number, "called with the number of an item and the item", "async def work(number, item)"),
        (gathered_list, "ctx.gather waits for awaitables, and a list is none", "ctx.gather(*calls)"),
        (gathered_result, "ctx.gather waits for awaitables, and a Reply is none", "without await"),
        (set_value, "the value of step 'k' is not plain JSON at labels[0]: it is a set", "write list(…)"),
        (nan_result, "the result of the workload is not plain JSON at scores[1]: it is nan", "use None"),
        (
            object_result,
            "the result of the workload is not plain JSON at parcels[0]: it is a Parcel",
            "its fields as a dict",
        ),
        (int_names, "the data of event 'told' is not plain JSON at who: it is a Parcel", "its fields as a dict"),
        (forgotten_call, "ctx.call under 'hello' was not awaited, so nothing was done", "write await before it"),
        (forgotten_result, "ctx.call under 'hello' was not awaited, so nothing was done", "write await before it"),
        (forgotten_others, f"ctx.step under 'fetched' and {FORGOTTEN} were not awaited", "write await before it"),
        (awaited_map, "ctx.map gives results one by one, and is not awaited", "async for one in ctx.map"),
        (timedelta_sleep, "seconds must be a number, not datetime.timedelta(seconds=300)", "total_seconds()"),
        (step_without_context, "step doubled must be called with the context of a run", 'doubled(ctx, "doubled", …)'),
        (unknown_name, "fetch is not a workload", '@muster.workload("NAME")'),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
async def test_a_workload_that_is_wrong_is_told_in_a_sentence_what_to_write(
    tmp_path: Path, work: Work, message: str, way: str
) -> None:
    muster.workload(f"misuse-{work.__name__}")(work)
    async with muster.open(tmp_path) as m:
        run = await m.start(f"misuse-{work.__name__}", None)
        with pytest.raises(muster.RunFailed, match=re.escape(message)) as raised:
            await run.result()
        cause = raised.value.__cause__
        assert isinstance(cause, muster.MusterError)
        assert "\n" not in cause.message
        assert any(way in suggestion for suggestion in cause.suggestions)


@dataclass
class SortSpec:
    """What a workload is told."""

    agent: str
    number: int = 0
    parts: list[Parcel] | None = None


@muster.workload("misuse-sort")
async def sort(ctx: muster.Context, spec: SortSpec) -> None: ...


async def used_at_once(folder: Path) -> None:
    await muster.open(folder).ask("sim/echo", "hi")  # type: ignore[attr-defined]


async def awaited_opening(folder: Path) -> None:
    await muster.open(folder)  # type: ignore[misc]


async def with_opening(folder: Path) -> None:
    with muster.open(folder):  # type: ignore[attr-defined]
        pass


async def list_of_agents(folder: Path) -> None:
    async with muster.open(folder, agents=[fetch]):  # type: ignore[arg-type]
        pass


async def text_as_version(folder: Path) -> None:
    muster.workload("misuse-version", version="2")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("use", "message", "way"),
    [
        (used_at_once, "this Muster is not open yet, and cannot do `ask`", "async with muster.open() as m"),
        (awaited_opening, "muster.open() is not awaited", "async with muster.open() as m"),
        (with_opening, "`with` is for code that is not async", "with muster.sync.open() as m"),
        (list_of_agents, "agents must be a mapping of names to agents, not a list", 'agents={"critic": critic}'),
        (text_as_version, "version must be a whole number, such as 2, not '2'", ""),
    ],
)
async def test_what_is_opened_or_declared_wrongly_is_told_with_what_to_write(
    tmp_path: Path, use: Callable[[Path], Awaitable[None]], message: str, way: str
) -> None:
    with pytest.raises(muster.BadArgument, match=re.escape(message)) as raised:
        await use(tmp_path)
    assert way in " ".join(map(str, raised.value.suggestions))


@pytest.mark.parametrize(
    ("use", "message", "way"),
    [
        (lambda m: m.ask("sim/echo", {"ask": "me"}), "prompt must be a string, not {'ask': 'me'}", "json.dumps"),
        (lambda m: m.start("ask", {1, 2}), "the spec of workload 'ask' is not plain JSON: it is a set", "list(…)"),
        (lambda m: m.start("ask", Parcel(1)), "the spec of workload 'ask' is a Parcel", "spec: Parcel"),
        (lambda m: m.start(fetch, None), "fetch is not a workload", '@muster.workload("NAME")'),
        (
            lambda m: m.start(sort, {"agent": "x", "numbr": 1, "parts": [{"number": 1, "by": 2}]}),
            "numbr is unknown",
            "number",
        ),
        (
            lambda m: m.start(sort, {"agent": "x", "numbr": 1, "parts": [{"number": 1, "by": 2}]}),
            "parts[0].by is un",
            "known",
        ),
        (lambda m: m.ask("sim/echo", "hi", schema="Label"), "schema must be a JSON Schema (a dict) or a type", None),
        (lambda m: m.ask("sim/echo", "hi", schema=Parcel(1)), "must be a type, not an instance of", "schema=Parcel"),
        (lambda m: m.ask("sim/echo", "hi", name="last"), "must be a printable word other than `last`", None),
    ],
)
async def test_an_argument_that_is_wrong_is_told_with_what_to_write(
    tmp_path: Path, use: Callable[[Any], Awaitable[object]], message: str, way: str | None
) -> None:
    async with muster.open(tmp_path) as m:
        with pytest.raises(muster.BadArgument, match=re.escape(message)) as raised:
            await use(m)
        assert way is None or any(way in suggestion for suggestion in raised.value.suggestions)
        assert await m.runs.list() == []


async def test_what_is_used_after_it_was_closed_says_so(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        run = await m.start("ask", {"agent": "sim/echo", "prompt": "hi"})
        await run.result()
    for use in (m.ask("sim/echo", "hi"), m.runs.list(), m.resume("last"), run.run()):
        with pytest.raises(muster.StoreFailed, match="the store is closed, as its Muster is") as raised:
            await use
        assert raised.value.suggestions == ("do it inside of: async with muster.open() as m",)
    blocking = sync.open(tmp_path)
    blocking.close()
    with pytest.raises(muster.StoreFailed, match="the store is closed, as its Muster is"):
        blocking.ask("sim/echo", "hi")


@muster.workload("misuse-fails")
async def fails(ctx: muster.Context, spec: None) -> None:
    raise ZeroDivisionError("no parcels")


async def test_a_run_that_failed_here_has_what_was_raised_as_its_cause(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        run = await m.start(fails, None)
        with pytest.raises(muster.RunFailed) as raised:
            await run.result()
        cause = raised.value.__cause__
        assert isinstance(cause, ZeroDivisionError)
        assert cause.__traceback__ is not None
        with pytest.raises(muster.RunFailed) as seen:  # by somebody else, who knows what was recorded
            await m.runs.watch(await run.run()).result()
        assert isinstance(seen.value.__cause__, muster.RecordedFailure)
        assert "no parcels" in str(seen.value.__cause__)


async def test_a_call_that_was_given_up_before_it_began_is_not_forgotten(tmp_path: Path) -> None:
    @muster.workload("misuse-given-up")
    async def gives_up(ctx: muster.Context, spec: None) -> str:
        task = asyncio.create_task(ctx.call("sim/echo", "late", key="late"))
        task.cancel()
        await asyncio.wait({task})
        return (await ctx.call("sim/echo", "soon", key="soon")).text

    async with muster.open(tmp_path) as m:
        assert await (await m.start(gives_up, None)).result() == "soon"
