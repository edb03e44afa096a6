"""The answer of an upstream on its way to the client that asked: what may leave at once, and what waits for the books.

The agent writes it, whoever serves the client reads it, each at its own speed. A client that leaves stops nothing: the
answer is read to its end, so that its cost is known.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from muster.domain.errors import MusterError, OutcomeUnknown
from muster.engine.base.wire_bodies import WireBodies


class AnswerFlow:
    """One answer as it passes through: a `WireSink` on the side of the agent."""

    def __init__(self) -> None:
        self.status = 0  # until the upstream has answered
        self.headers: Mapping[str, str] = {}
        self.is_delivered = False  # a client has the last byte of it
        self.is_left = False  # its client went away before that
        self._pieces: list[bytes] = []  # all of the body, in order
        self._kept: list[bytes] = []  # what belongs to it beside
        self._held: int | None = None  # from which piece on it waits until it is settled
        self._whole = self._over = False
        self._error: BaseException | None = None
        self._news = asyncio.Event()

    # The side of the agent.

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the status and the headers that go on to the client."""
        self.status, self.headers = status, headers
        self._news.set()

    def write(self, piece: bytes) -> None:
        """Take a piece of the body that may leave at once."""
        self._pieces.append(piece)
        self._news.set()

    def hold(self, piece: bytes) -> None:
        """Take a piece that leaves when what the answer cost is booked; everything that follows it does too."""
        if self._held is None:
            self._held = len(self._pieces)
        self._pieces.append(piece)

    def keep(self, piece: bytes) -> None:
        """Take a piece that belongs to the answer and was not asked for by the client, who does not get it."""
        self._kept.append(piece)

    def end(self) -> None:
        """Take note that the answer is whole, whatever can be made of it."""
        self._whole = True

    # The side of the call path.

    @property
    def body(self) -> bytes:
        """The whole body, as far as it has arrived."""
        return b"".join(self._pieces)

    @property
    def kept(self) -> bytes:
        """Return what belongs to the answer and does not leave."""
        return b"".join(self._kept)

    def finish(self, error: BaseException | None = None) -> None:
        """Let everything leave that is booked by now; of an answer that is not whole nothing more leaves."""
        if self._whole:
            self._held = None
        else:
            self._error = error
        self._over = True
        self._news.set()

    # The side of the client.

    async def head(self) -> int:
        """Wait for the status of the answer and return it; raises what kept the upstream from answering.

        A whole answer that is held begins only when it is booked, so that what the books refuse is no answer.
        """
        while not self._over and not self._free:
            await self._next()
        if self._error is not None and not self._free:
            raise self._error
        return self.status

    @property
    def is_lost(self) -> bool:
        """Return whether it ended before it was whole, or without an answer."""
        return self._over and not self._whole

    @property
    def _free(self) -> bool:
        """Return whether something may leave."""
        return bool(self._pieces) and self._held != 0

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it may leave; raises OutcomeUnknown where it ends before it is whole."""
        sent = 0
        while True:
            until = len(self._pieces) if self._held is None else self._held
            while sent < until:
                yield self._pieces[sent]
                sent += 1
            if self._over:
                break
            await self._next()
        if self._error is not None:
            raise _cut(self._error)

    async def _next(self) -> None:
        self._news.clear()
        await self._news.wait()


class Passage(NamedTuple):
    """How the request of a foreign program passes through a run."""

    flow: AnswerFlow
    bodies: WireBodies
    patience: float  # seconds for which it waits for money that others hold


def _cut(error: BaseException) -> MusterError:
    return error if isinstance(error, MusterError) else OutcomeUnknown("the answer ended before it was whole")
