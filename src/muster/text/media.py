"""Images and documents of strangers: what they are, and what they say of themselves. Nothing is decoded.

Sizes and pages are bounds by which calls are reserved: what cannot be told is None, and counts as the largest.
"""

from muster.domain.media import MediaKind

TYPES = {
    "image/png": MediaKind.IMAGE,
    "image/jpeg": MediaKind.IMAGE,
    "image/gif": MediaKind.IMAGE,
    "image/webp": MediaKind.IMAGE,
    "application/pdf": MediaKind.DOCUMENT,
}
KNOWN = "PNG, JPEG, GIF, WebP or PDF"


def type_of(data: bytes) -> str | None:
    """Return the type of a file by how it begins; None for any other."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if b"%PDF-" in data[:1024] else None
