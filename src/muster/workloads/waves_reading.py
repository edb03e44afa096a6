"""Reading files in: before the first call all is in the journal, without its secrets; nothing is read again."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec

from muster.domain.canonical import Json
from muster.domain.errors import Conflict, NotFound
from muster.domain.redaction import Redactor
from muster.domain.source import FileInfo, Snapshot, Source
from muster.domain.verification import LeftOut, Verification
from muster.domain.waves import SNAPSHOT, files_key
from muster.engine.context import Context
from muster.formats.waves.sources import read_source

PAGE_BYTES = 500_000  # of texts in one entry of the journal, about
PAGE_FILES = 1_000

_SOURCES = tuple[Source, ...]


async def read_in(ctx: Context, spec: Verification) -> Snapshot:
    """Give what was read in; whoever resumes the run gets the very same."""
    return msgspec.convert(await ctx.step(SNAPSHOT, lambda: _read(ctx, spec)), Snapshot)


async def sources_of(ctx: Context, snapshot: Snapshot) -> tuple[Source, ...]:
    """Give the files as they were read."""
    found: list[Source] = []
    for page in range(snapshot.pages):
        # A step and no mere look: an heir takes the page over.
        found += msgspec.convert(await ctx.step(files_key(page), _gone), _SOURCES)
    return tuple(found)


def read_sources(spec: Verification) -> Iterator[Source | LeftOut]:
    """Read the files of a spec one by one; raises BadFile for one that cannot be read."""
    folder, redactor = Path(spec.source or spec.root), Redactor()
    for path in spec.files:
        yield read_source(folder, path, redactor=redactor)


async def _read(ctx: Context, spec: Verification) -> Json:
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
    return msgspec.to_builtins(Snapshot(files=tuple(files), left_out=tuple(left_out), pages=kept))


def _pages(spec: Verification) -> Iterator[list[Source | LeftOut]]:
    """Give the files in pages of about the same size."""
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
    value = msgspec.to_builtins(page)
    if msgspec.convert(await ctx.step(files_key(number), lambda: value), _SOURCES) != tuple(page):
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


def _gone() -> Json:
    raise NotFound("a page of the files that were read in is gone", suggestions=("start a new run",))
