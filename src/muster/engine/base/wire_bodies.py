"""The bodies of exchanges as they are stored: without secrets, compressed, in pieces that later bodies share.

A conversation is sent again with every turn, each time a little longer. A body is cut at places that its own text
decides, so that the same beginning gives the same pieces, which are stored once.
"""

import asyncio
import re
import zlib
from collections.abc import Iterator, Sequence

from muster.domain.errors import InvalidRequest
from muster.domain.ids import RunId
from muster.domain.media import digest_of
from muster.store.base import Store
from muster.store.base.media import StoredPiece

MIN_PIECE = 4_096  # bytes: a smaller one costs more to name than it saves
MAX_PIECE = 1_048_576
THREAD_BYTES = 262_144  # a body above this is cut and compressed in a thread
MAX_NAMED = 50_000  # pieces that are known to be stored
_CUT = re.compile(rb"\}, ?\{|\n\n")  # between messages, blocks and events
_LEVEL = 3


class WireBodies:
    """The bodies of the exchanges of one run."""

    def __init__(self, store: Store, run: RunId) -> None:
        self._store, self._run = store, run
        self._stored: set[str] = set()

    async def keep(self, body: bytes) -> tuple[str, ...]:
        """Store a body before whatever is written next; return the names of its pieces."""
        media = self._store.media
        if len(body) > THREAD_BYTES:
            pieces = await asyncio.to_thread(lambda: _pieces(media.without_secrets(body)))
        else:
            pieces = _pieces(media.without_secrets(body))
        new = {piece.digest: piece for piece in pieces if piece.digest not in self._stored}
        if new:
            # Not waited for: writes happen in order, and what names the pieces is written after them.
            media.keep_pieces(self._run, list(new.values()))
            if len(self._stored) > MAX_NAMED:
                self._stored.clear()
            self._stored.update(new)
        return tuple(piece.digest for piece in pieces)


async def read_body(store: Store, pieces: Sequence[str]) -> bytes:
    """Return a stored body; raises InvalidRequest where a piece is missing or damaged."""
    return b"".join([await _read_piece(store, digest) for digest in pieces])


async def _read_piece(store: Store, digest: str) -> bytes:
    data = await store.media.read(digest)
    if data is None or digest_of(data) != digest:
        why = "is not in the store" if data is None else "is damaged in the store"
        raise InvalidRequest(f"a piece of an exchange {why}: {digest[:12]}")
    return zlib.decompress(data)


def _pieces(body: bytes) -> list[StoredPiece]:
    packed = [zlib.compress(part, _LEVEL) for part in _parts(body) if part]
    return [StoredPiece(digest_of(data), data) for data in packed]


def _parts(body: bytes) -> Iterator[bytes]:
    """Cut a body behind a place where something ends, once a piece is long enough."""
    start = 0
    while len(body) - start > MIN_PIECE:
        found = _CUT.search(body, start + MIN_PIECE, start + MAX_PIECE)
        end = found.start() + 1 if found else min(start + MAX_PIECE, len(body))
        yield body[start:end]
        start = end
    yield body[start:]
