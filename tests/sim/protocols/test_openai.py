"""The official SDK, with strict validation, is the oracle of our chat completions."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageFunctionToolCall, ChatCompletionToolParam

from muster.domain.call import Stop, ToolCall
from muster.domain.script import Line, Rule, Script
from muster.sim.options import Options
from muster.sim.server import serve
from tests.sdk import openai_client

MODEL = "gpt-5.5-mini"
WEATHER = ToolCall(id="", name="weather", arguments={"city": "Zürich", "days": [1, 2, 3], "units": {"heat": "C"}})
TOOLS: list[ChatCompletionToolParam] = [{"type": "function", "function": {"name": "weather"}}]


@asynccontextmanager
async def client(script: Script | None = None) -> AsyncIterator[AsyncOpenAI]:
    async with (
        serve(Options(script=script or Script())) as server,
        openai_client(server.openai) as openai,
    ):
        yield openai


def line(**fields: object) -> Script:
    return Script(otherwise=Line(**fields))  # type: ignore[arg-type]


async def test_a_plain_request_is_echoed_with_its_usage() -> None:
    async with client() as openai:
        reply = await openai.chat.completions.create(
            model=MODEL,
            messages=[{"role": "system", "content": "Be terse now"}, {"role": "user", "content": "Good morning"}],
        )
    assert reply.choices[0].message.content == "Good morning"
    assert (reply.model, reply.choices[0].finish_reason, reply.id) == (MODEL, "stop", "chatcmpl-sim-00000001")
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (6, 3, 9)
    assert reply.usage.prompt_tokens_details is not None
    assert reply.usage.prompt_tokens_details.cached_tokens == 0
    assert reply._request_id == "req_sim_00000001"


async def test_a_stream_says_the_same_as_a_plain_answer() -> None:
    text = "A long answer that has to be cut into several pieces, with Ümläuts and 漢字."
    async with client() as openai:
        stream = await openai.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": text}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    pieces = [choice.delta.content for chunk in chunks for choice in chunk.choices if choice.delta.content]
    assert len(pieces) > 2
    assert "".join(pieces) == text
    assert [chunk.usage.completion_tokens for chunk in chunks if chunk.usage] == [20]
    assert chunks[-1].choices == []
    assert chunks[-2].choices[0].finish_reason == "stop"


async def test_a_stream_has_no_usage_unless_it_is_asked_for() -> None:
    async with client() as openai:
        stream = await openai.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "hello"}], stream=True
        )
        chunks = [chunk async for chunk in stream]
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)


async def test_a_tool_is_used() -> None:
    async with client(line(tool_calls=(WEATHER,))) as openai:
        reply = await openai.chat.completions.create(
            model=MODEL, tools=TOOLS, messages=[{"role": "user", "content": "weather?"}]
        )
    calls = reply.choices[0].message.tool_calls
    assert calls is not None
    assert isinstance(calls[0], ChatCompletionMessageFunctionToolCall)
    assert calls[0].function.name == "weather"
    assert json.loads(calls[0].function.arguments) == WEATHER.arguments
    assert reply.choices[0].message.content is None
    assert reply.choices[0].finish_reason == "tool_calls"


async def test_a_tool_is_used_in_a_stream() -> None:
    async with client(line(text="Let me look.", tool_calls=(WEATHER, WEATHER), stop=Stop.TOOL_USE)) as openai:
        stream = await openai.chat.completions.create(
            model=MODEL, tools=TOOLS, messages=[{"role": "user", "content": "weather?"}], stream=True
        )
        chunks = [chunk async for chunk in stream]
    assert [json.loads(arguments_of(chunks, index)) for index in (0, 1)] == [WEATHER.arguments] * 2
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Let me look."
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def arguments_of(chunks: list[ChatCompletionChunk], index: int) -> str:
    calls = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or [] if call.index == index]
    assert calls[0].id is not None
    return "".join(call.function.arguments or "" for call in calls if call.function)


async def test_the_result_of_a_tool_is_the_text_that_rules_see() -> None:
    script = Script(rules=(Rule(line=Line(text="It rains."), text="^rain$", turn=2),))
    async with client(script) as openai:
        reply = await openai.chat.completions.create(
            model=MODEL,
            messages=[
                {"role": "user", "content": [{"type": "text", "text": "weather?"}]},
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "rain"},
            ],
        )
    assert reply.choices[0].message.content == "It rains."


async def test_a_refusal_in_words_is_a_message_of_its_own_kind() -> None:
    async with client(line(text="No, sorry.", stop=Stop.REFUSED)) as openai:
        reply = await openai.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "bad"}])
    assert (reply.choices[0].message.refusal, reply.choices[0].message.content) == ("No, sorry.", None)
    assert reply.choices[0].finish_reason == "stop"


async def test_a_refusal_without_words_is_the_filter() -> None:
    async with client(line(stop=Stop.REFUSED)) as openai:
        reply = await openai.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "bad"}])
    assert reply.choices[0].finish_reason == "content_filter"


async def test_an_answer_is_cut_at_max_tokens() -> None:
    async with client() as openai:
        reply = await openai.chat.completions.create(
            model=MODEL, max_completion_tokens=2, messages=[{"role": "user", "content": "0123456789"}]
        )
    assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == ("01234567", "length")


async def test_an_answer_ends_at_a_stop_sequence() -> None:
    async with client() as openai:
        reply = await openai.chat.completions.create(
            model=MODEL, stop="--", messages=[{"role": "user", "content": "a -- b"}]
        )
    assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == ("a ", "stop")
