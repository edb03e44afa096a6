"""One HTTP/1.1 connection: parses requests, plays what the handler decides, keeps pipelined requests in order."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from types import MappingProxyType
from typing import NamedTuple, cast

import httptools

from muster.sim.playback import ConnectionEnd, Part, Playback, at_once
from muster.text.http_messages import whole_response

MAX_PIPELINED = 64
READ_BYTES = 64 * 1024

log = logging.getLogger("muster.sim")


class HttpRequest(NamedTuple):  # made for every request, and a tuple is made fastest
    """A request as it came in; the body of an oversized one was read and dropped."""

    method: bytes
    path: bytes  # without the query
    headers: Mapping[bytes, bytes]  # names in lower case
    body: bytes
    oversized: bool = False
    keep_alive: bool = True
    query: bytes = b""


Handler = Callable[[HttpRequest], Playback]


class SimConnection(asyncio.BufferedProtocol):
    """Serves one client; the handler decides at once, waiting is done here with timers and no task."""

    def __init__(
        self,
        handler: Handler,
        max_body: int,
        connections: "set[SimConnection]",
        large_bodies: Mapping[bytes, int] = MappingProxyType({}),  # paths that take larger bodies
    ) -> None:
        self._handler = handler
        self._max_body = max_body
        self._large_bodies = large_bodies
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._pending: deque[HttpRequest] = deque()
        self._play: Playback | None = None
        self._parts: Iterator[Part] = iter(())
        self._keep_alive = True
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self.on_message_begin()

    def abort(self) -> None:
        """Drop the client without a word."""
        self._transport.abort()

    # The side of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self._connections.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Lend the one buffer of this connection; a new one for every read would cost more than the parsing."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Hand bytes to the parser, which calls back below."""
        try:
            self._parser.feed_data(self._buffer[:nbytes])
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if self._play is None:
                self._transport.write(whole_response(400, b'{"error":{"message":"this is not HTTP/1.1"}}'))
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client and everything that waits for it."""
        self._connections.discard(self)
        self._pending.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._leave()

    def pause_writing(self) -> None:
        """Stop taking requests from a client that does not read its answers."""
        self._paused = True
        self._throttle()

    def resume_writing(self) -> None:
        """Take requests again, and go on with the answer that was too much at once."""
        self._paused = False
        if self._play is not None and self._timer is None:
            # Not at once: the transport is in the middle of writing, and must not be closed there.
            self._timer = self._loop.call_later(0, self._resume, b"")
        self._throttle()

    # The side of httptools.

    def on_message_begin(self) -> None:
        """Start an empty request."""
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._body = BytesIO()  # grows in place: a batch may be very large, and joining its pieces would stop the loop
        self._size = 0

    def on_url(self, url: bytes) -> None:
        """Take a piece of the address."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body; one that is too large is read and dropped, so that the answer gets through."""
        self._size += len(body)
        if self._is_too_large():
            self._body = BytesIO()
        else:
            self._body.write(body)

    def on_message_complete(self) -> None:
        """Queue the request behind those before it."""
        path, _, query = self._url.partition(b"?")
        request = HttpRequest(
            method=self._parser.get_method(),
            path=path,
            headers=self._headers,
            body=self._body.getvalue(),
            oversized=self._is_too_large(),
            keep_alive=self._parser.should_keep_alive(),
            query=query,
        )
        self._body = BytesIO()  # the next request may be long in coming
        self._pending.append(request)
        self._serve()
        if self._pending:
            self._throttle()

    # Playing.

    def _serve(self) -> None:
        while self._pending and self._play is None and not self._transport.is_closing():
            request = self._pending.popleft()
            self._keep_alive = request.keep_alive
            self._play = self._decide(request)
            self._parts = iter(self._play.parts)
            self._advance()

    def _decide(self, request: HttpRequest) -> Playback:
        try:
            return self._handler(request)
        except Exception:  # a client must not hang because of a defect here
            log.exception("sim.handler_failed")
            return at_once(whole_response(500, b'{"error":{"message":"the rehearsal server failed"}}'))

    def _advance(self) -> None:
        try:
            for wait, data in self._parts:
                if wait > 0:
                    self._timer = self._loop.call_later(wait, self._resume, data)
                    return
                self._transport.write(data)
                if self._paused:
                    return
        except Exception:  # an answer that breaks off must not look like a slow one
            log.exception("sim.play_failed")
            self._transport.abort()
            return
        self._end()

    def _resume(self, data: bytes) -> None:
        self._timer = None
        self._transport.write(data)
        if not self._paused:
            self._advance()
        if self._pending:
            self._serve()
            self._throttle()

    def _end(self) -> None:
        ending = self._play.ending if self._play else ConnectionEnd.KEEP
        if ending is ConnectionEnd.HANG:
            return
        self._leave()
        if ending is ConnectionEnd.CUT or not self._keep_alive:
            self._transport.close()

    def _leave(self) -> None:
        play, self._play = self._play, None
        if play is not None:
            play.ended()

    def _is_too_large(self) -> bool:
        return self._size > self._max_body and self._size > self._large_bodies.get(self._url.partition(b"?")[0], 0)

    def _throttle(self) -> None:
        if self._transport.is_closing():
            return
        if self._paused or len(self._pending) >= MAX_PIPELINED:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
