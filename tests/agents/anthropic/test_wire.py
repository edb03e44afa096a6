import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from muster.agents.anthropic.wire import encode
from muster.domain.call import Message, Request, Role, Tool, ToolCall, ask

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = Tool(name="weather", description="Tells the weather.", parameters=SCHEMA)
CALL = ToolCall(id="toolu_1", name="weather", arguments={"city": "Bonn"})
USED = (
    Message(role=Role.USER, text="How is the weather?"),
    Message(role=Role.ASSISTANT, text="I look.", tool_calls=(CALL, replace(CALL, id="toolu_2"))),
    Message(role=Role.TOOL, text="sunny", tool_call_id="toolu_1"),
    Message(role=Role.TOOL, text="rainy", tool_call_id="toolu_2"),
    Message(role=Role.USER, text="And now?"),
)
EVERYTHING = Request(
    messages=USED,
    system="Be brief.",
    tools=(WEATHER, Tool(name="now")),
    max_tokens=99,
    temperature=0.5,
    top_p=0.9,
    seed=7,
    stop=("END",),
    cache="1h",
    schema=SCHEMA,
)


def sent(request: Request, *, stream: bool = False) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(encode(request, "claude-test", stream=stream))
    return body


def test_the_simplest_request_says_no_more_than_it_must() -> None:
    assert sent(replace(ask("hi"), max_tokens=5)) == {
        "model": "claude-test",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_max_tokens_is_always_sent() -> None:
    assert sent(ask("hi"))["max_tokens"] == 2048


def test_a_full_request_in_full() -> None:
    assert sent(EVERYTHING, stream=True) == {
        "model": "claude-test",
        "max_tokens": 99,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "messages": [
            {"role": "user", "content": "How is the weather?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bonn"}},
                    {"type": "tool_use", "id": "toolu_2", "name": "weather", "input": {"city": "Bonn"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": "rainy"},
                ],
            },
            {"role": "user", "content": "And now?"},
        ],
        "tools": [
            {"name": "weather", "description": "Tells the weather.", "input_schema": SCHEMA},
            {"name": "now", "input_schema": {"type": "object", "properties": {}}},
        ],
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        "stream": True,
    }


def test_system_messages_move_into_the_system_prompt() -> None:
    said = (Message(role=Role.SYSTEM, text="One."), *USED[:1], Message(role=Role.SYSTEM, text="Two."))
    body = sent(Request(messages=said, system="Zero."))
    assert body["system"] == "Zero.\n\nOne.\n\nTwo."
    assert body["messages"] == [{"role": "user", "content": "How is the weather?"}]


def test_an_empty_answer_of_before_is_left_out() -> None:
    said = (*USED[:1], Message(role=Role.ASSISTANT), Message(role=Role.USER, text="Well?"))
    assert [turn["role"] for turn in sent(Request(messages=said))["messages"]] == ["user", "user"]


def test_a_tool_call_without_text_has_no_empty_block() -> None:
    said = (*USED[:1], Message(role=Role.ASSISTANT, tool_calls=(CALL,)))
    assert [block["type"] for block in sent(Request(messages=said))["messages"][1]["content"]] == ["tool_use"]


def test_results_at_the_end_are_sent() -> None:
    assert sent(Request(messages=USED[:3]))["messages"][-1]["content"][0]["content"] == "sunny"


def test_the_cache_is_marked_at_the_end_of_what_is_shared() -> None:
    mark = {"type": "ephemeral", "ttl": "5m"}
    tools = sent(Request(messages=USED, tools=(WEATHER, Tool(name="now")), cache="5m"))
    assert [tool.get("cache_control") for tool in tools["tools"]] == [None, mark]
    plain = sent(Request(messages=USED, cache="5m"))
    assert plain["messages"][0]["content"] == [{"type": "text", "text": USED[0].text, "cache_control": mark}]


def test_the_shared_beginning_of_a_message_is_a_marked_block_of_its_own() -> None:
    mark = {"type": "ephemeral", "ttl": "5m"}
    said = Request(messages=(Message(role=Role.USER, text="the files, and a question"),), system="Be brief.", shared=9)
    assert sent(said)["messages"][0]["content"] == "the files, and a question"
    marked = sent(replace(said, cache="5m"))
    first = {"type": "text", "text": "the files", "cache_control": mark}
    assert marked["messages"][0]["content"] == [first, {"type": "text", "text": ", and a question"}]
    assert marked["system"] == "Be brief."
    everything = sent(replace(said, cache="5m", shared=99))
    assert [block["text"] for block in everything["messages"][0]["content"]] == ["the files, and a question"]


def test_a_text_that_is_not_unicode_goes_out_escaped() -> None:
    assert sent(ask("\ud800"))["messages"][0]["content"] == "\ud800"


# The newest SDK no longer offers these; the version of the API that we ask for still takes them.
SAMPLING = {"temperature", "top_p"}


@pytest.mark.parametrize("request_", [EVERYTHING, ask("hi"), replace(EVERYTHING, system=""), Request(messages=USED)])
@pytest.mark.parametrize("stream", [False, True])
def test_the_official_types_know_everything_we_send(
    request_: Request, stream: bool, unrolled: Callable[[Any], Any]
) -> None:
    kind = MessageCreateParamsStreaming if stream else MessageCreateParamsNonStreaming
    body = {name: value for name, value in sent(request_, stream=stream).items() if name not in SAMPLING}
    adapter: TypeAdapter[Any] = TypeAdapter(kind)  # kept: its lazy lists need it
    assert unrolled(adapter.validate_python(body)) == body, "what the types do not know, they drop"


TEXTS = st.text(max_size=40)
MESSAGES = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(Role),
        text=TEXTS,
        tool_calls=st.lists(st.builds(ToolCall, id=TEXTS, name=TEXTS), max_size=1).map(tuple),
        tool_call_id=st.none() | TEXTS,
    ),
    max_size=6,
).map(tuple)


@given(st.builds(Request, messages=MESSAGES, system=TEXTS, cache=st.sampled_from([None, "5m", "1h"])))
def test_every_request_can_be_written_and_every_result_is_sent_once(request_: Request) -> None:
    turns = sent(request_)["messages"]
    blocks = [block for turn in turns if isinstance(turn["content"], list) for block in turn["content"]]
    results = [block["content"] for block in blocks if block["type"] == "tool_result"]
    assert results == [message.text for message in request_.messages if message.role is Role.TOOL]
