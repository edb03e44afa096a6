"""Data of replies as the type that was asked for: live, read back from the journal, and at the end of a tool loop."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field
from pydantic.dataclasses import dataclass as checked_dataclass

from muster.domain.call import Reply, Request, Stop, ToolCall
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput
from muster.domain.run import Origin, Reuse
from muster.engine.context import Context
from tests.engine.house import Puppet, house, reply


@dataclass(frozen=True)
class Label:
    """A dataclass."""

    name: Literal["billing", "delivery"]
    urgent: bool = False


class LabelRow(TypedDict):
    """A mapping with known keys."""

    name: str
    urgent: bool


class LabelStruct(Struct, frozen=True):
    """A Struct of msgspec."""

    name: str
    urgent: bool


class LabelModel(BaseModel):
    """A model of pydantic, which takes dates from JSON only."""

    model_config = ConfigDict(strict=True)
    name: str
    urgent: bool
    since: date = date(2026, 1, 1)


class Page(BaseModel):
    """A model that holds one, and a dataclass."""

    first: LabelModel
    labels: list[Label]


@dataclass(frozen=True)
class Refusal:
    """Another dataclass."""

    reason: str


class Refund(BaseModel):
    """One of two models, told apart by a field."""

    kind: Literal["refund"] = "refund"
    percent: int


class Question(BaseModel):
    """The other one."""

    kind: Literal["question"] = "question"
    text: str


@dataclass(frozen=True)
class Decision:
    """A dataclass whose field is one of several types."""

    answers: list[Label | Refusal]
    then: Refund | Question | None = None


@checked_dataclass(frozen=True)
class Percent:
    """A dataclass of pydantic, which looks at its values."""

    percent: Annotated[int, Field(le=50)]


ANSWER = '{"name": "delivery", "urgent": true}'


def says(text: str) -> Puppet:
    async def answer(request: Request, n: int) -> Reply:
        return reply(text)

    return Puppet(answer)


@pytest.mark.parametrize(
    ("schema", "answer", "expected"),
    [
        (Label, ANSWER, Label("delivery", urgent=True)),
        (LabelRow, ANSWER, {"name": "delivery", "urgent": True}),
        (LabelStruct, ANSWER, LabelStruct("delivery", urgent=True)),
        (LabelModel, ANSWER, LabelModel(name="delivery", urgent=True)),
        (list[Label], f"[{ANSWER}]", [Label("delivery", urgent=True)]),
        (
            Page,
            f'{{"first": {ANSWER}, "labels": [{ANSWER}]}}',
            Page(first=LabelModel(name="delivery", urgent=True), labels=[Label("delivery", urgent=True)]),
        ),
        (Label | Refusal, '{"reason": "late"}', Refusal("late")),
        (Refund | Question, '{"kind": "question", "text": "Which?"}', Question(text="Which?")),
        (
            Annotated[Refund | Question, Field(discriminator="kind")],
            '{"percent": 5, "kind": "refund"}',
            Refund(percent=5),
        ),
        (
            Decision,
            f'{{"answers": [{ANSWER}, {{"reason": "late"}}], "then": {{"kind": "refund", "percent": 5}}}}',
            Decision([Label("delivery", urgent=True), Refusal("late")], Refund(percent=5)),
        ),
        (Percent, '{"percent": 5}', Percent(5)),
    ],
    ids=str,
)
async def test_data_is_of_its_type_at_once_and_on_resume(
    tmp_path: Path, schema: Any, answer: str, expected: object
) -> None:
    agent, attempts = says(answer), 0

    async def works(ctx: Context, spec: Any) -> Any:
        nonlocal attempts
        attempts += 1
        found = await ctx.call("a", "Which label?", key="label", schema=schema)
        assert found.data == expected
        assert type(found.data) is type(expected)
        if attempts == 1:
            raise ValueError("stopped")
        return found.text

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(works)
        again = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLIES))
        assert (await h.engine.drive(again.id)).result == answer
        assert len(agent.asked) == 1
        assert agent.asked[0].schema is not None


@pytest.mark.parametrize(
    ("schema", "answer", "wrong"),
    [
        (Label, '{"name": "other", "urgent": 3}', "does not fit"),
        (LabelModel, '{"name": "x", "urgent": true, "since": "2026-13-01"}', "since is not valid"),
    ],
)
async def test_an_answer_that_is_of_another_type_is_kept_and_says_why(
    tmp_path: Path, schema: Any, answer: str, wrong: str
) -> None:
    async def works(ctx: Context, spec: Any) -> Any:
        with pytest.raises(BadOutput, match=wrong) as raised:
            await ctx.call("a", "Which label?", key="label", schema=schema)
        return raised.value.reply.text

    async with house(tmp_path, a=says(answer)) as h:
        assert (await h.drive(works)).result == answer


async def test_the_end_of_a_tool_loop_has_data_of_a_type(tmp_path: Path) -> None:
    async def answer(request: Request, n: int) -> Reply:
        calls = (ToolCall(id="1", name="look", arguments={}),)
        return Reply(text="", stop=Stop.TOOL_USE, tool_calls=calls) if n == 1 else reply(ANSWER)

    def look() -> str:
        return "a parcel"

    async def works(ctx: Context, spec: Any) -> Json:
        found = await ctx.tools("a", "Which label?", tools=[look], key="label", schema=Label)
        return [found.data.name, found.data.urgent]

    async with house(tmp_path, a=Puppet(answer)) as h:
        assert (await h.drive(works)).result == ["delivery", True]


@pytest.mark.parametrize("schema", [Path, "text", 3, object()], ids=repr)
async def test_what_has_no_form_in_json_is_refused_before_it_is_asked(tmp_path: Path, schema: Any) -> None:
    agent = says("{}")

    async def works(ctx: Context, spec: Any) -> Json:
        with pytest.raises(BadArgument, match="schema must be a JSON Schema"):
            await ctx.call("a", "go", key="k", schema=schema)
        return "refused"

    async with house(tmp_path, a=agent) as h:
        assert (await h.drive(works)).result == "refused"
        assert agent.asked == []


class Node(Struct):
    """A type that contains itself."""

    name: str
    below: "list[Node]" = []


async def test_a_type_that_contains_itself_is_read(tmp_path: Path) -> None:
    async def works(ctx: Context, spec: Any) -> Json:
        tree = (await ctx.call("a", "A tree", key="tree", schema=Node)).data
        return tree.below[0].name

    async with house(tmp_path, a=says('{"name": "root", "below": [{"name": "leaf"}]}')) as h:
        assert (await h.drive(works)).result == "leaf"
