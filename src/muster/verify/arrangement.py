"""Who looks at what in which wave. Pure: the same spec and files always give the same arrangement."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from muster.domain.call import MIN_CACHED_PREFIX
from muster.domain.canonical import canonical
from muster.domain.dispatch import Mode
from muster.domain.errors import BadArgument, Conflict, NotFound
from muster.engine.context import Context
from muster.text import typed
from muster.text.secrets.redaction import Redactor
from muster.verify.declaration.verification import Kind, LeftOut, Limits, Verification, Verifier
from muster.verify.findings.journal import SNAPSHOT, files_key
from muster.verify.sources.source import Chunk, FileInfo, Piece, Source, VerifySnapshot, read_source


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkUnit:
    """A chunk with the agents that are asked about it."""

    chunk: Chunk
    verifiers: tuple[Verifier, ...]

    @property
    def cached(self) -> bool:
        """Return whether the first is asked alone and marks the chunk, so that the others hit the provider's cache."""
        return len(self.verifiers) > 1 and len(self.chunk.text) >= MIN_CACHED_PREFIX


class Arrangement:
    """Gives every agent of every wave its files and chunks."""

    def __init__(self, spec: Verification, sources: Sequence[Source]) -> None:
        self._spec, self._sources = spec, tuple(sources)
        self._verifiers = [one for one in spec.verifiers if not spec.agents or one.name in spec.agents]
        self._chunks: dict[tuple[str, ...], tuple[Chunk, ...]] = {}
        numbers = sorted({one.wave for one in self._verifiers})
        self.waves = tuple(number for number in numbers if not spec.waves or number in spec.waves)

    @property
    def unseen(self) -> tuple[str, ...]:
        """The files that are for nobody."""
        asked = [one for wave in self.waves for one in self.of(wave)]
        return tuple(source.path for source in self._sources if not any(one.looks_at(source.path) for one in asked))

    @property
    def sources(self) -> tuple[Source, ...]:
        """All files that are verified."""
        return self._sources

    def of(self, wave: int) -> tuple[Verifier, ...]:
        """Return the agents of a wave, in the order in which they are declared."""
        return tuple(one for one in self._verifiers if one.wave == wave)

    def files(self, verifier: Verifier) -> tuple[Source, ...]:
        """Return the files that are for an agent."""
        return tuple(source for source in self._sources if verifier.looks_at(source.path))

    def chunks(self, verifier: Verifier) -> tuple[Chunk, ...]:
        """Return the chunks that an agent is asked about; agents with the same files have the same chunks."""
        files = self.files(verifier)
        name = tuple(source.path for source in files)
        if name not in self._chunks:
            self._chunks[name] = cut(files, self._spec.limits)
        return self._chunks[name]

    def parts(self, verifier: Verifier) -> int:
        """Return how many reports an agent must give."""
        return len(self.chunks(verifier)) if verifier.kind is Kind.MODEL else min(1, len(self.files(verifier)))

    def units(self, wave: int, usual: Mode) -> Iterator[ChunkUnit]:
        """Yield what models are asked in a wave, chunk by chunk; those that can share a cache stand together."""
        models = [one for one in self.of(wave) if one.kind is Kind.MODEL]
        for group in self._groups(models, usual):
            shared: dict[str, tuple[Chunk, list[Verifier]]] = {}
            for verifier in group:
                for chunk in self.chunks(verifier):
                    shared.setdefault(chunk.name, (chunk, []))[1].append(verifier)
            yield from (ChunkUnit(chunk=chunk, verifiers=tuple(asked)) for chunk, asked in shared.values())

    def _groups(self, verifiers: Sequence[Verifier], usual: Mode) -> list[tuple[Verifier, ...]]:
        found: dict[tuple[object, ...], list[Verifier]] = {}
        for one in verifiers:
            alone = not self._spec.cache or sent_as(self._spec, one, usual) is Mode.BATCH  # where nobody is first
            found.setdefault((one.name,) if alone else beginning(one), []).append(one)
        return [tuple(group) for group in found.values()]


def beginning(verifier: Verifier) -> tuple[object, ...]:
    """Name what the requests of an agent begin with, besides the chunk: its model, and the shape of the answer."""
    return verifier.model, verifier.shape, None if verifier.schema is None else canonical(dict(verifier.schema))


def sent_as(spec: Verification, verifier: Verifier, usual: Mode) -> Mode:
    """Return how an agent is asked: by its own setting, else by that of the run; live when the spec requires it."""
    if spec.live:
        return Mode.LIVE
    return usual if verifier.dispatch is None else Mode(verifier.dispatch)


PAGE_BYTES = 500_000  # of texts in one entry of the journal, about
PAGE_FILES = 1_000

_SOURCES = tuple[Source, ...]


async def read_in(ctx: Context, spec: Verification) -> VerifySnapshot:
    """Return what was read in; whoever resumes the run gets the very same."""
    return typed.convert(await ctx.step(SNAPSHOT, lambda: _read(ctx, spec)), VerifySnapshot)


async def sources_of(ctx: Context, snapshot: VerifySnapshot) -> tuple[Source, ...]:
    """Return the files as they were read."""
    found: list[Source] = []
    for page in range(snapshot.pages):
        value = await ctx.recall(files_key(page), inherited=True)  # an heir takes it over
        if value is None:
            raise NotFound("a page of the files that were read in is gone", suggestions=("start a new run",))
        found += typed.convert(value, _SOURCES)
    return tuple(found)


def read_sources(spec: Verification) -> Iterator[Source | LeftOut]:
    """Read the files of a spec one by one; raises BadFile for one that cannot be read."""
    folder, redactor = Path(spec.source or spec.root), Redactor()
    for path in spec.files:
        yield read_source(folder, path, redactor=redactor)


async def _read(ctx: Context, spec: Verification) -> Any:
    """Read page after page, beside the event loop: a lease must be kept meanwhile."""
    files: list[FileInfo] = []
    left_out = list(spec.left_out)
    kept, pages = 0, _pages(spec)
    while (page := await asyncio.to_thread(next, pages, None)) is not None:
        sources = [found for found in page if isinstance(found, Source)]
        left_out += [found for found in page if isinstance(found, LeftOut)]
        files += map(_info, sources)
        if sources:
            await _keep(ctx, kept, sources)
            kept += 1
    return typed.to_builtins(VerifySnapshot(files=tuple(files), left_out=tuple(left_out), pages=kept))


def _pages(spec: Verification) -> Iterator[list[Source | LeftOut]]:
    """Yield the files in pages of about the same size."""
    page: list[Source | LeftOut] = []
    size = 0
    for found in read_sources(spec):
        page.append(found)
        size += len(found.text) if isinstance(found, Source) else 0
        if size >= PAGE_BYTES or len(page) >= PAGE_FILES:
            yield page
            page, size = [], 0
    if page:
        yield page


async def _keep(ctx: Context, number: int, page: list[Source]) -> None:
    """Keep a page of files; a crash in the middle of reading must not mix two versions of a file."""
    value = typed.to_builtins(page)
    if typed.convert(await ctx.step(files_key(number), lambda: value), _SOURCES) != tuple(page):
        raise Conflict("the files were changed after this run had begun to read them", suggestions=("start a new run",))


def _info(source: Source) -> FileInfo:
    return FileInfo(
        path=source.path,
        digest=source.digest,
        lines=len(source.lines),
        bytes=len(source.text.encode("utf-8", "surrogatepass")),
        redacted=source.redacted,
        note=source.note,
    )


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
    """Yield from where to where the pieces go: each as long as fits, and each with something new."""
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
    """Return the most that the lines around a piece of a file can take."""
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
