"""One connection to a server: sends a request, waits for its answer; one exchange at a time, never pipelined.

It belongs to whoever took it from its pool, until it is given back. It sends nothing twice.
"""

import asyncio
import fcntl
import select
import termios
from array import array
from collections.abc import Callable
from enum import StrEnum
from typing import cast

from muster.agents.http.response import ResponseParser
from muster.domain.agent import CATCH_UP, LATE
from muster.domain.errors import OutcomeUnknown, OutOfTime, WireError

MAX_UNREAD_BYTES = 1024 * 1024  # of a stream: more waits in the kernel, and then at the server
_TURNS = 2  # of the loop: in the second of them it has read what the kernel already knew


class ConnectionState(StrEnum):
    """How far the exchange on a connection is."""

    IDLE = "idle"  # no exchange: nothing is expected, and what arrives was not asked for
    SENDING = "sending"  # a body in pieces is on its way, and there is room for the next piece
    BLOCKED = "blocked"  # the same, but the server does not take what is sent as fast as it comes
    WAITING = "waiting"  # the request is out; its owner waits until the answer is whole
    STREAMING = "streaming"  # the request is out; its owner reads the answer as it arrives


UPLOADING = frozenset({ConnectionState.SENDING, ConnectionState.BLOCKED})
BEGINNINGS = frozenset({ConnectionState.SENDING, ConnectionState.WAITING, ConnectionState.STREAMING})
_IDLE = frozenset({ConnectionState.IDLE})
_NEXT = {
    ConnectionState.IDLE: BEGINNINGS,
    ConnectionState.SENDING: frozenset({ConnectionState.BLOCKED, ConnectionState.WAITING}) | _IDLE,
    ConnectionState.BLOCKED: frozenset({ConnectionState.SENDING, ConnectionState.WAITING}) | _IDLE,
    # Also while the server takes a request slowly: its owner waits for the answer, not for room.
    ConnectionState.WAITING: _IDLE,
    ConnectionState.STREAMING: _IDLE,
}


class TimeLimit:
    """A time limit of an exchange; what has arrived by then is read before it ends the exchange."""

    __slots__ = ("_connection", "_end", "_handle", "_loop", "_seconds")

    def __init__(self, connection: "Connection", left: float, end: Callable[[float], None], seconds: float) -> None:
        self._connection, self._end, self._seconds = connection, end, seconds
        self._loop = asyncio.get_running_loop()
        due = self._loop.time() + left
        self._handle: asyncio.Handle = self._loop.call_at(due, self._on_timer, due)

    def cancel(self) -> None:
        """Let the exchange take any time."""
        self._handle.cancel()

    def _on_timer(self, due: float) -> None:
        now = self._loop.time()
        if now - due > LATE:
            due = now + min(CATCH_UP, self._seconds)
            self._handle = self._loop.call_at(due, self._on_timer, due)
        else:
            self._read(self._connection.arrived() // len(self._connection.get_buffer(-1)) + _TURNS)

    def _read(self, turns: int) -> None:
        """Let the loop read in so many turns, each of which takes a buffer at most; then end the exchange."""
        if turns:
            self._handle = self._loop.call_soon(self._read, turns - 1)
        else:
            self._end(self._seconds)


class Connection(asyncio.BufferedProtocol):
    """The side of asyncio, and the one future that the owner waits for."""

    __slots__ = (
        "_buffer",
        "_loop",
        "_open",
        "_poll",
        "_state",
        "_transport",
        "_trouble",
        "_waiter",
        "idle_since",
        "place",
        "response",
    )

    def __init__(self, place: str, most_bytes: int, buffer: memoryview, open_: "set[Connection]") -> None:
        self.place = place
        self.response = ResponseParser(place, most_bytes)
        self.idle_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._buffer = buffer  # shared: what is in it is read before anybody else's turn
        self._open = open_
        self._state = ConnectionState.IDLE
        self._waiter: asyncio.Future[None] | None = None
        self._trouble: WireError | None = None

    # The side of the owner.

    def send(self, request: bytes, then: ConnectionState, *, endless: bool = False) -> None:
        """Begin an exchange with a request, or with the head of one whose body follows in pieces."""
        self.response.begin(endless=endless)
        self._trouble = None
        self._change(then)
        self._waiter = self._loop.create_future()
        self._transport.write(request)

    async def wait(self) -> None:
        """Wait until the answer is whole, of a stream until there is more of it, or raise why neither comes."""
        if self._waiter is not None:
            await self._waiter
        if self._trouble is not None:
            raise self._trouble

    async def write(self, piece: bytes, idle: float) -> bool:
        """Send more of a body and wait until there is room for the next; False when the answer is there already."""
        if self._poll.poll(0):
            # The answer may have overtaken the body, and writing to a server that closed after it would destroy it.
            for _ in range(_TURNS):
                await asyncio.sleep(0)
        if self._trouble is not None:
            raise self._trouble
        if not self.response.whole:
            self._transport.write(piece)
        while self._state is ConnectionState.BLOCKED and not self.response.whole:
            await self.news(idle)
        return not self.response.whole

    async def finish(self) -> None:
        """End a body that was sent in pieces and wait until the answer is whole."""
        self._change(ConnectionState.WAITING)
        while not self.response.whole:
            self._expect()
            await self.wait()

    async def piece(self, idle: float) -> bytes:
        """Return the next piece of a stream's body, or nothing at its end; silence for too long ends the exchange."""
        while not self.response.unread:
            if self.response.whole:
                return b""
            await self.news(idle)
        self._transport.resume_reading()
        return self.response.take()

    async def news(self, idle: float) -> None:
        """Wait until something of a stream arrives or leaves, but not for longer than the idle time."""
        self._expect()
        limit = TimeLimit(self, idle, self._idle_out, idle)
        try:
            await self.wait()
        finally:
            limit.cancel()

    def limit(self, left: float, seconds: float) -> TimeLimit:
        """End the exchange if it is not over in the time that is left of so many seconds."""
        return TimeLimit(self, left, self._expire, seconds)

    def arrived(self) -> int:
        """Return how many bytes wait in the kernel to be read."""
        if self._transport.is_closing():
            return 0
        count = array("i", [0])
        fcntl.ioctl(self._transport.get_extra_info("socket").fileno(), termios.FIONREAD, count)
        return count[0]

    def _expire(self, seconds: float) -> None:
        self._fail(OutOfTime(f"{self.place}: no whole answer within {seconds:g} s"))

    def break_off(self, why: str) -> None:
        """End whatever goes on; an exchange under way learns why."""
        self._fail(OutcomeUnknown(f"{self.place}: the connection broke: {why}"))

    def abort(self) -> None:
        """Close the connection at once, without a word."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Return whether it is of no more use."""
        return self._transport.is_closing()

    def rest(self) -> bool:
        """End the exchange and tell whether another may follow it."""
        self._change(ConnectionState.IDLE)
        response, transport = self.response, self._transport
        # An answer that came before the request was all out leaves the two sides in disagreement.
        return response.whole and response.reusable and not transport.is_closing() and self._all_sent()

    def is_fresh(self) -> bool:
        """Return whether nothing happened since the last answer: neither closed, nor bytes that nobody asked for."""
        # The loop may not have come round to what the kernel already knows, so the kernel is asked.
        return not self._transport.is_closing() and not self._poll.poll(0)

    # The side of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self._poll = select.poll()
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
        self._open.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Lend the one buffer of the pool; a new one for every read would cost more than the parsing."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Read what has arrived."""
        if self._state is ConnectionState.IDLE:
            self._transport.abort()  # nobody asked for it
            return
        response = self.response
        try:
            response.feed(self._buffer[:nbytes])
        except OutcomeUnknown as error:
            self._fail(error)
            return
        if response.whole:
            self._wake()
        elif self._state is ConnectionState.STREAMING:
            self._wake()
            if response.unread > MAX_UNREAD_BYTES:
                self._transport.pause_reading()

    def eof_received(self) -> None:
        """Learn that the server has said all; the transport closes itself."""
        self._end(None)

    def pause_writing(self) -> None:
        """Learn that the server does not take what is sent as fast as it comes."""
        self._change(ConnectionState.BLOCKED)

    def resume_writing(self) -> None:
        """Learn that there is room again."""
        if self._state is ConnectionState.BLOCKED:
            self._change(ConnectionState.SENDING)
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Learn that the connection is gone."""
        self._open.discard(self)
        self._end(exc)

    def _end(self, error: Exception | None) -> None:
        if self._state is ConnectionState.IDLE or self._trouble is not None or self.response.whole:
            return
        if error is not None:
            self.break_off(str(error) or type(error).__name__)
            return
        try:
            self.response.end()
        except OutcomeUnknown as unknown:
            self._fail(unknown)
        self._wake()

    def _change(self, to: ConnectionState) -> None:
        """Enter a state if it can follow the present one; only this function does."""
        if to in _NEXT[self._state]:
            self._state = to

    def _expect(self) -> None:
        if self._waiter is None and self._trouble is None:
            self._waiter = self._loop.create_future()

    def _idle_out(self, seconds: float) -> None:
        what = "the server took nothing" if self._state in UPLOADING else "nothing arrived"
        self._fail(OutcomeUnknown(f"{self.place}: {what} for {seconds:g} s"))

    def _fail(self, error: WireError) -> None:
        # A result, not an exception of the future: the owner may be canceled in this very turn and never look.
        done = self._state is not ConnectionState.IDLE and (self.response.whole or self.response.cut_short())
        if self._trouble is None and not done:
            self._trouble = error
        self._transport.abort()
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _all_sent(self) -> bool:
        return self._transport.get_write_buffer_size() == 0
