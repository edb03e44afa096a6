"""Images of strangers: how large they are, and whether they can be whole, by their blocks alone. Nothing is decoded.

A size is a bound: the largest of all frames. None: no block says it, and it counts as the largest.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Size = tuple[int, int]

MAX_BLOCKS = 100_000  # that are read; a file with so many of an ordinary length is larger than any that is taken
_MAX_PNG_SIDE = (1 << 31) - 1
_PNG_HEADER = b"\0\0\0\x0dIHDR"
_PNG_END = b"\0\0\0\0IEND\xaeB`\x82"
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # markers of JPEG after which its size stands
_BARE = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a length
_JPEG_SCAN, _JPEG_END = 0xDA, 0xD9
_FILL = re.compile(rb"\xff*+")
_GIF_EXTENSION, _GIF_FRAME, _GIF_END = 0x21, 0x2C, 0x3B
_CUT = "is cut short: its end is missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """What the blocks of an image say."""

    size: Size | None = None
    flaw: str = ""  # why it cannot be a whole image


def image_facts(data: bytes, type_: str) -> ImageFacts:
    """Return the size of an image, and what it lacks."""
    read: dict[str, Callable[[bytes], ImageFacts]] = {
        "image/png": _png,
        "image/jpeg": _jpeg,
        "image/gif": _gif,
        "image/webp": _webp,
    }
    return read[type_](data)


def _facts(sizes: Iterable[Size], flaw: str = "") -> ImageFacts:
    found = [size for size in sizes if all(size)]
    largest = (max(width for width, _ in found), max(height for _, height in found)) if found else None
    return ImageFacts(size=largest, flaw=flaw)


def _png(data: bytes) -> ImageFacts:
    width, height = int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    if data[8:16] != _PNG_HEADER or not (0 < width <= _MAX_PNG_SIDE and 0 < height <= _MAX_PNG_SIDE):
        return ImageFacts(flaw="has no header with a size")
    picture = data.find(b"IDAT", 33)
    is_whole = picture >= 0 and data.find(_PNG_END, picture) >= 0
    return _facts([(width, height)], "" if is_whole else _CUT)


def _jpeg(data: bytes) -> ImageFacts:
    """Read the segments before the picture itself; what cameras write after its end does not matter."""
    sizes: list[Size] = []
    frames, place = 0, 2
    for _ in range(MAX_BLOCKS):
        if data[place : place + 1] != b"\xff":
            return _facts(sizes, _CUT)
        place = _end_of_fill(data, place)
        marker = data[place] if place < len(data) else _JPEG_END
        if marker in _BARE:
            place += 1
            continue
        length = int.from_bytes(data[place + 1 : place + 3])
        if marker == _JPEG_END or length < 2:
            return _facts(sizes, _CUT)
        if marker == _JPEG_SCAN:
            is_whole = data.find(b"\xff\xd9", place + 1 + length) >= 0
            return _facts(sizes, ("" if frames else "has no header with a size") if is_whole else _CUT)
        if marker in _FRAMES:
            frames += 1
            sizes.append((int.from_bytes(data[place + 6 : place + 8]), int.from_bytes(data[place + 4 : place + 6])))
        place += 1 + length
    return _facts(sizes, _too_many())


def _end_of_fill(data: bytes, place: int) -> int:
    """Return the place of a marker, before which any number of bytes may be 0xFF."""
    found = _FILL.match(data, place)
    return place if found is None else found.end()


def _gif(data: bytes) -> ImageFacts:
    """Read the screen and all frames, which may be larger than it."""
    if len(data) < 13:
        return ImageFacts(flaw=_CUT)
    sizes = [(_little(data, 6), _little(data, 8))]
    place = 13 + _colours(data[10])
    for _ in range(MAX_BLOCKS):
        kind = data[place] if place < len(data) else -1
        if kind == _GIF_END:
            return _facts(sizes)
        if kind == _GIF_FRAME and place + 10 < len(data):
            left, top, width, height = (_little(data, place + at) for at in (1, 3, 5, 7))
            sizes.append((left + width, top + height))
            place = _after_parts(data, place + 11 + _colours(data[place + 9]))
        elif kind == _GIF_EXTENSION:
            place = _after_parts(data, place + 2)
        elif kind == 0:  # what some programs write between blocks
            place += 1
        else:
            return _facts(sizes, _CUT)
    return _facts(sizes, _too_many())


def _colours(flags: int) -> int:
    """Return how many bytes a table of colours takes."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _after_parts(data: bytes, place: int) -> int:
    """Return the place after the parts of a block, of which an empty one is the last; the end where it is missing."""
    while place < len(data):
        length = data[place]
        place += 1 + length
        if not length:
            break
    return place


def _webp(data: bytes) -> ImageFacts:
    size = int.from_bytes(data[4:8], "little")
    if len(data) < 20 or not 12 <= size <= len(data) - 8:
        return ImageFacts(flaw=_CUT)
    sizes: list[Size] = []
    place = 12
    for _ in range(MAX_BLOCKS):
        if place + 8 > len(data):
            return _facts(sizes)
        sizes.append(_webp_size(data[place : place + 4], data[place + 8 : place + 24]))
        length = int.from_bytes(data[place + 4 : place + 8], "little")
        place += 8 + length + length % 2
    return _facts(sizes, _too_many())


def _webp_size(kind: bytes, start: bytes) -> Size:
    """Return the size that a chunk says by how it begins; (0, 0) if it says none."""
    if kind == b"VP8X" and len(start) >= 10:
        return int.from_bytes(start[4:7], "little") + 1, int.from_bytes(start[7:10], "little") + 1
    if kind == b"ANMF" and len(start) >= 12:
        return int.from_bytes(start[6:9], "little") + 1, int.from_bytes(start[9:12], "little") + 1
    if kind == b"VP8L" and len(start) >= 5 and start[0] == 0x2F:
        bits = int.from_bytes(start[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and len(start) >= 10 and start[3:6] == b"\x9d\x01\x2a":
        return _little(start, 6) & 0x3FFF, _little(start, 8) & 0x3FFF
    return 0, 0


def _little(data: bytes, place: int) -> int:
    return int.from_bytes(data[place : place + 2], "little")


def _too_many() -> str:
    return f"has more than {MAX_BLOCKS:,} blocks"
