"""The one way out: a small HTTP seam for agents, and its implementation over our own HTTP/1.1 connections.

It sends one request and gives one answer. It never retries, follows no redirect (a redirect could carry the key to
another origin), keeps no cookies, reads no proxy from the environment and does not decompress. Nothing here knows a
provider.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple, Protocol

from muster.agents.connection import Connection
from muster.agents.connections import Connections
from muster.agents.head import head_of
from muster.domain.agent import Timeouts

MOST_BYTES = 64 * 1024 * 1024
KEEP_SECONDS = 15.0  # shorter than servers keep idle connections, so that they seldom close one as we use it


class Answer(NamedTuple):
    """A whole answer; the names of headers are found in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Flow(NamedTuple):
    """An answer whose body is still arriving."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]

    async def body(self) -> bytes:
        """Wait for the rest of the body."""
        return b"".join([chunk async for chunk in self.chunks])


class Http(Protocol):
    """Carries one request out and its answer back, from many tasks at once.

    Raises `Unreachable` when the request never left, `OutcomeUnknown` when it left and no whole answer came, and
    `BadConfiguration` when the address or a header can never be sent; any status is an answer. Cancellation closes
    the connection and is passed on.
    """

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts) -> Answer:
        """Send a body and wait for the whole answer, however long the model is silent before it."""

    def stream(
        self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[Flow]:
        """Send a body and give the answer as it arrives; leaving the context ends the exchange."""

    async def close(self) -> None:
        """Give back the connections; may be called twice."""


class HttpClient:
    """HTTP/1.1 with connections that are used again; serves one event loop."""

    def __init__(
        self, *, most_bytes: int = MOST_BYTES, keep: float = KEEP_SECONDS, tls: ssl.SSLContext | None = None
    ) -> None:
        self._connections = Connections(most_bytes=most_bytes, keep=keep, tls=tls)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts) -> Answer:
        """Send a body and wait for the whole answer."""
        head = head_of(url, tuple(headers.items()))
        connection, left = self._connections.take(head.origin), timeouts.call
        if connection is None:
            connection, left = await self._connections.open(head.origin, timeouts)
        # No byte comes before the model has written everything, so silence means nothing here.
        timer = asyncio.get_running_loop().call_later(left, connection.expire, timeouts.call)
        try:
            connection.send(head.request(body), streams=False)
            await connection.wait()
        except BaseException:
            connection.abort()
            raise
        finally:
            timer.cancel()
        response = connection.response
        answer = Answer(response.status, response.headers, response.take())
        self._connections.give_back(connection)
        return answer

    @asynccontextmanager
    async def stream(
        self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts
    ) -> AsyncIterator[Flow]:
        """Send a body and give the answer as it arrives; leaving the context ends the exchange."""
        head = head_of(url, tuple(headers.items()))
        connection, left = self._connections.take(head.origin), timeouts.call
        if connection is None:
            connection, left = await self._connections.open(head.origin, timeouts)
        timer = asyncio.get_running_loop().call_later(left, connection.expire, timeouts.call)
        chunks = _Chunks(connection, timeouts.idle)
        try:
            connection.send(head.request(body), streams=True)
            while not connection.response.headed:
                await connection.news(timeouts.idle)
            yield Flow(connection.response.status, connection.response.headers, chunks)
        except BaseException:
            connection.abort()
            raise
        finally:
            timer.cancel()
            chunks.over = True
        self._connections.give_back(connection)  # keeps it when the body had come to its end, else closes it

    async def close(self) -> None:
        """Give back the connections; may be called twice."""
        await self._connections.close()


class _Chunks:
    """The body of an answer, as it arrives; whoever is canceled while waiting for it ends the exchange."""

    __slots__ = ("_connection", "_idle", "over")

    def __init__(self, connection: Connection, idle: float) -> None:
        self._connection, self._idle = connection, idle
        self.over = False

    def __aiter__(self) -> "_Chunks":
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
