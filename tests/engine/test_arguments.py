"""What a program gives to a context by mistake is refused in one sentence that names it, before anything is done."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.engine.base.arguments import OWN_EVENTS

Misuse = Callable[[muster.Context], Any]


async def number_of(number: int, _: object) -> int:
    return number


async def results(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


async def hold(ctx: muster.Context, most: Any) -> None:
    async with ctx.limit("database", most):
        pass


class Mistake:
    """A workload that does what a test says."""

    does: Misuse


@muster.workload("makes a mistake")
async def mistaken(ctx: muster.Context, _: None) -> None:
    await Mistake.does(ctx)


@pytest.mark.parametrize(
    ("misuse", "said"),
    [
        (lambda ctx: ctx.call(None, "x", key="a"), "agent must be the name of an agent, not None"),
        (lambda ctx: ctx.call("sim/echo", "x", key="a", timeout="5"), "timeout must be 0 or more, not '5'"),
        (
            lambda ctx: ctx.call("sim/echo", "x", key="a", timeout=timedelta(1)),
            "timeout must be a number, not datetime",
        ),
        (lambda ctx: ctx.tools("sim/echo", "x", key="a", tools=5), "tools must be a list or another iterable, not 5"),
        (
            lambda ctx: ctx.tools("sim/echo", "x", key="a", tools=[], max_turns=1.5),
            "max_turns must be 1 or more, not 1.5",
        ),
        (lambda ctx: results(ctx.map(number_of, 5)), "items must be a list or another iterable, not 5"),
        (lambda ctx: results(ctx.map(number_of, [1], limit=1.5)), "limit must be 1 or more, not 1.5"),
        (lambda ctx: hold(ctx, 1.5), "limit must be 1 or more, not 1.5"),
        (lambda ctx: ctx.step("a", dict, retries=1.5), "retries must be 0 or more, not 1.5"),
        (lambda ctx: ctx.step("a", dict, retries=1, backoff="x"), "backoff must be from 0 to 300 seconds, not 'x'"),
        (lambda ctx: ctx.sleep("a", "x"), "seconds must be 0 or more, not 'x'"),
        (lambda ctx: ctx.until("a", "tomorrow"), "time must be seconds since 1970 or a datetime, not 'tomorrow'"),
        (lambda ctx: ctx.receive("a", 5), "channel must be a text, not 5"),
        (lambda ctx: ctx.receive("a", "b", timeout="x"), "timeout must be 0 or more, not 'x'"),
        (lambda ctx: ctx.emit("a", 5), "kind must be a text, not 5"),
        *((lambda ctx, own=own: ctx.emit("a", f"{own}x"), "is an event of the engine") for own in OWN_EVENTS),
    ],
)
async def test_a_mistake_is_told_by_the_name_of_what_is_wrong(tmp_path: Path, misuse: Misuse, said: str) -> None:
    Mistake.does = staticmethod(misuse)
    async with muster.open(tmp_path) as m:
        run = await (await m.start(mistaken, None)).wait()
        assert run.state == "failed"
        assert run.error is not None
        assert said in run.error["message"]
        assert run.calls.total == 0
