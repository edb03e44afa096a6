"""Streams as they stand on the wire: nothing is sorted out, repeated or missed on the way to a test."""

import asyncio
import socket
from contextlib import suppress

from muster.agents.http.sse import EventParser, ServerSentEvent

READ_BYTES = 65536


class RawStream:
    """A connection that reads only when it is told to."""

    def __init__(self, port: int, path: str, *headers: str, buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", port))
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close", *headers, "", ""]
        self.socket.sendall("\r\n".join(lines).encode())

    def read(self) -> tuple[bytes, bytes]:
        """Return head and body, read to the end."""
        parts = []
        while part := self.socket.recv(READ_BYTES):
            parts.append(part)
        self.socket.close()
        head, _, body = b"".join(parts).partition(b"\r\n\r\n")
        return head, _unchunked(body) if b"chunked" in head else body

    def events(self) -> list[ServerSentEvent]:
        return EventParser().feed(self.read()[1])


def _unchunked(body: bytes) -> bytes:
    """Return a chunked body; it must have its last chunk."""
    parts: list[bytes] = []
    while True:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            return b"".join(parts)
        parts.append(rest[:length])
        body = rest[length + 2 :]


class RawWatcher:
    """Follows a run over as many connections as it takes, each after the last id of the one before."""

    def __init__(self, port: int, run: str, up: asyncio.Event) -> None:
        self.run = run
        self._port, self._up = port, up
        self.events: list[ServerSentEvent] = []
        self.connections = 0
        self.attached = asyncio.Event()  # it has an answer of the server that is up, or the end

    @property
    def ids(self) -> list[int]:
        """Return the numbers of all that came, but for the end, which has that of the last event again."""
        return [int(one.id) for one in self.events if one.id is not None and one.name != "end"]

    @property
    def over(self) -> bool:
        """Return whether the end of the run came."""
        return bool(self.events) and self.events[-1].name == "end"

    async def follow(self) -> None:
        """Read until the run ends; while the server is down, wait until it is said to be up."""
        while not self.over:
            await self._up.wait()
            with suppress(ConnectionError):
                await self._read_one()

    async def _read_one(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self.connections += 1
        last = self.ids[-1] if self.ids else 0
        # Without chunks, so a body that is cut off can be read as far as it came.
        head = f"GET /api/stream/{self.run} HTTP/1.0\r\nHost: 127.0.0.1:{self._port}\r\nLast-Event-ID: {last}\r\n\r\n"
        writer.write(head.encode())
        try:
            answer = await reader.readuntil(b"\r\n\r\n")
            assert b" 200 OK" in answer, answer
            self.attached.set()
            parser = EventParser()
            while part := await reader.read(READ_BYTES):
                self.events += parser.feed(part)
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError("closed before the head of the answer") from error
        finally:
            if not self.over:
                self.attached.clear()
            writer.close()
