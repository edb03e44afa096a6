"""The bytes of images and documents: stored before a request names them, and put in while it is sent.

A request that waits for a place, for money or in a batch holds references only.
"""

from base64 import b64encode
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import replace

from muster.domain.call import Request, with_files, without_data
from muster.domain.errors import InvalidRequest
from muster.domain.ids import RunId
from muster.domain.media import digest_of, sent_pieces
from muster.store.base import Store

MAX_CACHED_BYTES = 32_000_000
MAX_NAMED = 10_000  # pairs of a run and a digest that are known to be stored
SENT_BYTES = 256 * 1024  # of base64 that are handed on at once; a multiple of 3 and 4 goes without a rest
_RAW_BYTES = SENT_BYTES // 4 * 3


class MediaFiles:
    """The images and documents of a process, read from its store; a few are kept at hand."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cached: OrderedDict[str, bytes] = OrderedDict()
        self._cached_bytes = 0
        self._named: set[tuple[RunId, str]] = set()
        self._checked: set[str] = set()

    async def keep(self, run: RunId, request: Request) -> Request:
        """Store what a request shows, and return the request with references.

        Raises InvalidRequest where bytes are missing from the store, or damaged.
        """
        new = [each for each in request.media if (run, each.digest) not in self._named]
        if new:
            missing = await self._store.media.keep(run, new)
            lost = next((each for each in new if each.digest in missing), None)
            if lost is not None:
                raise _lost(lost.label)
            if len(self._named) > MAX_NAMED:
                self._named.clear()
            self._named.update((run, each.digest) for each in new)
        for each in request.media:
            if each.digest not in self._checked:  # else one that is damaged would be found while others are sent
                await self.read(each.digest)
                self._checked.add(each.digest)
        return replace(request, messages=without_data(request.messages))

    async def attach(self, request: Request) -> Request:
        """Return a request with the bytes of what it shows, for the moment in which it is sent."""
        return with_files(request, {each.digest: await self.read(each.digest) for each in request.media})

    async def read(self, digest: str) -> bytes:
        """Return bytes by their digest; raises InvalidRequest for what is missing, or is not what it was."""
        if digest in self._cached:
            self._cached.move_to_end(digest)
            return self._cached[digest]
        data = await self._store.media.read(digest)
        if data is None or digest_of(data) != digest:
            raise _lost(f"file {digest[:12]}", damaged=data is not None)
        self._cache(digest, data)
        return data

    async def fill(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield a body with the bytes of its images and documents; no more than one of them is in memory at a time."""
        async for piece in pieces:
            for text, digest in sent_pieces(piece):
                if text:
                    yield text
                if digest:
                    data = await self.read(digest)
                    for start in range(0, len(data), _RAW_BYTES):
                        yield b64encode(data[start : start + _RAW_BYTES])

    def _cache(self, digest: str, data: bytes) -> None:
        self._cached[digest] = data
        self._cached_bytes += len(data)
        while self._cached_bytes > MAX_CACHED_BYTES and len(self._cached) > 1:
            _, dropped = self._cached.popitem(last=False)
            self._cached_bytes -= len(dropped)


def _lost(what: str, *, damaged: bool = False) -> InvalidRequest:
    why = "is damaged in the store" if damaged else "is not in the store"
    return InvalidRequest(
        f"the {what} {why}, so the call cannot be sent",
        suggestions=("start a new run, which stores it again", "or import the run again: muster runs import FILE"),
    )
