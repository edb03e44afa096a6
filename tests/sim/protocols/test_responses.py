"""The official SDK, with strict validation, is the oracle of our Responses."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError, RateLimitError
from openai.types.responses import Response, ResponseFunctionToolCall, ResponseOutputMessage, ResponseReasoningItem

from muster.domain.call import Stop, ToolCall
from muster.domain.script import Line, Script
from muster.sim.options import Options
from muster.sim.server import Server, serve
from muster.testing.clock import FakeClock
from tests.sdk import openai_client
from tests.sim.batch_wire import content, jsonl
from tests.sim.wire import one_fault

MODEL = "gpt-5-mini"
LOOK = ToolCall(id="", name="look", arguments={"at": "Zürich", "days": [1, 2]})
TOOLS: list[Any] = [{"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}]
LOOKING = Script(otherwise=Line(text="Let me look.", tool_calls=(LOOK,)))
ENCRYPTED: Any = ["reasoning.encrypted_content"]


@asynccontextmanager
async def client(
    script: Script | None = None, clock: FakeClock | None = None, **options: Any
) -> AsyncIterator[tuple[AsyncOpenAI, Server]]:
    async with (
        serve(
            Options(script=script or Script(), **{"thinking": True, **options}), (clock or FakeClock()).now
        ) as server,
        openai_client(server.openai) as openai,
    ):
        yield openai, server


async def say(openai: AsyncOpenAI, **fields: Any) -> Response:
    reply = await openai.responses.create(**{"model": MODEL, "input": "hello", "store": False, **fields})
    assert isinstance(reply, Response)
    return reply


def reasoning_of(reply: Response) -> int:
    assert reply.usage is not None
    return reply.usage.output_tokens_details.reasoning_tokens


async def test_a_request_is_echoed_with_its_reasoning_and_its_usage() -> None:
    async with client() as (openai, server):
        reply = await say(openai, instructions="Be terse now", input=[{"role": "user", "content": "Good morning"}])
        count = await openai.responses.input_tokens.count(model=MODEL, input="Good morning", instructions="Be terse")
    reasoning, message = reply.output
    assert isinstance(reasoning, ResponseReasoningItem)
    assert isinstance(message, ResponseOutputMessage)
    assert (reply.status, reply.output_text, reasoning.summary) == ("completed", "Good morning", [])
    assert reasoning.encrypted_content
    assert reply.usage is not None
    assert reply.usage.output_tokens == reasoning_of(reply) + 3
    assert (reply.usage.input_tokens, count.input_tokens) == (6, 5)
    assert (server.audit.calls, server.audit.thinking.tokens) == (1, reasoning_of(reply))


LINES: list[tuple[Line, Mapping[str, Any]]] = [
    (Line(text="A long answer that is cut into pieces, with Ümläuts and 漢字."), {}),
    (Line(text="Let me look.", tool_calls=(LOOK, LOOK)), {"tools": TOOLS}),
    (Line(text="I will not.", stop=Stop.REFUSED), {}),
    (Line(text="A summary.", thinking=700), {"reasoning": {"summary": "auto", "effort": "low"}}),
    (Line(text="No thought.", thinking=0), {"service_tier": "flex"}),
]


@pytest.mark.parametrize(("line", "fields"), LINES, ids=["text", "calls", "refusal", "summary", "tier"])
async def test_a_stream_says_the_same_as_a_plain_answer(line: Line, fields: Mapping[str, Any]) -> None:
    async with client(Script(otherwise=line)) as (openai, server):
        whole = await say(openai, **fields)
        async with openai.responses.stream(**{"model": MODEL, "input": "hello", "store": False, **fields}) as stream:
            events = [event async for event in stream]
            streamed = await stream.get_final_response()
        stream = await openai.responses.create(model=MODEL, input="hello", store=False, stream=True, **fields)
        raw = [event async for event in stream]
    assert raw[-1].type == "response.completed"
    assert raw[-1].response.output == whole.output
    assert (streamed.output_text, streamed.usage, streamed.service_tier) == (
        whole.output_text, whole.usage, whole.service_tier,
    )  # fmt: skip
    assert [event.sequence_number for event in raw] == list(range(len(raw)))
    deltas = [event.delta for event in events if event.type in ("response.output_text.delta", "response.refusal.delta")]
    assert len(deltas) > 0
    assert "".join(deltas) == line.text
    assert server.audit.by_digest == dict.fromkeys(server.audit.by_digest, 3)  # streamed or not, it is the same


@pytest.mark.parametrize(
    ("line", "limit", "reason"),
    [
        (Line(text="x" * 400, thinking=500), 256, "max_output_tokens"),
        (Line(text="x" * 400, thinking=500), 550, "max_output_tokens"),
        (Line(stop=Stop.REFUSED), 8_000, "content_filter"),
    ],
)
async def test_an_answer_that_is_not_whole_says_why(line: Line, limit: int, reason: str) -> None:
    async with client(Script(otherwise=line)) as (openai, _):
        reply = await say(openai, max_output_tokens=limit)
        raw = await openai.responses.create(
            model=MODEL, input="hello", store=False, stream=True, max_output_tokens=limit
        )
        last = [event async for event in raw][-1]
    assert (reply.status, reply.incomplete_details and reply.incomplete_details.reason) == ("incomplete", reason)
    assert last.type == "response.incomplete"
    assert reply.usage is not None
    assert reply.usage.output_tokens <= limit


REFUSED: list[tuple[Mapping[str, Any], str]] = [
    ({"model": "gpt-4o", "include": ENCRYPTED}, "Encrypted content is not supported with this model"),
    ({"model": "gpt-4o", "reasoning": {"effort": "low"}}, "'reasoning.effort' is not supported with this model"),
    ({"reasoning": {"effort": "max"}}, "Supported values are: 'minimal', 'low', 'medium', 'high'"),
    ({"temperature": 0.2}, "'temperature' does not support 0.2"),
    ({"max_output_tokens": 15}, "integer below minimum value"),
    ({"max_output_tokens": 200_000}, "too large"),
    ({"previous_response_id": "resp_1"}, "keeps no conversations"),
    ({"background": True}, "need store to be true"),
    ({"input": []}, "at least one item"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "expected a message"),
    ({"input": [{"type": "function_call", "call_id": "x", "name": "f", "arguments": "{"}]}, "arguments in JSON"),
]


@pytest.mark.parametrize(("fields", "why"), REFUSED)
async def test_what_it_does_not_take_is_refused(fields: Mapping[str, Any], why: str) -> None:
    async with client() as (openai, server):
        with pytest.raises(BadRequestError, match=why):
            await say(openai, **fields)
    assert server.audit.calls == 0


async def test_faults_and_tiers_are_those_of_chat_completions() -> None:
    async with client(faults=one_fault("429", op="live", nth=2, times=1)) as (openai, server):
        assert (await say(openai, service_tier="flex")).service_tier == "flex"
        with pytest.raises(RateLimitError):
            await say(openai)
        assert (await say(openai)).service_tier is None
    assert set(server.audit.cost_by_tier) == {"flex", "default"}


class Loop:
    """Turns with a function, each of which brings back all that was said before."""

    def __init__(self, openai: AsyncOpenAI) -> None:
        self.openai = openai
        self.fields: dict[str, Any] = {"instructions": "Be brief.", "tools": TOOLS, "include": ENCRYPTED}
        self.items: list[Any] = [{"role": "user", "content": "hello"}]

    async def turn(self, **fields: Any) -> Response:
        reply = await say(self.openai, input=self.items, **{**self.fields, **fields})
        self.items += [item.to_dict() for item in reply.output]
        calls = [item for item in reply.output if isinstance(item, ResponseFunctionToolCall)]
        self.items += [{"type": "function_call_output", "call_id": call.call_id, "output": "seen"} for call in calls]
        return reply


async def test_the_server_sees_every_item_of_reasoning_come_back() -> None:
    async with client(LOOKING) as (openai, server):
        loop = Loop(openai)
        for _ in range(5):
            await loop.turn()
    counts = server.audit.thinking
    assert (counts.returned, counts.missing, counts.mismatched) == (0 + 1 + 2 + 3 + 4, 0, 0)


async def test_reasoning_that_is_left_out_is_no_error_and_is_counted() -> None:
    async with client(LOOKING) as (openai, server):
        loop = Loop(openai)
        await loop.turn()
        kept = await loop.turn()
        loop.items = [item for item in loop.items if item.get("type") != "reasoning"]
        left_out = await loop.turn()
    counts = server.audit.thinking
    assert (counts.returned, counts.missing, counts.mismatched) == (1, 2, 0)
    assert kept.usage is not None
    assert left_out.usage is not None
    assert kept.usage.input_tokens > left_out.usage.input_tokens


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({"instructions": "Be verbose."}, (0, 1)),
        ({"model": "gpt-5"}, (0, 1)),
        ({"reasoning": {"effort": "low"}}, (1, 0)),
    ],
    ids=["another conversation", "another model", "another effort"],
)
async def test_reasoning_from_elsewhere_is_counted(fields: Mapping[str, Any], counts: tuple[int, int]) -> None:
    async with client(LOOKING) as (openai, server):
        loop = Loop(openai)
        await loop.turn()
        await loop.turn(**fields)
    assert (server.audit.thinking.returned, server.audit.thinking.mismatched) == counts


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda items: items[1].update(encrypted_content="bm90IGEgc2VhbA=="), "could not be verified"),
        (lambda items: items[1].update(id="rs_other"), "could not be verified"),
        (lambda items: items[1].update(summary=[{"type": "summary_text", "text": "Hm."}]), "could not be verified"),
        (lambda items: items.__delitem__(slice(2, 4)), "without its required following item"),
    ],
    ids=["content", "id", "summary", "alone"],
)
async def test_changed_reasoning_is_an_error(change: Any, why: str) -> None:
    async with client(LOOKING) as (openai, server):
        loop = Loop(openai)
        await loop.turn()
        change(loop.items)
        with pytest.raises(BadRequestError, match=why):
            await loop.turn()
    assert server.audit.thinking.mismatched == 1


async def test_a_response_in_the_background_is_polled_and_streamed_again() -> None:
    clock, seen = FakeClock(), []
    async with client(clock=clock, batch_ms=10_000) as (openai, server):
        asked = await say(openai, background=True, store=True)
        for seconds in (0, 5, 5):
            clock.advance(seconds)
            found = await openai.responses.retrieve(asked.id)
            seen.append(found.status)
        events = [event async for event in await openai.responses.retrieve(asked.id, stream=True, starting_after=2)]
    assert (asked.status, asked.output_text, seen) == ("queued", "", ["queued", "in_progress", "completed"])
    assert found.output_text == "hello"
    assert [event.sequence_number for event in events[:2]] == [3, 4]
    assert events[-1].type == "response.completed"
    assert server.audit.calls == 1


async def test_a_response_in_the_background_can_be_canceled() -> None:
    clock = FakeClock()
    async with client(clock=clock, batch_ms=10_000) as (openai, _):
        asked = await say(openai, background=True, store=True)
        assert (await openai.responses.cancel(asked.id)).status == "cancelled"
        clock.advance(20)
        assert (await openai.responses.retrieve(asked.id)).status == "cancelled"
        plain = await say(openai, store=True)
        with pytest.raises(BadRequestError, match="synchronous"):
            await openai.responses.cancel(plain.id)
        assert (await openai.responses.retrieve(plain.id)).output_text == "hello"
        with pytest.raises(NotFoundError):
            await openai.responses.retrieve((await say(openai)).id)  # it is not stored


async def test_members_of_batches_are_responses_too() -> None:
    async with client(LOOKING) as (openai, server):
        loop = Loop(openai)
        await loop.turn()
        body = {"model": MODEL, "input": loop.items, **loop.fields}
        members = [
            {"custom_id": name, "method": "POST", "url": "/v1/responses", "body": fields}
            for name, fields in (("good", body), ("bad", {**body, "input": []}))
        ]
        file = await openai.files.create(file=("input.jsonl", jsonl(members)), purpose="batch")
        created = await openai.batches.create(input_file_id=file.id, endpoint="/v1/responses", completion_window="24h")
        batch = await openai.batches.retrieve(created.id)
        [good], [bad] = await content(openai, batch.output_file_id), await content(openai, batch.error_file_id)
    response = Response.model_validate(good["response"]["body"])
    assert (batch.endpoint, response.status, bad["response"]["status_code"]) == ("/v1/responses", "completed", 400)
    assert isinstance(response.output[0], ResponseReasoningItem)
    assert (server.audit.thinking.returned, server.audit.thinking.mismatched) == (1, 0)
