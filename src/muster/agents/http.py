"""The one way out: a small HTTP seam for agents, and its implementation over our own HTTP/1.1 connections.

It sends one request and gives one answer. It never retries, follows no redirect (a redirect could carry the key to
another origin), keeps no cookies, reads no proxy from the environment and does not decompress. Nothing here knows a
provider.
"""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from muster.agents.cargo import Cargo
from muster.agents.connection import Limit
from muster.agents.connections import Connections
from muster.agents.flow import Answer, Chunks, Flow
from muster.agents.head import head_of
from muster.agents.origin import Origin
from muster.domain.agent import Timeouts

MOST_BYTES = 64 * 1024 * 1024
KEEP_SECONDS = 15.0  # shorter than servers keep idle connections, so that they seldom close one as we use it


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


class Freight(Http, Protocol):
    """Carries what batches need besides, under the same promises."""

    async def get(self, url: str, headers: Mapping[str, str], timeouts: Timeouts) -> Answer:
        """Ask for something and wait for the whole of it."""

    def fetch(self, url: str, headers: Mapping[str, str], timeouts: Timeouts) -> AbstractAsyncContextManager[Flow]:
        """Ask for something of any length and give it as it arrives; leaving the context ends the exchange.

        The time of the call is that until the head; after it only silence ends the exchange, because how long it
        takes is also up to the reader.
        """

    async def upload(self, url: str, headers: Mapping[str, str], cargo: Cargo, timeouts: Timeouts) -> Answer:
        """Send a body in pieces and wait for the whole answer, which may come before the last piece is out.

        The time of the call begins when the body is out; before, the idle time bounds each wait for the server.
        """


class HttpClient:
    """HTTP/1.1 with connections that are used again; serves one event loop."""

    def __init__(
        self, *, most_bytes: int = MOST_BYTES, keep: float = KEEP_SECONDS, tls: ssl.SSLContext | None = None
    ) -> None:
        self._connections = Connections(most_bytes=most_bytes, keep=keep, tls=tls)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts) -> Answer:
        """Send a body and wait for the whole answer."""
        head = head_of(url, tuple(headers.items()))
        return await self._exchange(head.origin, head.request(body), timeouts)

    async def get(self, url: str, headers: Mapping[str, str], timeouts: Timeouts) -> Answer:
        """Ask for something and wait for the whole of it."""
        head = head_of(url, tuple(headers.items()), "GET")
        return await self._exchange(head.origin, head.alone(), timeouts)

    def stream(
        self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[Flow]:
        """Send a body and give the answer as it arrives; leaving the context ends the exchange."""
        head = head_of(url, tuple(headers.items()))
        return self._flow(head.origin, head.request(body), timeouts, endless=False)

    def fetch(self, url: str, headers: Mapping[str, str], timeouts: Timeouts) -> AbstractAsyncContextManager[Flow]:
        """Ask for something of any length and give it as it arrives; leaving the context ends the exchange."""
        head = head_of(url, tuple(headers.items()), "GET")
        return self._flow(head.origin, head.alone(), timeouts, endless=True)

    async def upload(self, url: str, headers: Mapping[str, str], cargo: Cargo, timeouts: Timeouts) -> Answer:
        """Send a body in pieces and wait for the whole answer."""
        head = head_of(url, tuple(headers.items()))
        # A connection of its own: one that lay idle may be closed just as we use it, and a lost batch costs more.
        connection, _ = await self._connections.open(head.origin, timeouts)
        limit: Limit | None = None
        try:
            connection.send(head.before(cargo.length), streams=False)
            if await cargo.load(connection, timeouts.idle):
                limit = connection.limit(timeouts.call, timeouts.call)
                await connection.finish()
            return Answer(connection.response.status, connection.response.headers, connection.response.take())
        finally:
            connection.abort()
            if limit is not None:
                limit.cancel()

    async def close(self) -> None:
        """Give back the connections; may be called twice."""
        await self._connections.close()

    async def _exchange(self, origin: Origin, request: bytes, timeouts: Timeouts) -> Answer:
        connection, left = self._connections.take(origin), timeouts.call
        if connection is None:
            connection, left = await self._connections.open(origin, timeouts)
        # No byte comes before the model has written everything, so silence means nothing here.
        limit = connection.limit(left, timeouts.call)
        try:
            connection.send(request, streams=False)
            await connection.wait()
        except BaseException:
            connection.abort()
            raise
        finally:
            limit.cancel()
        response = connection.response
        answer = Answer(response.status, response.headers, response.take())
        self._connections.give_back(connection)
        return answer

    @asynccontextmanager
    async def _flow(self, origin: Origin, request: bytes, timeouts: Timeouts, *, endless: bool) -> AsyncIterator[Flow]:
        connection, left = self._connections.take(origin), timeouts.call
        if connection is None:
            connection, left = await self._connections.open(origin, timeouts)
        limit = connection.limit(left, timeouts.call)
        chunks = Chunks(connection, timeouts.idle)
        try:
            connection.send(request, streams=True, endless=endless)
            while not connection.response.headed:
                await connection.news(timeouts.idle)
            if endless:
                limit.cancel()
            yield Flow(connection.response.status, connection.response.headers, chunks)
        except BaseException:
            connection.abort()
            raise
        finally:
            limit.cancel()
            chunks.over = True
        self._connections.give_back(connection)  # keeps it when the body had come to its end, else closes it
