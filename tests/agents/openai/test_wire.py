import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from pydantic import TypeAdapter

from muster.agents.openai.wire import MaxTokens, encode
from muster.domain.call import Message, Request, Role, Tool, ToolCall, ask

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CALL = ToolCall(id="call_1", name="weather", arguments={"city": "Bonn"})
USED = (
    Message(role=Role.USER, text="How is the weather?"),
    Message(role=Role.ASSISTANT, tool_calls=(CALL,)),
    Message(role=Role.TOOL, text="sunny", tool_call_id="call_1"),
    Message(role=Role.SYSTEM, text="Be kind."),
)
EVERYTHING = Request(
    messages=USED,
    system="Be brief.",
    tools=(Tool(name="weather", description="Tells the weather.", parameters=SCHEMA), Tool(name="now")),
    max_tokens=99,
    temperature=0.5,
    top_p=0.9,
    seed=7,
    stop=("END",),
    schema=SCHEMA,
    cache="1h",
)


def sent(request: Request, *, stream: bool = False, max_tokens: MaxTokens = MaxTokens.NEW) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(encode(request, "gpt-test", stream=stream, max_tokens=max_tokens))
    return body


def test_the_simplest_request_says_no_more_than_it_must() -> None:
    assert sent(replace(ask("hi"), max_tokens=5)) == {
        "model": "gpt-test",
        "max_completion_tokens": 5,
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_compatible_servers_get_the_old_name_of_max_tokens() -> None:
    body = sent(ask("hi"), max_tokens=MaxTokens.OLD)
    assert body["max_tokens"] == 2048
    assert "max_completion_tokens" not in body


def test_a_full_request_in_full() -> None:
    assert sent(EVERYTHING, stream=True) == {
        "model": "gpt-test",
        "max_completion_tokens": 99,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "How is the weather?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city":"Bonn"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
            {"role": "system", "content": "Be kind."},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "weather", "description": "Tells the weather.", "parameters": SCHEMA},
            },
            {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
        ],
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "stop": ["END"],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}},
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("request_", [EVERYTHING, ask("hi"), Request(messages=USED)])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("max_tokens", MaxTokens)
def test_the_official_types_know_everything_we_send(
    request_: Request, stream: bool, max_tokens: MaxTokens, unrolled: Callable[[Any], Any]
) -> None:
    kind = CompletionCreateParamsStreaming if stream else CompletionCreateParamsNonStreaming
    body = sent(request_, stream=stream, max_tokens=max_tokens)
    adapter: TypeAdapter[Any] = TypeAdapter(kind)  # kept: its lazy lists need it
    assert unrolled(adapter.validate_python(body)) == body, "what the types do not know, they drop"
