"""The one way out: a small HTTP seam for agents, and its implementation with aiohttp.

It sends one request and gives one answer. It never retries, follows no redirect (a redirect could carry the key to
another origin), keeps no cookies and reads no proxy from the environment. Nothing here knows a provider.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import lru_cache
from typing import NamedTuple, Protocol

import aiohttp
from yarl import URL

from muster.domain.agent import Timeouts
from muster.domain.errors import OutcomeUnknown, Unreachable, WireError

MOST_BYTES = 64 * 1024 * 1024
_LOST = (aiohttp.ClientError, OSError, TimeoutError)  # all that aiohttp raises when an exchange fails


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

    Raises `Unreachable` when the request never left, `OutcomeUnknown` when it left and no whole answer came; any
    status is an answer. Cancellation closes the connection and is passed on.
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
    """HTTP with aiohttp: one session, made when the first request goes out."""

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts) -> Answer:
        """Send a body and wait for the whole answer."""
        response = await self._send(url, headers, body, timeouts, _whole(timeouts))
        parts = [chunk async for chunk in _Chunks(response, url, timeouts, self._most_bytes)]
        return Answer(response.status, response.headers, parts[0] if len(parts) == 1 else b"".join(parts))

    @asynccontextmanager
    async def stream(
        self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts
    ) -> AsyncIterator[Flow]:
        """Send a body and give the answer as it arrives; leaving the context ends the exchange."""
        response = await self._send(url, headers, body, timeouts, _flowing(timeouts))
        try:
            yield Flow(response.status, response.headers, _Chunks(response, url, timeouts, self._most_bytes))
        except BaseException:
            response.close()
            raise
        response.release()  # keeps the connection when the body was read to its end, else closes it

    async def close(self) -> None:
        """Give back the connections; may be called twice."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _send(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeouts: Timeouts,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        session = self._session or self._open(url)
        try:
            return await session.post(_parsed(url), data=body, headers=headers, timeout=limits, allow_redirects=False)
        except _LOST as error:
            raise _failure(error, url, timeouts) from error

    def _open(self, url: str) -> aiohttp.ClientSession:
        if self._closed:
            raise Unreachable(f"{_origin(url)}: the connections of this agent are closed")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60),  # the limiter counts places, not this
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )
        return self._session


class _Chunks:
    """The body of an answer, as it arrives; a body that breaks or grows too long ends its connection."""

    __slots__ = ("_left", "_most_bytes", "_response", "_timeouts", "_url")

    def __init__(self, response: aiohttp.ClientResponse, url: str, timeouts: Timeouts, most_bytes: int) -> None:
        self._response, self._url, self._timeouts = response, url, timeouts
        self._most_bytes = self._left = most_bytes

    def __aiter__(self) -> "_Chunks":
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._response.content.readany()
        except _LOST as error:
            self._response.close()
            raise _failure(error, self._url, self._timeouts) from error
        except BaseException:
            self._response.close()  # what is left on this connection belongs to nobody
            raise
        if not chunk:
            raise StopAsyncIteration
        self._left -= len(chunk)
        if self._left < 0:
            self._response.close()
            raise OutcomeUnknown(f"{_origin(self._url)}: the answer is longer than {self._most_bytes} bytes")
        return chunk


def _failure(error: Exception, url: str, timeouts: Timeouts) -> WireError:
    place = _origin(url)
    match error:
        case aiohttp.ConnectionTimeoutError():
            return Unreachable(f"{place}: no connection within {timeouts.connect:g} s")
        case aiohttp.ClientConnectorError() | aiohttp.InvalidURL():
            return Unreachable(f"{place}: cannot connect: {error}")
        case aiohttp.SocketTimeoutError():
            return OutcomeUnknown(f"{place}: nothing arrived for {timeouts.idle:g} s")
        case TimeoutError():
            return OutcomeUnknown(f"{place}: no whole answer within {timeouts.call:g} s")
        case _:
            # A connection that the server closed while it lay idle looks the same as one cut in the middle of the
            # model's work, so this is never taken for "not sent".
            return OutcomeUnknown(f"{place}: the connection broke: {str(error) or type(error).__name__}")


@lru_cache(maxsize=256)
def _parsed(url: str) -> URL:
    return URL(url)


@lru_cache(maxsize=256)
def _whole(timeouts: Timeouts) -> aiohttp.ClientTimeout:
    # No byte comes before the model has written everything, so silence means nothing here.
    return aiohttp.ClientTimeout(total=timeouts.call, connect=timeouts.connect)


@lru_cache(maxsize=256)
def _flowing(timeouts: Timeouts) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=timeouts.call, connect=timeouts.connect, sock_read=timeouts.idle)


def _origin(url: str) -> str:
    return str(_parsed(url).origin())
