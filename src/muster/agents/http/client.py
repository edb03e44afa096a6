"""The HTTP client: one exchange at a time on connections that are used again; it never sends twice."""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from typing import NamedTuple, Protocol

from muster.agents.http.connection import Connection, ConnectionState, TimeLimit
from muster.agents.http.pool import ConnectionPool
from muster.agents.http.request import RequestHead, head_of, split_url
from muster.agents.http.tls import trust_store
from muster.agents.http.tunnel import refusal
from muster.domain.agent import Timeouts
from muster.domain.errors import BadConfiguration
from muster.domain.network import DIRECT, Network


class HttpResponse(NamedTuple):
    """A whole answer; the names of headers are found in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ResponseStream(NamedTuple):
    """An answer whose body is still arriving."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]

    async def body(self) -> bytes:
        """Wait for the rest of the body."""
        return b"".join([chunk async for chunk in self.chunks])

    async def beginning(self, most: int) -> bytes:
        """Wait for at most so many bytes of a body that may have no end."""
        found = b""
        while len(found) < most and (chunk := await anext(self.chunks, b"")):
            found += chunk
        return found[:most]


class ResponseChunks:
    """The body of an answer, as it arrives; whoever is canceled while waiting for it ends the exchange."""

    __slots__ = ("_connection", "_idle", "over")

    def __init__(self, connection: Connection, idle: float) -> None:
        self._connection, self._idle = connection, idle
        self.over = False

    def __aiter__(self) -> "ResponseChunks":
        return self

    async def __anext__(self) -> bytes:
        if self.over:  # the connection may already carry the answer to somebody else
            raise RuntimeError("the exchange is over: read the body before leaving its context")
        try:
            chunk = await self._connection.piece(self._idle)
        except BaseException:
            self._connection.abort()  # what is left on this connection belongs to nobody
            raise
        if not chunk:
            raise StopAsyncIteration
        return chunk


class RequestBody(NamedTuple):
    """A body whose size is known before; its pieces are asked for as the server takes them."""

    size: int  # of the pieces
    pieces: AsyncIterator[bytes]
    before: bytes = b""
    after: bytes = b""

    @property
    def length(self) -> int:
        """Count all bytes of the body."""
        return len(self.before) + self.size + len(self.after)

    async def load(self, connection: Connection, idle: float) -> bool:
        """Send everything; False when the server answered without waiting for the end."""
        try:
            return await self._load(connection, idle)
        finally:
            if isinstance(self.pieces, AsyncGenerator):
                await self.pieces.aclose()  # it may hold on to something, and was perhaps not asked to its end

    async def _load(self, connection: Connection, idle: float) -> bool:
        left = self.size
        wanted = not self.before or await connection.write(self.before, idle)
        while wanted and (piece := await anext(self.pieces, None)) is not None:
            left -= len(piece)
            if left < 0:
                break
            wanted = await connection.write(piece, idle)
        if wanted and left:  # whatever we could send now would be taken for something else
            raise RuntimeError(f"the pieces of a body are not the {self.size} bytes that were promised")
        return wanted and (not self.after or await connection.write(self.after, idle))


MAX_BYTES = 64 * 1024 * 1024
KEEP_SECONDS = 15.0  # shorter than servers keep idle connections, so that they seldom close one as we use it


class Http(Protocol):
    """Carries one request out and its answer back, from many tasks at once.

    Raises `Unreachable` when the request never left, `OutcomeUnknown` when it left and no whole answer came,
    `AuthRefused` when a proxy refuses to pass it on, and `BadConfiguration` when the address or a header can never be
    sent or the proxy cannot be used; any status is an answer. Cancellation closes the connection and is passed on.
    """

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts) -> HttpResponse:
        """Send a body and wait for the whole answer, however long the model is silent before it."""

    def stream(
        self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[ResponseStream]:
        """Send a body and give the answer as it arrives; leaving the context ends the exchange."""

    async def close(self) -> None:
        """Close the connections; may be called twice."""


class BatchHttp(Http, Protocol):
    """Carries what batches need besides, under the same promises."""

    async def get(self, url: str, headers: Mapping[str, str], timeouts: Timeouts) -> HttpResponse:
        """Ask for something and wait for the whole of it."""

    def fetch(
        self, url: str, headers: Mapping[str, str], timeouts: Timeouts
    ) -> AbstractAsyncContextManager[ResponseStream]:
        """Ask for something of any length and give it as it arrives; leaving the context ends the exchange.

        The time of the call is that until the head; after it only silence ends the exchange, because how long it
        takes is also up to the reader.
        """

    async def upload(self, url: str, headers: Mapping[str, str], body: RequestBody, timeouts: Timeouts) -> HttpResponse:
        """Send a body in pieces and wait for the whole answer, which may come before the last piece is out.

        The time of the call begins when the body is out; before, the idle time bounds each wait for the server.
        """


class HttpClient:
    """HTTP/1.1 with connections that are used again; serves one event loop."""

    def __init__(
        self,
        *,
        most_bytes: int = MAX_BYTES,
        keep: float = KEEP_SECONDS,
        tls: ssl.SSLContext | None = None,
        network: Network = DIRECT,
    ) -> None:
        self._connections = ConnectionPool(most_bytes=most_bytes, keep=keep, tls=tls, network=network)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts) -> HttpResponse:
        """Send a body and wait for the whole answer."""
        head = self._head("POST", url, headers)
        return await self._exchange(head, head.request(body), timeouts)

    async def get(self, url: str, headers: Mapping[str, str], timeouts: Timeouts) -> HttpResponse:
        """Ask for something and wait for the whole of it."""
        head = self._head("GET", url, headers)
        return await self._exchange(head, head.alone(), timeouts)

    def stream(
        self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[ResponseStream]:
        """Send a body and give the answer as it arrives; leaving the context ends the exchange."""
        head = self._head("POST", url, headers)
        return self._flow(head, head.request(body), timeouts, endless=False)

    def fetch(
        self, url: str, headers: Mapping[str, str], timeouts: Timeouts
    ) -> AbstractAsyncContextManager[ResponseStream]:
        """Ask for something of any length and give it as it arrives; leaving the context ends the exchange."""
        head = self._head("GET", url, headers)
        return self._flow(head, head.alone(), timeouts, endless=True)

    async def upload(self, url: str, headers: Mapping[str, str], body: RequestBody, timeouts: Timeouts) -> HttpResponse:
        """Send a body in pieces and wait for the whole answer."""
        head = self._head("POST", url, headers)
        # A connection of its own: one that lay idle may be closed just as we use it, and a lost batch costs more.
        connection, _ = await self._connections.open(head.origin, timeouts)
        limit: TimeLimit | None = None
        try:
            connection.send(head.before(body.length), ConnectionState.SENDING)
            if await body.load(connection, timeouts.idle):
                limit = connection.limit(timeouts.call, timeouts.call)
                await connection.finish()
            _require_passed(head, connection.response.status)
            return HttpResponse(connection.response.status, connection.response.headers, connection.response.take())
        finally:
            connection.abort()
            if limit is not None:
                limit.cancel()

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        await self._connections.close()

    def _head(self, method: str, url: str, headers: Mapping[str, str]) -> RequestHead:
        """Spell a head for whoever reads it: the server, or a proxy that passes it on."""
        head = head_of(url, tuple(headers.items()), method)
        if head.origin.secure or (proxy := self._connections.route(head.origin)) is None:
            return head
        return head.through(proxy)

    async def _exchange(self, head: RequestHead, request: bytes, timeouts: Timeouts) -> HttpResponse:
        connection, left = self._connections.take(head.origin), timeouts.call
        if connection is None:
            connection, left = await self._connections.open(head.origin, timeouts)
        # No byte comes before the model has written everything, so silence means nothing here.
        limit = connection.limit(left, timeouts.call)
        try:
            connection.send(request, ConnectionState.WAITING)
            await connection.wait()
            _require_passed(head, connection.response.status)
        except BaseException:
            connection.abort()
            raise
        finally:
            limit.cancel()
        response = connection.response
        answer = HttpResponse(response.status, response.headers, response.take())
        self._connections.give_back(connection)
        return answer

    @asynccontextmanager
    async def _flow(
        self, head: RequestHead, request: bytes, timeouts: Timeouts, *, endless: bool
    ) -> AsyncIterator[ResponseStream]:
        connection, left = self._connections.take(head.origin), timeouts.call
        if connection is None:
            connection, left = await self._connections.open(head.origin, timeouts)
        limit = connection.limit(left, timeouts.call)
        chunks = ResponseChunks(connection, timeouts.idle)
        try:
            connection.send(request, ConnectionState.STREAMING, endless=endless)
            while not connection.response.headed:
                await connection.news(timeouts.idle)
            _require_passed(head, connection.response.status)
            if endless:
                limit.cancel()
            yield ResponseStream(connection.response.status, connection.response.headers, chunks)
        except BaseException:
            connection.abort()
            raise
        finally:
            limit.cancel()
            chunks.over = True
        self._connections.give_back(connection)  # keeps it when the body had come to its end, else closes it


def require_way(url: str, network: Network) -> None:
    """Raise BadConfiguration when the proxy or the certificates for an address cannot be used.

    Whoever makes an agent calls this before anything is reserved; what is no address is refused by the agent itself.
    """
    try:
        origin, _ = split_url(url)
    except BadConfiguration:
        return
    proxy = network.proxies.route(origin.host, origin.port, secure=origin.secure)
    if origin.secure or (proxy is not None and proxy.secure):
        trust_store(network)


def _require_passed(head: RequestHead, status: int) -> None:
    """Raise the refusal of a proxy that did not pass a request on."""
    if head.proxy is not None and status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        raise refusal(head.origin, head.proxy, status)
