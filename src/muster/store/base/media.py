"""Images and documents: their bytes, each once, and which runs name them."""

from collections.abc import Awaitable, Sequence
from typing import NamedTuple, Protocol

from muster.domain.ids import RunId
from muster.domain.media import Media


class StoredPiece(NamedTuple):
    """A piece of what went over the wire, compressed, by the digest of what it holds."""

    digest: str
    data: bytes


class MediaTable(Protocol):
    """The images and documents of a store, and the pieces of what went over the wire in exchanges.

    Written by the driver of a run before anything of the run names them, when a run is created, and by the import of a
    run. Keeping is idempotent. The bytes go with the last run that names them.
    """

    async def read(self, digest: str) -> bytes | None:
        """Return the bytes that are stored under a digest, which may be damaged; None when there are none."""

    async def type_of(self, digest: str) -> str | None:
        """Return the type of what is stored under a digest."""

    async def named(self, run: RunId) -> Sequence[tuple[str, str]]:
        """Return the digests that a run names, each with its type, in order."""

    def keep(self, run: RunId, media: Sequence[Media]) -> Awaitable[Sequence[str]]:
        """Store the bytes that are there, and note that the run names all of it; return the digests without bytes."""

    def keep_pieces(self, run: RunId, pieces: Sequence[StoredPiece]) -> Awaitable[None]:
        """Store pieces of the exchanges of a run, in which there are no secrets any more."""

    def without_secrets(self, data: bytes) -> bytes:
        """Return bytes without configured secrets."""
