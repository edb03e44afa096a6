"""The official SDK, with strict validation, is the oracle of our Messages protocol."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from anthropic import AsyncAnthropic
from anthropic.types import TextBlock, TextBlockParam, ToolParam, ToolUseBlock, Usage

from muster.domain.call import Stop, ToolCall
from muster.domain.script import Line, Rule, Script
from muster.sim.options import Options
from muster.sim.server import Server, serve
from tests.sdk import anthropic_client

MODEL = "claude-haiku-5-5"
WEATHER = ToolCall(id="", name="weather", arguments={"city": "Zürich", "days": [1, 2, 3], "units": {"heat": "C"}})
TOOLS: list[ToolParam] = [{"name": "weather", "input_schema": {"type": "object"}}]


@asynccontextmanager
async def client(script: Script | None = None) -> AsyncIterator[tuple[AsyncAnthropic, Server]]:
    async with (
        serve(Options(script=script or Script())) as server,
        anthropic_client(server.anthropic) as anthropic,
    ):
        yield anthropic, server


def line(**fields: object) -> Script:
    return Script(otherwise=Line(**fields))  # type: ignore[arg-type]


def texts(content: Sequence[object]) -> list[str]:
    return [block.text for block in content if isinstance(block, TextBlock)]


async def test_a_plain_request_is_echoed_with_its_usage() -> None:
    async with client() as (anthropic, _):
        reply = await anthropic.messages.create(
            model=MODEL, max_tokens=50, messages=[{"role": "user", "content": "Good morning"}]
        )
    assert texts(reply.content) == ["Good morning"]
    assert (reply.model, reply.stop_reason, reply.id) == (MODEL, "end_turn", "msg_sim_00000001")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 3)
    assert reply._request_id == "req_sim_00000001"


async def test_a_stream_says_the_same_as_a_plain_answer() -> None:
    text = "A long answer that has to be cut into several pieces, with Ümläuts and 漢字."
    async with client() as (anthropic, _):
        plain = await anthropic.messages.create(
            model=MODEL, max_tokens=50, messages=[{"role": "user", "content": text}]
        )
        async with anthropic.messages.stream(
            model=MODEL, max_tokens=50, messages=[{"role": "user", "content": text}]
        ) as stream:
            pieces = [piece async for piece in stream.text_stream]
            whole = await stream.get_final_message()
    assert len(pieces) > 2
    assert "".join(pieces) == text
    assert texts(whole.content) == texts(plain.content)
    assert whole.stop_reason == plain.stop_reason
    assert whole.usage.output_tokens == plain.usage.output_tokens
    assert whole.usage.input_tokens == plain.usage.input_tokens


async def test_a_tool_is_used() -> None:
    async with client(line(text="Let me look.", tool_calls=(WEATHER,), stop=Stop.TOOL_USE)) as (anthropic, _):
        reply = await anthropic.messages.create(
            model=MODEL, max_tokens=50, tools=TOOLS, messages=[{"role": "user", "content": "weather?"}]
        )
    text, use = reply.content
    assert isinstance(text, TextBlock)
    assert isinstance(use, ToolUseBlock)
    assert (use.name, use.input) == ("weather", WEATHER.arguments)
    assert use.id.startswith("toolu_")
    assert reply.stop_reason == "tool_use"


async def test_a_tool_is_used_in_a_stream() -> None:
    async with (
        client(line(tool_calls=(WEATHER, WEATHER))) as (anthropic, _),
        anthropic.messages.stream(
            model=MODEL, max_tokens=50, tools=TOOLS, messages=[{"role": "user", "content": "weather?"}]
        ) as stream,
    ):
        reply = await stream.get_final_message()
    uses = [block for block in reply.content if isinstance(block, ToolUseBlock)]
    assert [use.input for use in uses] == [WEATHER.arguments, WEATHER.arguments]
    assert len({use.id for use in uses}) == 2
    assert reply.stop_reason == "tool_use"


async def test_the_result_of_a_tool_is_the_text_that_rules_see() -> None:
    script = Script(rules=(Rule(line=Line(text="It rains."), text="^rain$", turn=2),))
    async with client(script) as (anthropic, _):
        reply = await anthropic.messages.create(
            model=MODEL,
            max_tokens=50,
            messages=[
                {"role": "user", "content": "weather?"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "rain"}]},
            ],
        )
    assert texts(reply.content) == ["It rains."]


async def test_a_system_prompt_counts_as_input() -> None:
    async with client() as (anthropic, _):
        reply = await anthropic.messages.create(
            model=MODEL, max_tokens=50, system="Be terse now", messages=[{"role": "user", "content": "Good morning"}]
        )
    assert reply.usage.input_tokens == 6


async def test_a_refusal_is_told() -> None:
    async with client(line(text="No.", stop=Stop.REFUSED)) as (anthropic, _):
        reply = await anthropic.messages.create(
            model=MODEL, max_tokens=50, messages=[{"role": "user", "content": "bad thing"}]
        )
    assert reply.stop_reason == "refusal"
    assert reply.stop_details is not None


async def test_an_answer_is_cut_at_max_tokens() -> None:
    async with client() as (anthropic, _):
        reply = await anthropic.messages.create(
            model=MODEL, max_tokens=2, messages=[{"role": "user", "content": "0123456789"}]
        )
    assert texts(reply.content) == ["01234567"]
    assert (reply.stop_reason, reply.usage.output_tokens) == ("max_tokens", 2)


async def test_an_answer_ends_at_the_first_stop_sequence() -> None:
    async with client() as (anthropic, _):
        reply = await anthropic.messages.create(
            model=MODEL,
            max_tokens=50,
            stop_sequences=["END", "--"],
            messages=[{"role": "user", "content": "a -- b END"}],
        )
    assert texts(reply.content) == ["a "]
    assert (reply.stop_reason, reply.stop_sequence) == ("stop_sequence", "--")


async def test_a_marked_prefix_is_written_to_the_cache_once_and_then_read() -> None:
    async with client() as (anthropic, server):
        first = await cached(anthropic, "one question", "5m")
        second = await cached(anthropic, "two question", "5m")
        other = await cached(anthropic, "two question", "1h", prefix="Another prefix")
    assert tokens(first) == (3, 0, 4, 0)
    assert tokens(second) == (3, 4, 0, 0)
    assert tokens(other) == (3, 0, 0, 4)
    audit = server.audit
    assert (audit.tokens.input, audit.tokens.cache_read, audit.tokens.cache_write) == (9, 4, 8)


async def cached(anthropic: AsyncAnthropic, text: str, ttl: str, prefix: str = "A shared prefix") -> Usage:
    system: TextBlockParam = {"type": "text", "text": prefix, "cache_control": {"type": "ephemeral", "ttl": ttl}}  # type: ignore[typeddict-item]
    reply = await anthropic.messages.create(
        model=MODEL, max_tokens=50, system=[system], messages=[{"role": "user", "content": text}]
    )
    return reply.usage


def tokens(usage: Usage) -> tuple[int, int | None, int, int]:
    assert usage.cache_creation is not None
    short, hour = usage.cache_creation.ephemeral_5m_input_tokens, usage.cache_creation.ephemeral_1h_input_tokens
    assert usage.cache_creation_input_tokens == short + hour
    return usage.input_tokens, usage.cache_read_input_tokens, short, hour


async def test_a_growing_conversation_reads_its_older_part_from_the_cache() -> None:
    async with client() as (anthropic, _):
        first = await anthropic.messages.create(
            model=MODEL,
            max_tokens=50,
            cache_control={"type": "ephemeral"},
            messages=[{"role": "user", "content": "12345678"}],
        )
        second = await anthropic.messages.create(
            model=MODEL,
            max_tokens=50,
            cache_control={"type": "ephemeral"},
            messages=[
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "12345678", "cache_control": {"type": "ephemeral"}}],
                },
                {"role": "assistant", "content": "12345678"},
                {"role": "user", "content": "1234"},
            ],
        )
    assert tokens(first.usage) == (0, 0, 2, 0)
    assert tokens(second.usage) == (0, 2, 3, 0)
