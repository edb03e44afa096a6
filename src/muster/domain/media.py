"""Images and documents in what is asked: references by digest, what they count as tokens, and how their bytes are sent.

A request, and the body that is made of it, holds a mark where the bytes belong; they are put in while it is sent.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from muster.domain.canonical import JsonObject
from muster.domain.errors import BadArgument, BadConfiguration

MAX_FILE_BYTES = 32_000_000  # of one file
MAX_PAGES = 600  # of the documents of a request: the most that any provider takes
_MARK = re.compile(rb"\x01([0-9a-f]{64})\x01")  # JSON text never has this character: it is written as an escape
_MARK_SIZE = 66
_SHORT_SIDE, _LONG_SIDE, _TILE = 768, 2_048, 512  # pixels to which a picture is scaled, and of the tiles of it


class MediaKind(StrEnum):
    """What a file shows."""

    IMAGE = "image"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """An image or a document, by the digest of its bytes."""

    kind: MediaKind
    type: str  # "image/png"
    digest: str  # SHA-256 of the bytes, in hexadecimal
    size: int  # bytes
    width: int | None = None  # pixels of an image; None: its header does not tell
    height: int | None = None
    pages: int | None = None  # of a document, at most; None: they cannot be counted
    text: int | None = None  # bytes that a document shows as text, at most; None: they were not counted
    name: str = ""  # of a document, which is told to the provider

    @property
    def label(self) -> str:
        """How messages call it."""
        return f"{self.kind} {self.name or self.digest[:12]}"

    @property
    def unseen(self) -> str:
        """How it is told to an agent that is not shown it."""
        return f"({self.kind} {self.name or self.type}, which is not shown here)"

    @property
    def mark(self) -> str:
        """What stands for its bytes, as base64, in a body."""
        return f"\x01{self.digest}\x01"

    @property
    def encoded_size(self) -> int:
        """How many bytes it takes in a request, as base64."""
        return -(-self.size // 3) * 4

    def told(self) -> JsonObject:
        """Return what names it in the identity of a request, which does not depend on how its header is read."""
        named: JsonObject = {"kind": str(self.kind), "type": self.type, "digest": self.digest, "size": self.size}
        return named | {"name": self.name} if self.name else named


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaFile(Media):
    """An image or a document with its bytes."""

    data: bytes = field(repr=False)

    @property
    def reference(self) -> Media:
        """The same without the bytes."""
        return Media(
            kind=self.kind,
            type=self.type,
            digest=self.digest,
            size=self.size,
            width=self.width,
            height=self.height,
            pages=self.pages,
            text=self.text,
            name=self.name,
        )


def references(media: Iterable[Media]) -> tuple[Media, ...]:
    """Return images and documents without their bytes."""
    return tuple(each.reference if isinstance(each, MediaFile) else each for each in media)


def with_data(media: Media, data: bytes) -> MediaFile:
    """Return a reference with its bytes."""
    return MediaFile(
        kind=media.kind,
        type=media.type,
        digest=media.digest,
        size=media.size,
        width=media.width,
        height=media.height,
        pages=media.pages,
        text=media.text,
        name=media.name,
        data=data,
    )


def digest_of(data: bytes) -> str:
    """Return what bytes are stored under."""
    return hashlib.sha256(data).hexdigest()


def sent_pieces(body: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield a body in pieces, each with the digest of what follows it; the last is followed by nothing."""
    end = 0
    for found in _MARK.finditer(body):
        yield body[end : found.start()], found[1].decode()
        end = found.end()
    yield body[end:], ""


def filled(body: bytes, files: Mapping[str, bytes]) -> bytes:
    """Return a body with the bytes of its media, as base64."""
    parts: list[bytes] = []
    for piece, digest in sent_pieces(body):
        parts += [piece, b64encode(files[digest])] if digest else [piece]
    return b"".join(parts)


def filled_size(body: bytes, media: Iterable[Media]) -> int:
    """Return how many bytes a body has once the bytes of its media are in it."""
    sizes = {each.digest: each.encoded_size for each in media}
    named = [digest for _, digest in sent_pieces(body) if digest]
    return len(body) + sum(sizes[digest] - _MARK_SIZE for digest in named)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFormula:
    """How many tokens a provider counts for a picture, at most: by patches of pixels, and by large tiles."""

    patch: int  # pixels of a side
    hundredths: int = 100  # of a token, for each patch
    most: int | None = None  # tokens, after the picture was scaled down; None: it is not scaled
    unknown: int  # tokens of a picture whose size is not known
    tile_base: int = 0
    tile: int = 0  # tokens for each tile
    page: int = 3_000  # tokens of the text of a page, beside its picture; a byte of text is one at most
    least_page: int = 1_000  # tokens of the picture of a page, at least; no provider counts less for one

    def image(self, width: int | None, height: int | None) -> int:
        """Return the tokens of a picture."""
        if width is None or height is None:
            return max(self.unknown, self.tile_base + self.tile * _most_tiles())
        patches = -(-width // self.patch) * -(-height // self.patch)
        tokens = -(-patches * self.hundredths // 100)
        bounded = tokens if self.most is None else min(tokens, self.most)
        return max(bounded, self.tile_base + self.tile * _tiles(width, height))

    def tokens(self, media: Media, uncounted: int = MAX_PAGES) -> int:
        """Return the tokens of an image or a document, which has `uncounted` pages where they cannot be counted."""
        if media.kind is MediaKind.IMAGE:
            return self.image(media.width, media.height)
        pages = uncounted if media.pages is None else media.pages
        return pages * self.image(None, None) + max(pages * self.page, media.text or 0)


def _tiles(width: int, height: int) -> int:
    """Return how many tiles a picture has whose short side is scaled to 768 pixels, and its long one to 2,048 at most.

    Small pictures may be left as they are, with fewer tiles: this is a bound.
    """
    long = min(_LONG_SIDE, -(-_SHORT_SIDE * max(width, height) // max(1, min(width, height))))
    return -(-_SHORT_SIDE // _TILE) * -(-long // _TILE)


def _most_tiles() -> int:
    return -(-_SHORT_SIDE // _TILE) * -(-_LONG_SIDE // _TILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaSupport:
    """Which images and documents an agent takes, how large, and what they count."""

    kinds: frozenset[MediaKind]
    formula: TokenFormula
    image_bytes: int | None = None  # of one image, as base64; None: as many as of a request
    request_bytes: int = MAX_FILE_BYTES  # of all of a request, as base64
    most: int = 100  # images and documents of a request
    pages: int = MAX_PAGES  # of all documents of a request
    context: int | None = None  # tokens that its model reads at most; None: not known

    def require(self, agent: str, media: tuple[Media, ...]) -> None:
        """Raise BadArgument for what is more than the agent takes."""
        if len(media) > self.most:
            raise BadArgument(f"a request has {len(media)} images and documents; {agent} takes {self.most}")
        for each in media:
            limit = self.image_bytes if each.kind is MediaKind.IMAGE else None
            if limit is not None and each.encoded_size > limit:
                raise _too_large(agent, f"the {each.label} has", each.encoded_size, limit)
        size = sum(each.encoded_size for each in media)
        if size > self.request_bytes:
            raise _too_large(agent, "the images and documents of a request have", size, self.request_bytes)
        self._require_pages(agent, [each for each in media if each.kind is MediaKind.DOCUMENT])

    def _require_pages(self, agent: str, documents: Sequence[Media]) -> None:
        """Raise BadArgument for documents that the provider refuses for their pages, or that no context holds."""
        pages = sum(each.pages or 1 for each in documents)
        what = f"the {documents[0].label} has" if len(documents) == 1 else "the documents of a request have"
        if pages > self.pages:
            raise _too_long(f"{what} {pages:,} pages; {agent} takes {self.pages:,} in a request")
        least = pages * self.formula.least_page
        if self.context is not None and least > self.context:
            raise _too_long(
                f"{what} {pages:,} pages, which count at least {least:,} tokens; {agent} reads at most {self.context:,}"
            )

    def tokens(self, media: Iterable[Media]) -> int:
        """Return the tokens of all images and documents of a request, at most."""
        return sum(self.formula.tokens(each, self.pages) for each in media)


def _too_large(agent: str, what: str, size: int, most: int) -> BadArgument:
    return BadArgument(
        f"{what} {size:,} bytes as base64; {agent} takes {most:,}", suggestions=("scale it down", "or ask with less")
    )


def _too_long(message: str) -> BadArgument:
    return BadArgument(
        message,
        suggestions=(
            "split it and ask about its parts",
            "or, if it shows fewer pages, print it to a new PDF: removed pages and earlier versions count as well",
        ),
    )


def require_media(agent: str, support: MediaSupport | None, media: tuple[Media, ...]) -> None:
    """Raise BadConfiguration for an agent that cannot see what a request shows, BadArgument for too much of it."""
    kinds = frozenset() if support is None else support.kinds
    blind = next((each.kind for each in media if each.kind not in kinds), None)
    if blind is not None:
        raise BadConfiguration(
            f"agent {agent!r} cannot be shown {blind}s",
            suggestions=(
                "ask a model that can, such as anthropic/claude-haiku-5-5 or openai/gpt-5-mini",
                f'or, if its model can, say so in its section: [agents.NAME] media = ["{blind}"]',
            ),
        )
    if support is not None:
        support.require(agent, media)
