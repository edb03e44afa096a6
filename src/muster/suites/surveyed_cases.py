"""Cases between the survey of a run and its start: kept, so that the run reads no file that was just read."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from muster.domain.canonical import Json
from muster.domain.media import Media
from muster.engine.context import Context
from muster.suites.case_media import keep_media
from muster.suites.cases import CaseReader
from muster.suites.journal import PAGE, SNAPSHOT, SuiteSnapshot, cases_key, pack
from muster.suites.spec import SuiteSpec
from muster.suites.values.case import Case
from muster.text import typed

MAX_CACHED_BYTES = 64_000_000  # bytes of compressed cases; a run with more reads its files itself
_GROUP = 20  # pages that go into one commit


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyedCases:
    """Everything that a run would read in, as somebody has read it before: the run that gets it reads no suite.

    Images and documents are read once more, when they are stored; one that was changed meanwhile is refused.
    """

    spec: SuiteSpec
    pages: tuple[bytes, ...]  # of cases, packed and compressed
    snapshot: SuiteSnapshot
    media: tuple[Media, ...] = ()  # that its cases show, without their bytes
    paths: Mapping[str, Path] = field(default_factory=dict)  # where those are, by digest

    async def record(self, ctx: Context) -> None:
        """Put it into the journal of a run that has not begun, under the keys and in the order of `read_in`."""
        await keep_media(ctx, self.media, self.paths)
        for first in range(0, len(self.pages), _GROUP):
            numbers = range(first, min(first + _GROUP, len(self.pages)))
            await ctx.gather(*(ctx.step(cases_key(number), partial(self._page, number)) for number in numbers))
        await ctx.step(SNAPSHOT, lambda: typed.to_builtins(self.snapshot))

    # On the loop, not in a thread: pages that are read side by side are stored in the order of their numbers.
    async def _page(self, number: int) -> Json:
        return zlib.decompress(self.pages[number]).decode("utf-8")


class CaseCollector:
    """Keeps the cases that come by, compressed, as long as they take little room."""

    def __init__(self, most: int = MAX_CACHED_BYTES) -> None:
        self._most = most
        self._page: list[Case] = []
        self._pages: list[bytes] = []
        self._bytes = 0
        self._media: dict[str, Media] = {}

    def add(self, case: Case) -> None:
        """Keep one more."""
        self._page.append(case)
        self._media.update((media.digest, media) for message in case.messages for media in message.media)
        if len(self._page) == PAGE:
            self._turn()

    def surveyed(self, reading: CaseReader, spec: SuiteSpec) -> SurveyedCases | None:
        """Return what was kept of a reading that is over; None when it is too much."""
        if self._page:
            self._turn()
        if self._bytes > self._most:
            return None
        return SurveyedCases(
            spec=spec,
            pages=tuple(self._pages),
            snapshot=reading.snapshot(len(self._pages)),
            media=tuple(self._media.values()),
            paths=dict(reading.media_paths),
        )

    def _turn(self) -> None:
        page, self._page = tuple(self._page), []
        if self._bytes <= self._most:
            self._pages.append(zlib.compress(pack(page).encode("utf-8"), 1))
            self._bytes += len(self._pages[-1])
        else:
            self._pages.clear()
