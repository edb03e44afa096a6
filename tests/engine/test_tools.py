"""The loop in which an agent uses functions as tools: each use once, results told, and a bound."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from muster.domain.call import Reply, Request, Role, Stop, ToolCall
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, ToolError, ToolTurnsExceeded
from muster.domain.run import Origin, Reuse, RunState
from muster.engine.context import Context
from muster.engine.steps import idempotency_key, step
from muster.engine.tools import function_tool
from tests.engine.house import Puppet, house, reply


@dataclass(frozen=True)
class Customer:
    """Who asks."""

    id: int
    name: str


class Filter(BaseModel):
    """Which orders."""

    open_only: bool = True


def calls(*asked: tuple[str, Any]) -> Reply:
    used = tuple(
        ToolCall(id=f"c{number}", name=name, arguments=arguments) for number, (name, arguments) in enumerate(asked)
    )
    return Reply(text="", stop=Stop.TOOL_USE, tool_calls=used)


def scripted(*replies: Reply) -> Puppet:
    async def answer(request: Request, n: int) -> Reply:
        return replies[min(n, len(replies)) - 1]

    return Puppet(answer)


async def looked_up(customer: int, *, verbose: bool = False) -> Customer:
    """Look a customer up."""
    if customer == 404:
        raise ToolError("no such customer; ask for the number")
    return Customer(id=customer, name="Ada")


async def test_an_agent_is_told_what_the_functions_return_until_it_answers(tmp_path: Path) -> None:
    agent = scripted(calls(("looked_up", {"customer": 7}), ("count", {})), reply("Ada has 3"))

    def count() -> int:
        return 3

    async def works(ctx: Context, spec: Any) -> Json:
        return (await ctx.tools("a", "Who is 7?", tools=[looked_up, count], key="loop")).text

    async with house(tmp_path, a=agent) as h:
        assert (await h.drive(works)).result == "Ada has 3"
        first, second = agent.asked
        assert [tool.name for tool in first.tools] == ["looked_up", "count"]
        assert [message.text for message in second.messages if message.role is Role.TOOL] == [
            '{"id": 7, "name": "Ada"}',
            "3",
        ]
        assert [message.tool_call_id for message in second.messages if message.role is Role.TOOL] == ["c0", "c1"]


async def test_lists_of_values_are_told_as_json(tmp_path: Path) -> None:
    agent = scripted(calls(("everybody", {})), reply("one"))

    def everybody() -> list[Customer | Filter]:
        return [Customer(id=7, name="Ada"), Filter()]

    async def works(ctx: Context, spec: Any) -> Json:
        return (await ctx.tools("a", "Who is there?", tools=[everybody], key="loop")).text

    async with house(tmp_path, a=agent) as h:
        await h.drive(works)
        told = agent.asked[1].messages[-1].text
        assert told == '[{"id": 7, "name": "Ada"}, {"open_only": true}]'


async def test_a_tool_is_used_once_however_often_the_run_is_resumed(tmp_path: Path) -> None:
    used: list[str] = []
    agent = scripted(calls(("pay", {"amount": 5})), reply("paid"))

    async def pay(amount: int) -> str:
        used.append(f"paid {amount}")
        return "ok"

    async def works(ctx: Context, spec: Any) -> Json:
        answer = await ctx.tools("a", "Pay 5", tools=[pay], key="loop")
        if len(used) == 1 and spec is None:
            used.append("died")
            raise ValueError("after the loop")
        return answer.text

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(works)
        assert run.state is RunState.FAILED
        again = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLIES))
        assert (await h.engine.drive(again.id)).result == "paid"
        assert used == ["paid 5", "died"]
        assert len(agent.asked) == 2


async def test_a_step_is_a_tool_and_its_retries_count(tmp_path: Path) -> None:
    tries: list[str] = []

    @step(retries=2, backoff=0)
    def charge(amount: int) -> str:
        """Charge an amount."""
        tries.append(f"{amount} {idempotency_key()}")
        if len(tries) < 3:
            raise ConnectionError("not yet")
        return "charged"

    agent = scripted(calls(("charge", {"amount": 5})), calls(("charge", {"amount": 5})), reply("done"))

    async def works(ctx: Context, spec: Any) -> Json:
        return (await ctx.tools("a", "Charge 5", tools=[charge], key="loop")).text

    async with house(tmp_path, a=agent) as h:
        assert (await h.drive(works)).result == "done"
        assert agent.asked[0].tools[0].description == "Charge an amount."
        assert len(tries) == 4
        first, second, third, other = tries
        assert first == second == third != other


def test_outside_of_a_step_there_is_no_idempotency_key() -> None:
    with pytest.raises(BadArgument, match="this is none"):
        idempotency_key()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("looked_up", {"customer": 404}), "error: no such customer; ask for the number"),
        (
            ("looked_up", {"customer": "seven"}),
            "error: what it was called with is not a looked_up: customer must be int, not str",
        ),
        (("looked_up", {}), "customer is missing"),
        (("looked_up", {"customer": 1, "more": 2}), "more is unknown"),
        (("lookup", {}), "error: there is no tool 'lookup'; there are: looked_up"),
        (("look\nup" * 100, {}), "error: there is no tool 'look"),
    ],
)
async def test_what_was_wrong_is_told_to_the_agent(tmp_path: Path, asked: tuple[str, Json], told: str) -> None:
    agent = scripted(calls(asked), reply("sorry"))

    async def works(ctx: Context, spec: Any) -> Json:
        return (await ctx.tools("a", "go", tools=[looked_up], key="loop")).text

    async with house(tmp_path, a=agent) as h:
        assert (await h.drive(works)).result == "sorry"
        assert told in agent.asked[1].messages[-1].text


async def test_there_is_a_bound(tmp_path: Path) -> None:
    agent = scripted(calls(("looked_up", {"customer": 1})))

    async def works(ctx: Context, spec: Any) -> Json:
        with pytest.raises(ToolTurnsExceeded, match="still called tools after 3 turns"):
            await ctx.tools("a", "go", tools=[looked_up], key="loop", max_turns=3)
        return "stopped"

    async with house(tmp_path, a=agent) as h:
        assert (await h.drive(works)).result == "stopped"
        assert len(agent.asked) == 3


async def test_what_a_tool_raises_otherwise_ends_the_loop(tmp_path: Path) -> None:
    agent = scripted(calls(("breaks", {})))

    def breaks() -> None:
        raise ConnectionError("no database")

    async def works(ctx: Context, spec: Any) -> Json:
        with pytest.raises(ConnectionError, match="no database"):
            await ctx.tools("a", "go", tools=[breaks], key="loop")
        return "ended"

    async with house(tmp_path, a=agent) as h:
        assert (await h.drive(works)).result == "ended"


def test_a_function_is_described_by_its_name_its_docstring_and_its_types() -> None:
    def search(
        text: str, kind: Literal["order", "bill"], wanted: Filter, who: Customer | None = None, most: int = 10
    ) -> list[str]:
        """Search for orders and bills."""
        return []

    tool = function_tool(search).tool
    assert (tool.name, tool.description) == ("search", "Search for orders and bills.")
    assert tool.parameters["required"] == ["text", "kind", "wanted"]
    properties = tool.parameters["properties"]
    assert properties["text"] == {"type": "string"}
    assert set(properties["kind"]["enum"]) == {"order", "bill"}
    assert properties["most"] == {"type": "integer", "default": 10}
    assert tool.parameters["additionalProperties"] is False
    assert tool.parameters["$defs"]["Customer"]["required"] == ["id", "name"]


def untyped(text) -> str:  # type: ignore[no-untyped-def]
    return ""


def many(*texts: str) -> str:
    return ""


def odd(thing: Annotated[object, "x"], place: Path) -> str:
    return ""


@pytest.mark.parametrize(
    ("function", "wrong"),
    [(untyped, "text has no type"), (many, "cannot be given by name"), (lambda: 1, "must be a function with a name")],
)
def test_a_function_that_cannot_be_described_is_refused(function: Any, wrong: str) -> None:
    with pytest.raises(BadArgument, match=wrong):
        function_tool(function)
