"""The Model Context Protocol as a server with tools speaks it: one JSON-RPC message in, one answer or none out.

It holds no session: every message is answered by itself, so a client that was cut off just asks again.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from muster.domain.call import Tool
from muster.domain.canonical import Json
from muster.domain.errors import MusterError
from muster.text.schemas.json_schema import flaw

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")  # of the protocol, the newest first

ToolHandler = Callable[[Mapping[str, Json]], Awaitable[Json]]
Params = Mapping[str, Any]


class RpcCode(IntEnum):
    """The errors of JSON-RPC that are used here."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602


class RpcError(Exception):
    """A message cannot be answered; the client is told why."""

    def __init__(self, code: RpcCode, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """A tool and what is done when it is called; its arguments fit its schema by then."""

    tool: Tool
    handle: ToolHandler


class ToolServer:
    """Answers the messages of one client: who it is, which tools there are, and calls of them."""

    def __init__(self, name: str, version: str, tools: Sequence[OfferedTool], *, instructions: str = "") -> None:
        self._name, self._version, self._instructions = name, version, instructions
        self._tools = {offered.tool.name: offered for offered in tools}

    async def answer(self, message: Json) -> Mapping[str, Any] | None:
        """Return the answer to a message; None to a notification, and to an answer, as this server asks nothing."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return failure(None, RpcError(RpcCode.INVALID_REQUEST, "this is not one JSON-RPC 2.0 message"))
        if "id" not in message or "method" not in message:
            return None
        try:
            result = await self._result(message["method"], message.get("params") or {})
        except RpcError as error:
            return failure(message["id"], error)
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    async def _result(self, method: Json, params: Json) -> Json:
        if not isinstance(params, dict):
            raise RpcError(RpcCode.INVALID_PARAMS, "params must be an object")
        match method:
            case "initialize":
                return self._initialize(params)
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [_listed(offered.tool) for offered in self._tools.values()]}
            case "tools/call":
                return await self._call(params)
        raise RpcError(RpcCode.METHOD_NOT_FOUND, f"method {method!r} is not offered here")

    def _initialize(self, params: Params) -> Json:
        """Return the version that the client asked for if it is spoken here, else the newest one that is."""
        asked = params.get("protocolVersion")
        found: dict[str, Json] = {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": self._name, "version": self._version},
        }
        return found | ({"instructions": self._instructions} if self._instructions else {})

    async def _call(self, params: Params) -> Json:
        """Call a tool; what goes wrong in it is a result that the model reads, not an error of the protocol."""
        offered = self._tools.get(str(params.get("name")))
        if offered is None:
            raise RpcError(RpcCode.INVALID_PARAMS, f"there is no tool {params.get('name')!r}")
        arguments = params.get("arguments") or {}
        if wrong := flaw(arguments, offered.tool.parameters):
            return _content(f"the arguments of {offered.tool.name} do not fit: {wrong}", failed=True)
        try:
            return _content(await offered.handle(arguments))
        except MusterError as error:
            return _content(": ".join((error.message, *error.suggestions)), failed=True)


def failure(id_: Json, error: RpcError) -> dict[str, Json]:
    """Return an error as the answer to a message."""
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": int(error.code), "message": error.message}}


def _listed(tool: Tool) -> dict[str, Json]:
    return {"name": tool.name, "description": tool.description, "inputSchema": dict(tool.parameters)}


def _content(value: Json, *, failed: bool = False) -> dict[str, Json]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}], "isError": failed}
