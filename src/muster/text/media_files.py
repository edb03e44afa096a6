"""Images and documents as values: their bytes read once, with digest, type and size; broken ones are refused."""

from pathlib import Path

from muster.domain.media import MAX_FILE_BYTES, MediaFile, MediaKind, digest_of
from muster.text.document_tree import Unreadable
from muster.text.files import opened
from muster.text.images import image_facts
from muster.text.media import KNOWN, TYPES, type_of
from muster.text.pdf import document_facts

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
    return _document(data, type_, name) if found is MediaKind.DOCUMENT else _image(data, type_)


def _image(data: bytes, type_: str) -> MediaFile:
    facts = image_facts(data, type_)
    if facts.flaw:
        raise _broken(data, facts.flaw)
    width, height = facts.size or (None, None)
    return MediaFile(
        kind=MediaKind.IMAGE,
        type=type_,
        digest=digest_of(data),
        size=len(data),
        width=width,
        height=height,
        data=data,
    )


def _document(data: bytes, type_: str, name: str) -> MediaFile:
    facts = document_facts(data)
    if facts.flaw:
        raise _broken(data, facts.flaw)
    return MediaFile(
        kind=MediaKind.DOCUMENT,
        type=type_,
        digest=digest_of(data),
        size=len(data),
        pages=facts.pages,
        text=facts.text,
        name=name,
        data=data,
    )


def _broken(data: bytes, flaw: str) -> Unreadable:
    return Unreadable(f"{flaw} ({len(data):,} bytes)")


def media_at(path: Path, kind: MediaKind | None = None) -> MediaFile:
    """Read a file that is an image or a document; raises Unreadable for all others."""
    with opened(path) as file:
        return media_in(file.read(MAX_FILE_BYTES + 1), path.name, kind)
