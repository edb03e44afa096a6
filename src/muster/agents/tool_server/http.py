"""The Streamable HTTP transport of MCP on loopback: each client has a token, and sees the tools of that token only.

One request a connection, answered as a whole: there are no streams, no sessions and nothing that waits.
"""

import asyncio
import contextlib
import hmac
import json
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

import httptools

from muster.agents.tool_server.protocol import VERSIONS, RpcCode, RpcError, ToolServer, failure
from muster.domain.canonical import Json
from muster.text.http_messages import whole_response

ADDRESS = "127.0.0.1"
PATH = b"/mcp"
MAX_HEAD = 16 * 1024  # bytes
MAX_BODY = 1024 * 1024  # bytes
MAX_CONNECTIONS = 128
READ_SECONDS = 30.0  # that a client may take to send its request

log = logging.getLogger("muster.agents.tool_server")


class HttpRefusal(Exception):
    """A request is not answered by a tool server; the status says why."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass(slots=True)
class ParsedHead:
    """The first lines of a request; filled in by the parser, which calls these methods."""

    method: bytes = b""
    target: bytes = b""
    headers: dict[bytes, bytes] = field(default_factory=dict)  # names in lower case

    def on_url(self, url: bytes) -> None:
        """Take a piece of the target."""
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; of one that is given twice the two values disagree, and neither is believed."""
        name = name.lower()
        self.headers[name] = value if name not in self.headers else b""


class LoopbackServer:
    """Serves tool servers to the processes of this machine that know a token of one."""

    def __init__(self) -> None:
        self._secret = secrets.token_urlsafe(24)
        self._clients: dict[str, ToolServer] = {}
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._port = 0

    @property
    def secret(self) -> str:
        """What every token begins with: whoever hides this hides what a token is worth."""
        return self._secret

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://{ADDRESS}:{self._port}{PATH.decode()}"

    async def start(self) -> None:
        """Listen at a port that the system chooses; a second time does nothing."""
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, ADDRESS, 0, limit=MAX_HEAD)
            self._port = self._server.sockets[0].getsockname()[1]

    def admit(self, tools: ToolServer) -> str:
        """Return a new token for a client of these tools."""
        token = f"{self._secret}.{secrets.token_urlsafe(24)}"
        self._clients[token] = tools
        return token

    def revoke(self, token: str) -> None:
        """Let a token be worth nothing."""
        self._clients.pop(token, None)

    async def close(self) -> None:
        """Stop listening and drop all clients; may be done twice."""
        self._clients.clear()
        if self._server is None:
            return
        self._server.close()
        for connection in tuple(self._connections):
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)
        self._server = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # it is called in one
        self._connections.add(task)
        try:
            status, body = await self._respond(reader)
            writer.write(_response(status, body))
            await asyncio.wait_for(writer.drain(), READ_SECONDS)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client is gone, or says nothing
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _respond(self, reader: asyncio.StreamReader) -> tuple[HTTPStatus, Json]:
        try:
            if len(self._connections) > MAX_CONNECTIONS:
                raise HttpRefusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")
            tools, message = await asyncio.wait_for(self._read(reader), READ_SECONDS)
            answer = await tools.answer(message)
        except HttpRefusal as refusal:
            return refusal.status, {"error": refusal.message}
        except RpcError as error:
            return HTTPStatus.BAD_REQUEST, failure(None, error)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            raise
        except Exception:  # a client must not hang because of a defect here; what went wrong is not for its eyes
            log.exception("mcp.request_failed")
            return HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "the server failed"}
        return (HTTPStatus.ACCEPTED, None) if answer is None else (HTTPStatus.OK, answer)

    async def _read(self, reader: asyncio.StreamReader) -> tuple[ToolServer, Json]:
        """Read one request; who asks is checked before anything of its body is read."""
        head = await _read_head(reader)
        self._require_local(head.headers)
        tools = self._client(head.headers)
        _require_post(head)
        size = _size(head.headers)
        try:
            return tools, json.loads(await reader.readexactly(size))
        except (ValueError, RecursionError):
            raise RpcError(RpcCode.PARSE_ERROR, "the body is not JSON") from None

    def _require_local(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuse a browser that was led here by another page: its Host or its Origin is not ours."""
        own = {f"{name}:{self._port}".encode() for name in (ADDRESS, "localhost")}
        if headers.get(b"host") not in own:
            raise HttpRefusal(HTTPStatus.FORBIDDEN, "the Host header names another server")
        if b"origin" in headers and headers[b"origin"].removeprefix(b"http://") not in own:
            raise HttpRefusal(HTTPStatus.FORBIDDEN, "the Origin header names another server")

    def _client(self, headers: Mapping[bytes, bytes]) -> ToolServer:
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        found = None
        for token, tools in self._clients.items():  # all of them, so that the time tells nothing
            if hmac.compare_digest(token.encode(), given.strip()):
                found = tools
        if found is None or scheme.lower() != b"bearer":
            raise HttpRefusal(HTTPStatus.UNAUTHORIZED, "the token is missing, wrong or expired")
        return found


async def _read_head(reader: asyncio.StreamReader) -> ParsedHead:
    try:
        data = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise HttpRefusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too long") from None
    head = ParsedHead()
    parser = httptools.HttpRequestParser(head)
    try:
        parser.feed_data(data)
        head.method = parser.get_method()
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        raise HttpRefusal(HTTPStatus.BAD_REQUEST, "this is not HTTP/1.1") from None
    return head


def _require_post(head: ParsedHead) -> None:
    if head.target.partition(b"?")[0] != PATH:
        raise HttpRefusal(HTTPStatus.NOT_FOUND, f"only {PATH.decode()} is served here")
    if head.method != b"POST":
        raise HttpRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "only POST is answered: there are no streams or sessions")
    if head.headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        raise HttpRefusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body must be application/json")
    version = head.headers.get(b"mcp-protocol-version")
    if version is not None and version not in {known.encode() for known in VERSIONS}:
        raise RpcError(RpcCode.INVALID_REQUEST, f"the protocol is spoken in the versions {', '.join(VERSIONS)}")


def _size(headers: Mapping[bytes, bytes]) -> int:
    told = headers.get(b"content-length", b"")
    if b"transfer-encoding" in headers or not told.isdigit():
        raise HttpRefusal(HTTPStatus.LENGTH_REQUIRED, "the body needs a Content-Length")
    if len(told) > len(str(MAX_BODY)) or int(told) > MAX_BODY:
        raise HttpRefusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {MAX_BODY:,} bytes")
    return int(told)


def _response(status: HTTPStatus, answer: Json) -> bytes:
    body = b"" if answer is None else json.dumps(answer, ensure_ascii=False).encode("utf-8", "backslashreplace")
    allowed = [("allow", "POST")] if status is HTTPStatus.METHOD_NOT_ALLOWED else []
    return whole_response(status, body, [("connection", "close"), *allowed])
