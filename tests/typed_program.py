"""A program of a user that says the type of everything: no expression in it is `Any` to mypy, nor unknown to pyright.

It is read by type checkers, and run by `test_typed_program.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, assert_type

from msgspec import Struct
from pydantic import BaseModel

import muster


@dataclass(frozen=True)
class Label:
    """A dataclass."""

    label: str
    urgent: bool = False


class Person(TypedDict):
    """A mapping with known keys."""

    name: str


class Order(Struct):
    """A Struct of msgspec."""

    number: int


class Report(BaseModel):
    """A model of pydantic."""

    labels: list[str]
    people: int = 0


@dataclass(frozen=True)
class Spec:
    """What is asked."""

    agent: str
    texts: list[str]


@muster.step(retries=1, backoff=0.0)
def count(texts: Sequence[str]) -> int:
    """Count texts."""
    return len(texts)


def look_up(name: str) -> Person:
    """Look a person up."""
    return {"name": name}


@muster.workload("typed_program_part")
async def part(ctx: muster.Context, spec: Person) -> Order:
    """Return the number of an order."""
    return Order(number=len(spec["name"]))


@muster.workload("typed_program")
async def program(ctx: muster.Context, spec: Spec) -> Report:
    """Use every verb of a context."""
    plain = await ctx.call(spec.agent, "hello", key="plain")
    assert_type(plain, muster.Reply)
    assert_type(plain.text, str)
    assert_type(plain.data, muster.Json)

    label = await ctx.call(spec.agent, '{"label": "a"}', key="label", schema=Label, timeout=5.0, stream=True)
    assert_type(label.data, Label)
    either = await ctx.call(spec.agent, '{"label": "a"}', key="either", schema=Label | Spec)
    if isinstance(either.data, Label):
        assert_type(either.data.label, str)
    shaped = await ctx.call(spec.agent, "{}", key="shaped", schema={"type": "object"})
    assert_type(shaped.data, muster.Json)
    tools = [look_up]
    loop = await ctx.tools(spec.agent, '{"number": 1}', tools=tools, key="loop", schema=Order)
    assert_type(loop.data, Order)

    async def fetch() -> Person:
        return {"name": "Ada"}

    def blocking() -> list[Order]:
        return [Order(number=2)]

    person = await ctx.step("person", fetch)
    assert_type(person, Person)
    orders = await ctx.step("orders", blocking, retries=1)
    assert_type(orders, list[Order])
    counted = await count(ctx, "count", spec.texts)
    assert_type(counted, int)

    order = await ctx.child("part", part, person, budget_usd="0.10")
    assert_type(order, Order)
    named = await ctx.child("named", "typed_program_part", {"name": "Bob"})
    assert_type(named, muster.Json)

    async def one(number: int, text: str) -> str:
        async with ctx.limit("texts", 2):
            return (await ctx.call(spec.agent, text, key=f"text/{number}")).text

    labels = [text async for text in ctx.map(one, spec.texts, limit=4)]
    assert_type(labels, list[str])
    outcomes = [found async for found in ctx.map(one, spec.texts[:0], return_exceptions=True)]
    assert_type(outcomes, list[str | Exception])
    both = await ctx.gather(ctx.call(spec.agent, "a", key="a"), ctx.call(spec.agent, "b", key="b"))
    assert_type(both[0], muster.Reply)
    labeled, number = await ctx.gather(ctx.call(spec.agent, '{"label": "b"}', key="b2", schema=Label), ctx.now("then"))
    assert_type(labeled.data, Label)
    assert_type(number, float)
    many = await ctx.gather(*[ctx.call(spec.agent, text, key=f"many/{text}") for text in spec.texts])
    assert_type(many, list[muster.Reply])
    inline = await ctx.child("inline", part, {"name": "Eve"})
    assert_type(inline, Order)

    await ctx.sleep("pause", 0.0)
    assert_type(await ctx.now("now"), float)
    assert_type((await ctx.funds("funds")).spent, muster.Microdollars)
    assert_type(ctx.random("dice").random(), float)
    signal = await ctx.receive("signal", "news", timeout=0.0)
    if signal is not None:
        assert_type(signal.payload, muster.Json)
    await ctx.emit("told", "program.told", {"labels": len(labels)})
    assert_type(await ctx.recall("person"), muster.Json)
    return Report(labels=[*labels, label.data.label], people=counted + order.number)


async def main(folder: Path) -> Report:
    """Use a Muster."""
    async with muster.open(folder) as m:
        reply = await m.ask("sim/echo", '{"label": "x", "urgent": true}', schema=Label, budget_usd="0.10")
        assert_type(reply.data, Label)
        async for piece in m.stream("sim/echo", '{"label": "y"}', schema=Label):
            assert_type(piece, str | muster.Reply[Label])
        run = await m.start(program, Spec(agent="sim/echo", texts=["one", "two"]), name="typed", tags=["a"])
        assert_type(run, muster.RunHandle[Report])
        async for event in run.events():
            assert_type(event.kind, str)
            assert_type(event.data.get("key"), muster.Json)
        stored = await run.wait()
        assert_type(stored.state, muster.RunState)
        again = await (await m.resume("typed")).result()
        assert_type(again, muster.Json)
        return await run.result()


def script(folder: Path) -> Report:
    """Do the same without async."""
    with muster.sync.open(folder) as m:
        assert_type(m.ask("sim/echo", '{"number": 3}', schema=Order).data, Order)
        assert_type(m.ask("sim/echo", "hello").text, str)
        run = m.start(program, Spec(agent="sim/echo", texts=["one", "two"]))
        assert_type(run, muster.sync.RunHandle[Report])
        return run.result()
