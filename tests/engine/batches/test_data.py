"""Answers as data: a schema is checked for models too, live and in batches, and a misfit is paid once."""

from typing import Any

import pydantic
import pytest

import muster
from muster.domain.errors import BadOutput, InvalidRequest
from tests.engine.batches.house import House, batch

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Counted(pydantic.BaseModel):
    """A model that asks for more than its JSON Schema says."""

    n: int

    @pydantic.field_validator("n")
    @classmethod
    def even(cls, n: int) -> int:
        if n % 2:
            raise ValueError("must be even")
        return n


@muster.workload("test-data")
async def two_calls(ctx: muster.Context, spec: Any) -> Any:
    """Ask for data twice: once as a caller who wants an error, once as one who repairs."""
    request = muster.Request(messages=(muster.Message(role=muster.Role.USER, text=spec["prompt"]),), schema=SCHEMA)
    reply = await ctx.call(spec["agent"], request, key="repairs", dispatch=spec["mode"])
    try:
        strict = (await ctx.call(spec["agent"], spec["prompt"], key="strict", schema=SCHEMA, system="s")).data
    except BadOutput as error:
        strict = [error.message, error.reply.text]
    return {"data": reply.data, "error": reply.data_error, "strict": strict}


@pytest.mark.parametrize("mode", ["live", "batch"])
async def test_an_answer_that_fits_is_data_and_one_that_does_not_is_kept(house: House, agent: str, mode: str) -> None:
    async with house.open() as m:
        run = await m.start("test-data", {"agent": agent, "prompt": '{"n": 4}', "mode": mode}, dispatch=batch())
        assert await run.result() == {"data": {"n": 4}, "error": "", "strict": {"n": 4}}
        entry = await m.runs.entry(run.id, "repairs")
        assert entry is not None
        assert entry.reply is not None
        assert entry.reply.data == {"n": 4}
        paid = house.audit.calls
        run = await m.start("test-data", {"agent": agent, "prompt": '{"n": "x"}', "mode": mode}, dispatch=batch())
        found: Any = await run.result()
        assert found["data"] is None
        assert "$.n: 'x' is not of type 'integer'" in found["error"]
        assert found["strict"][0].endswith(found["error"])
        assert found["strict"][1:] == ['{"n": "x"}']
        assert house.audit.calls == paid + 2  # neither was asked again
        assert await m.runs.drive(await m.runs.replay(run.id)).result() == found


async def test_ask_takes_a_schema_or_a_pydantic_model(house: House, agent: str) -> None:
    async with house.open() as m:
        assert (await m.ask(agent, 'It is ```json\n{"n": 3}\n```', schema=SCHEMA)).data == {"n": 3}
        assert (await m.ask(agent, '{"n": 2}', schema=Counted, system="Count.")).data == Counted(n=2)
        with pytest.raises(BadOutput, match="must be even") as caught:
            await m.ask(agent, '{"n": 3}', schema=Counted)
        assert caught.value.reply.data == {"n": 3}
        with pytest.raises(BadOutput, match="holds no JSON"):
            await m.ask(agent, "none", schema=SCHEMA)
        assert (await m.runs.find("last")).ended_reason == "done"
        paid = house.audit.calls
        with pytest.raises(InvalidRequest, match="not a JSON Schema"):
            await m.ask(agent, "x", schema={"type": "thing"})
        assert house.audit.calls == paid


def test_a_reply_needs_only_a_text_and_the_package_lists_its_names() -> None:
    assert muster.Reply(text="yes").quality == "good"
    assert {"Reply", "open", "workload", "Context"} <= set(dir(muster))
