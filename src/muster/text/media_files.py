"""Images and documents as values: their bytes read once, with digest, type and the size by their header."""

from pathlib import Path

from muster.domain.media import MAX_FILE_BYTES, MediaFile, MediaKind, digest_of
from muster.text.document_tree import Unreadable
from muster.text.files import opened
from muster.text.media import KNOWN, TYPES, is_encrypted, pages_of, pixels_of, type_of

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"})


def media_in(data: bytes, name: str = "", kind: MediaKind | None = None) -> MediaFile:
    """Return bytes as an image or a document; raises Unreadable for all others."""
    if len(data) > MAX_FILE_BYTES:
        raise Unreadable(f"has {len(data):,} bytes; an image or a document has at most {MAX_FILE_BYTES:,}")
    type_ = type_of(data)
    if type_ is None:
        raise Unreadable(f"is not {KNOWN}" + ("; it is empty" if not data else ""))
    found = TYPES[type_]
    if kind is not None and found is not kind:
        raise Unreadable(f"is of the type {type_}, which is not of the kind {kind}")
    width, height = (pixels_of(data, type_) or (None, None)) if found is MediaKind.IMAGE else (None, None)
    is_document = found is MediaKind.DOCUMENT
    if is_document and is_encrypted(data):
        raise Unreadable("is encrypted; save it without a password")
    return MediaFile(
        kind=found,
        type=type_,
        digest=digest_of(data),
        size=len(data),
        width=width,
        height=height,
        pages=pages_of(data) if is_document else None,
        name=name if is_document else "",
        data=data,
    )


def media_at(path: Path, kind: MediaKind | None = None) -> MediaFile:
    """Read a file that is an image or a document; raises Unreadable for all others."""
    with opened(path) as file:
        return media_in(file.read(MAX_FILE_BYTES + 1), path.name, kind)
