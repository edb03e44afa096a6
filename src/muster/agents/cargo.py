"""A body that is sent in pieces, so that it never lies in memory as a whole."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import NamedTuple

from muster.agents.connection import Connection


class Cargo(NamedTuple):
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
