"""Every refusal comes in the provider's own envelope, and the SDKs understand it."""

from typing import Any

import anthropic
import openai
import pytest

from muster.sim.options import Options
from muster.sim.server import serve
from tests.sdk import anthropic_client, openai_client

from .wire import ANTHROPIC, OPENAI, ask, message, one_fault

ANTHROPIC_ERRORS: dict[str, type[anthropic.APIStatusError]] = {
    "400": anthropic.BadRequestError,
    "401": anthropic.AuthenticationError,
    "403": anthropic.PermissionDeniedError,
    "404": anthropic.NotFoundError,
    "413": anthropic.ContentTooLargeError,
    "429": anthropic.RateLimitError,
    "500": anthropic.InternalServerError,
    "529": anthropic.OverloadedError,
}
ANTHROPIC_TYPES = {
    "400": "invalid_request_error",
    "401": "authentication_error",
    "403": "permission_error",
    "404": "not_found_error",
    "413": "request_too_large",
    "429": "rate_limit_error",
    "500": "api_error",
    "529": "overloaded_error",
}
OPENAI_ERRORS: dict[str, type[openai.APIStatusError]] = {
    "400": openai.BadRequestError,
    "401": openai.AuthenticationError,
    "403": openai.PermissionDeniedError,
    "404": openai.NotFoundError,
    "413": openai.APIStatusError,
    "429": openai.RateLimitError,
    "500": openai.InternalServerError,
    "529": openai.InternalServerError,
}


@pytest.mark.parametrize("kind", ANTHROPIC_ERRORS)
async def test_the_sdk_of_anthropic_raises_the_right_error(kind: str) -> None:
    async with (
        serve(Options(faults=one_fault(kind))) as server,
        anthropic_client(server.anthropic, strict=False) as client,
    ):
        with pytest.raises(ANTHROPIC_ERRORS[kind]) as caught:
            await client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "hi"}])
    assert caught.value.status_code == int(kind)
    assert caught.value.type == ANTHROPIC_TYPES[kind]
    assert caught.value.request_id == "req_sim_00000001"
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["request_id"] == "req_sim_00000001"


@pytest.mark.parametrize("kind", OPENAI_ERRORS)
async def test_the_sdk_of_openai_raises_the_right_error(kind: str) -> None:
    async with (
        serve(Options(faults=one_fault(kind))) as server,
        openai_client(server.openai, strict=False) as client,
    ):
        with pytest.raises(OPENAI_ERRORS[kind]) as caught:
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    assert caught.value.status_code == int(kind)
    assert caught.value.request_id == "req_sim_00000001"
    assert set(caught.value.body or ()) == {"message", "type", "param", "code"}  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{not json", "not valid JSON"),
        (b'{"model": "\\ud800"}', "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[1]", "not a JSON object"),
        ({"max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}, "model: Field required"),
        (message(model=7), "model: Input should be a valid string"),
        (message(model=""), "model"),
        ({"model": "m", "messages": [{"role": "user", "content": "x"}]}, "max_tokens: Field required"),
        (message(max_tokens="9"), "max_tokens"),
        (message(max_tokens=True), "max_tokens"),
        (message(max_tokens=-1), "max_tokens"),
        ({"model": "m", "max_tokens": 5}, "messages: Field required"),
        (message(messages="hello"), "messages: Input should be a valid list"),
        (message(messages=[]), "at least one message"),
        (message(messages=["hello"]), "messages.0.role"),
        (message(messages=[{"role": "robot", "content": "x"}]), "messages.0.role"),
        (message(messages=[{"role": "user", "content": ""}]), "non-empty content"),
        (message(messages=[{"role": "user"}]), "non-empty content"),
        (message(messages=[{"role": "user", "content": 5}]), "messages.0.content"),
        (message(messages=[{"role": "user", "content": ["x"]}]), "messages.0.content.0.type"),
        (message(messages=[{"role": "user", "content": [{"type": "text"}]}]), "messages.0.content.0.text"),
        (message(messages=[{"role": "user", "content": [{"type": "tool_result"}]}]), "tool_use_id"),
        (message(messages=[{"role": "assistant", "content": [{"type": "tool_use"}]}]), "input"),
        (message(system=5), "system"),
        (message(tools=[{}]), "tools"),
        (message(tools={"name": "x"}), "tools"),
        (message(stop_sequences=[" "]), "stop_sequences"),
        (message(system=[{"type": "text", "text": "x", "cache_control": {"type": "eternal"}}]), "cache_control"),
        (message(system=[{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 5), "maximum of 4"),
    ],
)
async def test_a_wrong_request_is_refused_like_anthropic_does(body: Any, says: str) -> None:
    async with serve() as server:
        answer = await ask(server, body)
    assert answer.status == 400
    assert answer.json()["type"] == "error"
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert says in answer.json()["error"]["message"]
    assert answer.headers["request-id"] == answer.json()["request_id"]
    assert server.audit.calls == 0
    assert server.audit.statuses == {"400": 1}


CHAT = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        (b"{not json", None, None),
        ({"messages": CHAT["messages"]}, "model", "missing_required_parameter"),
        (CHAT | {"model": 7}, "model", "invalid_value"),
        ({"model": "m"}, "messages", "missing_required_parameter"),
        (CHAT | {"messages": []}, "messages", "empty_array"),
        (CHAT | {"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role", "invalid_value"),
        (CHAT | {"messages": [{"role": "user"}]}, "messages[0].content", "invalid_value"),
        (
            CHAT | {"messages": [{"role": "tool", "content": "x"}]},
            "messages[0].tool_call_id",
            "missing_required_parameter",
        ),
        (
            CHAT | {"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]},
            "messages[0].tool_calls",
            "invalid_value",
        ),
        (CHAT | {"messages": [{"role": "assistant", "tool_calls": 5}]}, "messages[0].tool_calls", "invalid_value"),
        (CHAT | {"max_tokens": 0}, "max_tokens", "invalid_value"),
        (CHAT | {"max_completion_tokens": "5"}, "max_completion_tokens", "invalid_value"),
        (CHAT | {"stop": ["a", "b", "c", "d", "e"]}, "stop", "invalid_value"),
        (CHAT | {"n": 2}, "n", "invalid_value"),
    ],
)
async def test_a_wrong_request_is_refused_like_openai_does(body: Any, param: str | None, code: str | None) -> None:
    async with serve() as server:
        answer = await ask(server, body, OPENAI)
    assert answer.status == 400
    error = answer.json()["error"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)
    assert answer.headers["x-request-id"] == "req_sim_00000001"


async def test_a_request_without_a_key_is_refused() -> None:
    async with serve() as server:
        assert (await ask(server, message(), x_api_key="")).status == 401
        assert (await ask(server, message(), x_api_key="", authorization="Basic abc")).status == 401
        assert (await ask(server, message(), x_api_key="", authorization="Bearer ")).status == 401
        assert (await ask(server, message(), x_api_key="", authorization="Bearer abc")).status == 200


async def test_only_the_wanted_key_is_taken() -> None:
    async with serve(Options(key="right")) as server:
        wrong = await ask(server, CHAT, OPENAI, x_api_key="wrong")
        right = await ask(server, CHAT, OPENAI, x_api_key="", authorization="Bearer right")
    assert (wrong.status, right.status) == (401, 200)
    assert wrong.json()["error"]["code"] == "invalid_api_key"


@pytest.mark.parametrize("path", [ANTHROPIC, OPENAI])
async def test_an_unknown_model_is_not_found(path: str) -> None:
    async with serve(Options(models=("claude-*", "gpt-*"))) as server:
        answer = await ask(server, message(model="nobody"), path)
        assert (await ask(server, message(model="gpt-6"), path)).status == 200
    assert answer.status == 404
    assert "nobody" in answer.json()["error"]["message"]


async def test_a_prompt_that_is_too_long_is_refused() -> None:
    async with serve(Options(context_tokens=2)) as server:
        anthropic_says = await ask(server, message("123456789"))
        openai_says = await ask(server, message("123456789"), OPENAI)
        assert (await ask(server, message("12345678"))).status == 200
    assert anthropic_says.json()["error"]["message"] == "prompt is too long: 3 tokens > 2 maximum"
    assert openai_says.json()["error"]["code"] == "context_length_exceeded"
    assert (anthropic_says.status, openai_says.status) == (400, 400)


async def test_an_unknown_path_is_refused_in_the_words_of_its_provider() -> None:
    async with serve() as server:
        anthropic_says = await ask(server, {}, "/anthropic/v1/nothing")
        openai_says = await ask(server, {}, "/openai/v1/nothing")
    assert (anthropic_says.status, openai_says.status) == (404, 404)
    assert anthropic_says.json()["error"]["type"] == "not_found_error"
    assert openai_says.json()["error"]["type"] == "invalid_request_error"
