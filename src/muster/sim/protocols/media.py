"""Images and documents in requests: how many tokens they count, by their pixels and pages."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any, Literal

from muster.domain.canonical import Json
from muster.domain.script import count_tokens
from muster.sim.protocols.models import TILES, SimModel

PIXELS_PER_TOKEN = 750
PAGE_TOKENS = 1_500  # the text of a page, besides its image
TILE, BASE_TOKENS, TILE_TOKENS = 512, 85, 170
MAX_SIDE, MIN_SIDE = 2_048, 768  # to which images are scaled before they are cut into tiles
PATCH, MAX_PATCHES = 32, 1_536
FACTORS = (("nano", 2.46), ("mini", 1.62))  # of patches, by the name of the model

_PAGE = re.compile(rb"/Type\s*/Page\b(?!s)")
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # markers of JPEG after which its size stands


def anthropic_tokens(blocks: list[dict[str, Json]], model: SimModel) -> int:
    """Count the images and documents of blocks, those in results of tools too."""
    return sum(_anthropic_block(block, model) for block in _nested(blocks))


def openai_tokens(parts: list[dict[str, Json]], model: SimModel) -> int:
    """Count the images and files of the parts of a message."""
    return sum(_openai_part(part, model) for part in parts)


def _nested(blocks: list[dict[str, Json]]) -> Iterator[dict[str, Json]]:
    for block in blocks:
        inner = block.get("content")
        if block.get("type") == "tool_result" and isinstance(inner, list):
            yield from (part for part in inner if isinstance(part, dict))
        else:
            yield block


def _anthropic_block(block: dict[str, Json], model: SimModel) -> int:
    source = block.get("source")
    if block.get("type") not in ("image", "document") or not isinstance(source, dict):
        return 0
    data = _decoded(source.get("data")) if source.get("type") == "base64" else b""
    if block["type"] == "image":
        return _by_pixels(_pixels(data), model.image_tokens)
    if source.get("type") == "text":
        return count_tokens(str(source.get("data")))
    return _pages(data) * (PAGE_TOKENS + model.image_tokens)


def _by_pixels(size: tuple[int, int] | None, most: int) -> int:
    return most if size is None else min(most, max(1, ceil(size[0] * size[1] / PIXELS_PER_TOKEN)))


def _openai_part(part: Mapping[str, Any], model: SimModel) -> int:
    kind = part.get("type")
    if kind in ("image_url", "input_image"):
        image = part.get("image_url")
        url, detail = (
            (image.get("url"), image.get("detail")) if isinstance(image, dict) else (image, part.get("detail"))
        )
        return _image(_pixels(_data_of(url)), model, low=detail == "low")
    if kind in ("file", "input_file"):
        file = part["file"] if isinstance(part.get("file"), dict) else part
        return _pages(_data_of(file.get("file_data"))) * (PAGE_TOKENS + _image(None, model, low=False))
    return 0


def _image(size: tuple[int, int] | None, model: SimModel, *, low: bool) -> int:
    if model.images == TILES:
        return BASE_TOKENS if low else BASE_TOKENS + TILE_TOKENS * _tiles(*(size or (MAX_SIDE, MAX_SIDE)))
    width, height = size or (10**6, 10**6)
    patches = min(MAX_PATCHES, ceil(width / PATCH) * ceil(height / PATCH))
    return ceil(patches * next((factor for word, factor in FACTORS if word in model.glob), 1.0))


def _tiles(width: int, height: int) -> int:
    fit = min(1.0, MAX_SIDE / max(width, height))
    fit *= min(1.0, MIN_SIDE / (min(width, height) * fit))
    return ceil(width * fit / TILE) * ceil(height * fit / TILE)


def _data_of(url: Json) -> bytes:
    """Return the data of a data address; nothing of any other."""
    return _decoded(url.partition(",")[2]) if isinstance(url, str) and url.startswith("data:") else b""


def _decoded(data: Json) -> bytes:
    try:
        return b64decode(data) if isinstance(data, str) else b""
    except (Error, ValueError):
        return b""


def _pages(data: bytes) -> int:
    return max(1, len(_PAGE.findall(data)))


def _pixels(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF, WebP or JPEG; None of anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return _sides(data[16:20], data[20:24], "big")
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) >= 10:
        return _sides(data[6:8], data[8:10], "little")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    if data.startswith(b"\xff\xd8"):
        return _jpeg(data)
    return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    place = 2
    while place + 9 <= len(data) and data[place] == 0xFF:
        if data[place + 1] in _FRAMES:
            return _sides(data[place + 7 : place + 9], data[place + 5 : place + 7], "big")
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X" and len(data) >= 30:
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and len(data) >= 30:
        return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
    return None


def _sides(width: bytes, height: bytes, order: Literal["big", "little"]) -> tuple[int, int] | None:
    sides = int.from_bytes(width, order), int.from_bytes(height, order)
    return sides if all(sides) else None
