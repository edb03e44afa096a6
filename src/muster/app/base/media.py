"""Images and documents for what is asked, from files or bytes. `muster.image` and `muster.document`."""

import os
from pathlib import Path

from muster.domain.errors import BadArgument
from muster.domain.media import MediaFile, MediaKind
from muster.text.document_tree import Unreadable
from muster.text.media_files import media_at, media_in


def image(source: str | os.PathLike[str] | bytes) -> MediaFile:
    """Return a PNG, JPEG, GIF or WebP, from a file or its bytes; raises BadArgument for anything else."""
    return _media(source, MediaKind.IMAGE)


def document(source: str | os.PathLike[str] | bytes, *, name: str = "") -> MediaFile:
    """Return a PDF, from a file or its bytes; the agent is told its name, which is that of the file."""
    return _media(source, MediaKind.DOCUMENT, name)


def media_file(source: str | os.PathLike[str]) -> MediaFile:
    """Return the image or document in a file; raises BadArgument for anything else."""
    return _media(source, None)


def _media(source: str | os.PathLike[str] | bytes, kind: MediaKind | None, name: str = "") -> MediaFile:
    try:
        if isinstance(source, bytes):
            return media_in(source, name or ("document.pdf" if kind is MediaKind.DOCUMENT else ""), kind)
        path = Path(source)
        found = media_at(path, kind)
    except (Unreadable, TypeError) as error:
        said = "bytes" if isinstance(source, bytes) else str(source)
        message = error.message if isinstance(error, Unreadable) else "must be a path or bytes"
        raise BadArgument(f"{said}: {message}", suggestions=("name a PNG, JPEG, GIF, WebP or PDF",)) from None
    return found if not name else media_in(found.data, name, kind)
