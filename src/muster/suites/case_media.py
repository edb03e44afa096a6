"""The images and documents that cases show: found, read from their files, and stored with a run."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from muster.domain.errors import BadFile, Conflict
from muster.domain.media import Media, MediaFile
from muster.engine.context import Context
from muster.suites.values.case import Case
from muster.text.document_tree import Unreadable
from muster.text.media_files import media_at


def media_of(cases: Iterable[Case]) -> Iterator[Media]:
    """Yield the images and documents that cases show, each once."""
    seen: set[str] = set()
    for media in (media for case in cases for message in case.messages for media in message.media):
        if media.digest not in seen:
            seen.add(media.digest)
            yield media


async def keep_media(ctx: Context, shown: Iterable[Media], paths: Mapping[str, Path]) -> None:
    """Store the bytes of images and documents, one after the other."""
    for media in shown:
        await ctx.keep_media(read_media(media, paths[media.digest]))


def read_media(media: Media, path: Path) -> MediaFile:
    """Return an image or a document with its bytes; raises Conflict for a file that has changed."""
    try:
        found = media_at(path)
    except Unreadable as error:
        raise BadFile(str(path), error.message) from None
    if found.digest != media.digest:
        raise Conflict(f"{path} was changed after it was read", suggestions=("start the run again",))
    return found
