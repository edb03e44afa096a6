"""Calls tools of the MCP servers that the scripted CLI agent was told of, over HTTP on loopback."""

import json
from collections.abc import Mapping
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:  # an agent starts in a moment
    from muster.domain.canonical import Json

_SECONDS = 30


def call_tool(config: str | None, full_name: str, arguments: "Mapping[str, Json]") -> tuple[str, bool]:
    """Call `mcp__SERVER__TOOL`; return what it gave and whether it failed. Raises OSError, ValueError or KeyError."""
    if config is None:
        raise ValueError("there is no --mcp-config and MUSTER_MCP_CONFIG is not set")
    _, server_name, tool = full_name.split("__", 2)
    with open(config, encoding="utf-8") as file:  # noqa: PTH123
        server = json.load(file)["mcpServers"][server_name]
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    answer = _post(server["url"], server.get("headers", {}), json.dumps(message).encode())
    if "result" not in answer:
        return str(answer.get("error")), True
    result = answer["result"]
    return "".join(block["text"] for block in result["content"]), bool(result.get("isError"))


def _post(url: str, headers: dict[str, str], body: bytes) -> Any:
    place = urlsplit(url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=_SECONDS)
    try:
        connection.request("POST", place.path, body, {"content-type": "application/json", **headers})
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()
