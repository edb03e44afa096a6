"""Images and documents of strangers: what they are, and how large, by their headers alone. Nothing is decoded.

Sizes and pages are bounds by which calls are reserved: what cannot be told is None, and counts as the largest.
"""

import re
import zlib

from muster.domain.media import MediaKind

TYPES = {
    "image/png": MediaKind.IMAGE,
    "image/jpeg": MediaKind.IMAGE,
    "image/gif": MediaKind.IMAGE,
    "image/webp": MediaKind.IMAGE,
    "application/pdf": MediaKind.DOCUMENT,
}
KNOWN = "PNG, JPEG, GIF, WebP or PDF"
MAX_UNPACKED = 64_000_000  # bytes of the object streams of a document

Size = tuple[int, int]

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # markers of JPEG after which its size stands
_BARE = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a length
_END_OF_HEADER = frozenset({0xD9, 0xDA})
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_KIDS = re.compile(rb"/Kids\s*\[([^\]]*)\]")
_INDIRECT_KIDS = re.compile(rb"/Kids\s+\d")
_REFERENCE = re.compile(rb"(\d+)\s+\d+\s+R")
_STREAM = re.compile(rb"(?<!end)stream\r?\n")
_ESCAPED = re.compile(rb"/([^\s/<>\[\]()%#]{0,8}#[0-9A-Fa-f]{2}[^\s/<>\[\]()%]{0,24})")
_ESCAPE = re.compile(rb"#([0-9A-Fa-f]{2})")
_NAMES = frozenset({b"Type", b"Page", b"Pages", b"Kids", b"ObjStm", b"Filter", b"FlateDecode"})
MAX_HEADER = 4_096  # bytes of the dictionary before a stream


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


def pixels_of(data: bytes, type_: str) -> Size | None:
    """Return width and height of an image; None where its header does not tell."""
    read = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}[type_]
    size = read(data)
    return size if size is not None and all(size) else None


def _png(data: bytes) -> Size | None:
    if len(data) < 24 or data[12:16] != b"IHDR":
        return None
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def _gif(data: bytes) -> Size | None:
    return (int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")) if len(data) >= 10 else None


def _jpeg(data: bytes) -> Size | None:
    """Return the largest frame before the picture itself."""
    place, size = 2, None
    while place + 9 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF or marker in _BARE:  # a fill byte, or a marker that stands alone
            place += 1 if marker == 0xFF else 2
            continue
        if marker in _END_OF_HEADER:
            return size
        length = int.from_bytes(data[place + 2 : place + 4])
        if length < 2:
            return None
        if marker in _FRAMES:
            found = int.from_bytes(data[place + 7 : place + 9]), int.from_bytes(data[place + 5 : place + 7])
            size = found if size is None else (max(size[0], found[0]), max(size[1], found[1]))
        place += 2 + length
    return size


def _webp(data: bytes) -> Size | None:
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L" and len(data) >= 25 and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and len(data) >= 30 and data[23:26] == b"\x9d\x01\x2a":
        return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    return None


def is_encrypted(data: bytes) -> bool:
    """Return whether a document is encrypted, so that nobody can read it without its password."""
    return re.search(rb"/Encrypt\s*(?:\d+\s+\d+\s+R|<<)", data) is not None


def pages_of(data: bytes) -> int | None:
    """Return how many pages a document has at most; None where they cannot be counted.

    Pages of older versions of the same file are counted as well. A document that names a page twice is not counted, nor
    one that spells the names that matter with escapes.
    """
    parts = _object_streams(data)
    if parts is None:
        return None
    texts = (data, *parts)
    if any(_INDIRECT_KIDS.search(text) or _has_escaped_names(text) for text in texts):
        return None
    kids = [kid for text in texts for found in _KIDS.finditer(text) for kid in _REFERENCE.findall(found[1])]
    if len(set(kids)) < len(kids):
        return None
    return max(len(kids), sum(len(_PAGE.findall(text)) for text in texts)) or None


def _has_escaped_names(text: bytes) -> bool:
    return any(_unescaped(found[1]) in _NAMES for found in _ESCAPED.finditer(text))


def _unescaped(name: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), name)


def _object_streams(data: bytes) -> list[bytes] | None:
    """Return what the object streams hold, which is where newer files have their pages; None for unknown filters."""
    parts: list[bytes] = []
    left, end = MAX_UNPACKED, 0
    view = memoryview(data)
    for found in _STREAM.finditer(data):
        header = data[max(end, found.start() - MAX_HEADER) : found.start()].rpartition(b"obj")[2]
        end = found.end()
        if b"/ObjStm" not in header:
            continue
        part = _unpacked(header, view[end : max(end, data.find(b"endstream", end))], left)
        left -= len(part or b"")
        if part is None or left <= 0:
            return None
        parts.append(part)
    return parts


def _unpacked(header: bytes, packed: memoryview, most: int) -> bytes | None:
    if b"/Filter" not in header:
        return bytes(packed)
    if b"/FlateDecode" not in header or b"/Predictor" in header:
        return None
    unpacking = zlib.decompressobj()
    try:
        part = unpacking.decompress(packed, most)
    except zlib.error:
        return None
    return part if unpacking.eof else None
