"""Answers as they come back: whole, or a body that is still arriving."""

from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from muster.agents.connection import Connection


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

    async def beginning(self, most: int) -> bytes:
        """Wait for at most so many bytes of a body that may have no end."""
        found = b""
        while len(found) < most and (chunk := await anext(self.chunks, b"")):
            found += chunk
        return found[:most]


class Chunks:
    """The body of an answer, as it arrives; whoever is canceled while waiting for it ends the exchange."""

    __slots__ = ("_connection", "_idle", "over")

    def __init__(self, connection: Connection, idle: float) -> None:
        self._connection, self._idle = connection, idle
        self.over = False

    def __aiter__(self) -> "Chunks":
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
