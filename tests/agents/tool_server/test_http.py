"""The loopback server: who is let in, what is read of a request, and that the official client understands it."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client

from mcp import ClientSession
from muster.agents.tool_server.http import MAX_BODY, MAX_HEAD, LoopbackServer
from muster.agents.tool_server.protocol import OfferedTool, ToolServer
from muster.domain.call import Tool


def tools(name: str) -> ToolServer:
    async def who(given: Mapping[str, Any]) -> Any:
        return name

    return ToolServer("muster", "1", [OfferedTool(tool=Tool(name="who", description="Say who."), handle=who)])


@dataclass(frozen=True, kw_only=True)
class Answered:
    status: int
    body: Any


class Client:
    """Sends requests as they are written here, not as a library would improve them."""

    def __init__(self, server: LoopbackServer, token: str) -> None:
        self.server, self.token = server, token
        self.host = urlsplit(server.url).netloc

    async def send(
        self, body: bytes, *, method: str = "POST", path: str = "/mcp", size: str | None = None, **changed: str | None
    ) -> Answered:
        headers: dict[str, str | None] = {
            "host": self.host,
            "authorization": f"Bearer {self.token}",
            "content-type": "application/json",
            "content-length": str(len(body)) if size is None else size,
        }
        headers |= {name.replace("_", "-"): value for name, value in changed.items()}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items() if value)]
        return await self.raw("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def raw(self, data: bytes) -> Answered:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.host.rpartition(":")[2]))
        try:
            writer.write(data)
            answer = await asyncio.wait_for(reader.read(), 30)
        finally:
            writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        return Answered(status=int(head.split()[1]), body=json.loads(body) if body else None)


def message(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    server = LoopbackServer()
    await server.start()
    yield Client(server, server.admit(tools("coder")))
    await server.close()


async def test_a_token_leads_to_the_tools_of_its_owner_until_it_is_revoked(client: Client) -> None:
    other = client.server.admit(tools("critic"))
    call = message("tools/call", name="who")
    answers = [await client.send(call), await client.send(call, authorization=f"Bearer {other}")]
    assert [answer.body["result"]["content"][0]["text"] for answer in answers] == ["coder", "critic"]
    client.server.revoke(other)
    refused = await client.send(call, authorization=f"Bearer {other}")
    assert (refused.status, refused.body) == (401, {"error": "the token is missing, wrong or expired"})
    assert (await client.send(call)).status == 200


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"authorization": None}, 401),
        ({"authorization": "Bearer x"}, 401),
        ({"authorization": "Bearer ÿ"}, 401),
        ({"host": "evil.example:80"}, 403),
        ({"host": None}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"mcp_protocol_version": "2020-01-01"}, 400),
        ({"transfer_encoding": "chunked", "content_length": None}, 411),
    ],
)
async def test_requests_of_strangers_are_refused(client: Client, changed: dict[str, str | None], status: int) -> None:
    assert (await client.send(message("ping"), **changed)).status == status  # type: ignore[arg-type]


async def test_bounds_hold_before_anything_is_read(client: Client) -> None:
    assert (await client.send(b"", size=str(MAX_BODY + 1))).status == 413
    assert (await client.send(b"", size="9" * 5000)).status == 400
    assert (await client.send(b"", size="-1")).status == 400
    assert (await client.send(message("ping"), x=("y" * 2 * MAX_HEAD))).status == 431
    assert (await client.raw(b"hello\r\n\r\n")).status == 400


async def test_there_are_no_streams_and_no_other_paths(client: Client) -> None:
    for method in ("GET", "DELETE"):
        assert (await client.send(b"", method=method)).status == 405
    assert (await client.send(message("ping"), path="/")).status == 404
    notification = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
    assert await client.send(notification) == Answered(status=202, body=None)
    assert (await client.send(b"{")).body["error"]["code"] == -32700
    own = f"http://{client.host}"
    assert (await client.send(message("ping"), origin=own)).body["result"] == {}


async def test_a_closed_server_is_not_there(client: Client) -> None:
    waiting = await asyncio.open_connection("127.0.0.1", int(client.host.rpartition(":")[2]))
    await client.server.close()
    await client.server.close()
    assert await asyncio.wait_for(waiting[0].read(), 30) == b""
    waiting[1].close()
    with pytest.raises(OSError):
        await client.send(message("ping"))


async def test_the_official_client_understands_it(client: Client) -> None:
    headers = {"authorization": f"Bearer {client.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        streamable_http_client(client.server.url, http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        hello = await session.initialize()
        assert hello.server_info.name == "muster"
        assert [tool.name for tool in (await session.list_tools()).tools] == ["who"]
        result = await session.call_tool("who", {})
        assert (result.is_error, result.content[0].model_dump()["text"]) == (False, "coder")
        await session.send_ping()
