"""MCP messages and their answers."""

from collections.abc import Mapping
from typing import Any

import pytest

from muster.agents.tool_server.protocol import VERSIONS, OfferedTool, ToolServer
from muster.domain.call import Tool
from muster.domain.errors import NotFound

PARAMETERS = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


async def echo(given: Mapping[str, Any]) -> Any:
    if given["text"] == "nobody":
        raise NotFound("slot 'nobody' not found", suggestions=("muster pool slots",))
    return {"said": given["text"]}


SERVER = ToolServer(
    "muster",
    "1",
    [OfferedTool(tool=Tool(name="echo", description="Say it.", parameters=PARAMETERS), handle=echo)],
    instructions="Be kind.",
)


async def asked(method: str, params: Any = None) -> Any:
    answer = await SERVER.answer({"jsonrpc": "2.0", "id": 7, "method": method, "params": params or {}})
    assert answer is not None
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 7)
    return answer


@pytest.mark.parametrize(("wanted", "told"), [(VERSIONS[-1], VERSIONS[-1]), ("1999-01-01", VERSIONS[0])])
async def test_a_version_that_is_not_spoken_is_answered_with_the_newest(wanted: str, told: str) -> None:
    result = (await asked("initialize", {"protocolVersion": wanted}))["result"]
    assert (result["protocolVersion"], result["instructions"]) == (told, "Be kind.")
    assert result["capabilities"] == {"tools": {"listChanged": False}}


async def test_tools_are_listed_and_called() -> None:
    (tool,) = (await asked("tools/list"))["result"]["tools"]
    assert tool == {"name": "echo", "description": "Say it.", "inputSchema": PARAMETERS}
    result = (await asked("tools/call", {"name": "echo", "arguments": {"text": "hé"}}))["result"]
    assert result == {"content": [{"type": "text", "text": '{"said": "hé"}'}], "isError": False}
    assert (await asked("ping"))["result"] == {}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "'text' is a required property"),
        ({"text": "x", "sender": "me"}, "sender"),
        ({"text": "nobody"}, "slot 'nobody' not found: muster pool slots"),
    ],
)
async def test_what_goes_wrong_in_a_tool_is_told_to_the_model(arguments: Any, told: str) -> None:
    result = (await asked("tools/call", {"name": "echo", "arguments": arguments}))["result"]
    assert result["isError"] is True
    assert told in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": "other"}, -32602),
        ("resources/list", {}, -32601),
        ("ping", [1], -32602),
    ],
)
async def test_what_is_not_offered_is_an_error_of_the_protocol(method: str, params: Any, code: int) -> None:
    assert (await asked(method, params))["error"]["code"] == code


async def test_notifications_and_answers_get_no_answer_and_what_is_no_message_an_error() -> None:
    assert await SERVER.answer({"jsonrpc": "2.0", "method": "notifications/initialized"}) is None
    assert await SERVER.answer({"jsonrpc": "2.0", "id": 1, "result": {}}) is None
    messages: list[Any] = [[], "x", {"id": 1, "method": "ping"}]
    for message in messages:
        answer = await SERVER.answer(message)
        assert answer is not None
        assert answer["error"]["code"] == -32600
