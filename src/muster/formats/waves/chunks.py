"""Cuts files into chunks that fit a call. Pure: the same files always give the same chunks, to the byte.

A file stands between two lines with a token that is made from everything in the chunk: whoever wrote a file would have
had to know the digest of it before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from muster.domain.errors import BadArgument
from muster.domain.source import Chunk, Piece, Source
from muster.domain.verification import Limits

_TOKEN = 32  # hexadecimal digits: too many to be found by trying
_NAME = 16
_WIDTH = 5  # of a line number, so that the columns of most files stand below each other
_OVERLAP = 4  # a piece repeats at most this part of what fits: else a cut could cost more than the file


def cut(sources: Sequence[Source], limits: Limits) -> tuple[Chunk, ...]:
    """Cut files into chunks in the given order, as few as come of filling one after the other."""
    found: list[Chunk] = []
    blocks: list[_Block] = []
    size = 0
    for block in (block for source in sources for block in _blocks(source, limits)):
        if blocks and size + block.size > limits.chunk_bytes:
            found.append(_chunk(blocks))
            blocks, size = [], 0
        blocks.append(block)
        size += block.size
    return (*found, _chunk(blocks)) if blocks else tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """A piece of a file as it is shown, without the token, which is not known before the chunk is full."""

    piece: Piece
    body: str
    size: int  # at most, in bytes of UTF-8, with the lines above and below it


def _blocks(source: Source, limits: Limits) -> Iterator[_Block]:
    texts = source.lines
    if not texts:
        return
    frame = _frame(source.path, len(texts))
    room = limits.chunk_bytes - frame
    width = max(_WIDTH, len(str(len(texts))))
    lines = [f"{number:>{width}}| {text}\n" for number, text in enumerate(texts, 1)]
    sizes = [len(line.encode()) for line in lines]
    if max(sizes) > room:
        raise BadArgument(
            f"chunks of {limits.chunk_bytes:,} bytes are too small to show a line of {source.path}",
            suggestions=(f"set chunk_bytes to {frame + max(sizes):,} or more",),
        )
    for first, last in _ranges(sizes, room, limits.overlap_lines):
        piece = Piece(path=source.path, first=first + 1, last=last, of=len(texts))
        yield _Block(piece=piece, body="".join(lines[first:last]), size=frame + sum(sizes[first:last]))


def _ranges(sizes: Sequence[int], room: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Give from where to where the pieces go: each as long as fits, and each with something new."""
    first = last = used = 0
    while last < len(sizes):
        if used + sizes[last] <= room:
            used += sizes[last]
            last += 1
            continue
        yield first, last
        first, used = _back(sizes, last, overlap, min(room - sizes[last], room // _OVERLAP))
    yield first, last


def _back(sizes: Sequence[int], end: int, most: int, room: int) -> tuple[int, int]:
    """Go back from an end by as many lines as are to be repeated and have room; give where that is, and its bytes."""
    start, used = end, 0
    while start > 0 and end - start < most and used + sizes[start - 1] <= room:
        start -= 1
        used += sizes[start]
    return start, used


def _frame(path: str, lines: int) -> int:
    """Give the most that the lines around a piece of a file can take."""
    piece = Piece(path=path, first=lines, last=lines, of=lines)
    return len(_framed(piece, "", "0" * _TOKEN).encode())


def _framed(piece: Piece, body: str, token: str) -> str:
    head = f"<<<BEGIN FILE {token} {piece.path} lines {piece.first} to {piece.last} of {piece.of}>>>"
    return f"{head}\n{body}<<<END FILE {token}>>>\n"


def _chunk(blocks: Sequence[_Block]) -> Chunk:
    digest = sha256()
    for block in blocks:
        for part in (_framed(block.piece, "", ""), block.body):
            data = part.encode()
            digest.update(f"{len(data)}:".encode() + data)
    token, name = digest.hexdigest()[:_TOKEN], digest.hexdigest()[_TOKEN : _TOKEN + _NAME]
    text = "".join(_framed(block.piece, block.body, token) for block in blocks)
    return Chunk(name=name, pieces=tuple(block.piece for block in blocks), text=text)
