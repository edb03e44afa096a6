"""Collecting: results are spooled to disk, read line by line, and settled a thousand to a transaction.

A result that was settled before is passed over, so collecting can be broken off and begun again at any point.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path

from muster.agents.base import BatchAgent
from muster.domain.batch import (
    Batch,
    BatchState,
    Progress,
    Shortfall,
)
from muster.engine.dismissing import PAGE, Dismisser
from muster.engine.odd import Odd
from muster.engine.parking import Waiters
from muster.engine.reading import Ended, Reading, missing
from muster.engine.resolving import Resolver
from muster.engine.spool import Splitter, Spool
from muster.engine.tools import Tools
from muster.engine.trying import Asker, NotThere
from muster.store.base import Advance, Page

Writing = tuple[Awaitable[int], Sequence[tuple[int, Ended]]]


class Collector:
    """Takes a batch from ended to collected."""

    def __init__(
        self,
        tools: Tools,
        *,
        asker: Asker,
        dismisser: Dismisser,
        resolver: Resolver,
        waiters: Waiters,
        spool: Path,
    ) -> None:
        self._store, self._directory, self._clock = tools.store, tools.directory, tools.clock
        self._kill, self._patience, self._timeouts = tools.kill, tools.patience, tools.timeouts
        self._asker, self._dismisser, self._resolver = asker, dismisser, resolver
        self._waiters, self._spool = waiters, spool

    async def __call__(self, batch: Batch, until: float) -> None:
        """Read all results and end the batch; what is missing then has an outcome too."""
        if not await self._store.batches.waiting(batch.id, -1, 1):  # whoever settled the last page died over it
            self._spooling(batch).clear()
            await self._finish(batch, Shortfall.NONE)
            return
        agent = self._directory.reopen(batch.desk)
        shortfall = Shortfall.NONE
        odds: list[Odd] = []
        for _ in range(self._patience.downloads):
            progress = await self._with_sources(agent, batch, until)
            if progress is None:
                return
            odds = []
            for source in progress.sources:
                odd = await self._read_source(agent, batch, source, until)
                if odd is None:
                    return  # the time is over, or it was not ours
                odds.append(odd)
            lost = sum(odd.answered for odd in odds) < (progress.answered or 0)
            # Answers that were lost on the way may have been paid.
            shortfall = Shortfall.NONE if lost else progress.shortfall
            cut = lost or any(odd.unreadable for odd in odds)
            if not cut or not await self._store.batches.waiting(batch.id, -1, 1):
                break  # else perhaps it is whole the next time
        for odd in filter(None, odds):
            await self._tell(batch, odd)
        await self._finish(batch, shortfall)

    async def _with_sources(self, agent: BatchAgent, batch: Batch, until: float) -> Progress | None:
        """Ask where the results are; an ended batch without an address may get one, but not for ever."""

        async def look() -> Progress:
            progress = await agent.poll(batch.provider_id or "", self._timeouts)
            if not progress.sources and (progress.shortfall is Shortfall.NONE or progress.answered):
                raise NotThere(f"batch {batch.provider_id} has ended and names no results")
            return progress

        return await self._asker.ask(look, f"the address of the results of batch {batch.provider_id}", until)

    async def _read_source(self, agent: BatchAgent, batch: Batch, source: str, until: float) -> Odd | None:
        """Bring one source of results into the store; None when the time is over or the batch is not ours."""
        spool = self._spooling(batch)
        try:
            download = partial(self._download, agent, batch, source, spool)
            odd = await self._asker.ask(download, f"the results of batch {batch.provider_id}", until)
            if odd is None or (batch.adopted and not await self._confirm(batch, spool, odd)):
                return None
            await self._settle_pages(agent, batch, spool, odd)
        finally:
            spool.clear()
        return odd

    def _spooling(self, batch: Batch) -> Spool:
        return Spool(self._spool / batch.id, places=batch.requests, page=PAGE)

    async def _download(self, agent: BatchAgent, batch: Batch, source: str, spool: Spool) -> Odd:
        """Write the results to disk, sorted by members; lines that are of no member are put aside."""
        odd, splitter = Odd(), Splitter()
        spool.begin()
        async with aclosing(agent.results(source, self._timeouts)) as chunks:
            async for chunk in chunks:
                self._kill.reach("batch.downloading")
                _sort(agent, batch, splitter.feed(chunk), spool, odd)
        _sort(agent, batch, [splitter.rest()], spool, odd)
        spool.finish()
        return odd

    async def _confirm(self, batch: Batch, spool: Spool, odd: Odd) -> bool:
        """Say whether an adopted batch is ours, by its custom ids."""
        if spool.lines:
            await self._advance(replace(batch, adopted=False, note="its custom ids confirm it"), "batch.confirmed")
        elif odd.unknown:
            await self._resolver.reject(batch, batch.provider_id or "", BatchState.ENDED)
            return False
        return True

    async def _settle_pages(self, agent: BatchAgent, batch: Batch, spool: Spool, odd: Odd) -> None:
        """Settle page after page; while one is being written, the next is read."""
        before: Writing | None = None
        for first, after, lines in spool.pages():
            reading = Reading(agent, batch, wanted=self._waiters.places(batch.id), odd=odd)
            members = await self._store.batches.members(batch.id, first, after)
            # Queued at once, so that the writer never waits for us.
            written = self._store.batch_book.settle(reading.page(lines, members, self._clock.now()))
            await asyncio.sleep(0)  # lets the writer begin
            await self._hand_out(batch, before)
            before = written, reading.outcomes
        await self._hand_out(batch, before)

    async def _hand_out(self, batch: Batch, writing: "Writing | None") -> None:
        """Wait until a page is written, and then give its outcomes to those who wait for them."""
        if writing is None:
            return
        written, outcomes = writing
        await written
        self._kill.reach("batch.page")
        for place, outcome in outcomes:
            self._waiters.answer(batch.id, place, outcome)

    async def _tell(self, batch: Batch, odd: Odd) -> None:
        page = Page(batch=batch.id, settlements=(), lines=odd.lines, at=self._clock.now())
        await self._store.batch_book.settle(page)
        await self._advance(replace(batch, adopted=False, note=str(odd)), "batch.odd")

    async def _finish(self, batch: Batch, shortfall: Shortfall) -> None:
        """Give the members without a line their outcome, and close the batch."""
        fresh, lacking = await self._store.batches.get(batch.id) or batch, 0
        if fresh.tally.over < batch.requests:
            lacking = await self._dismisser.settle(batch, lambda _: missing(batch, shortfall))
            fresh = await self._store.batches.get(batch.id) or batch
        tally = fresh.tally
        note = (
            f"{tally.succeeded} succeeded, {tally.errored} errored, {tally.canceled} canceled, "
            f"{tally.expired} expired, {tally.uncertain} uncertain; {lacking} had no result"
        )
        done = replace(fresh, state=BatchState.COLLECTED, collected_at=self._clock.now(), note=note)
        await self._advance(done, "batch.collected")
        self._kill.reach("batch.collected")

    async def _advance(self, batch: Batch, kind: str) -> None:
        await self._store.batch_book.advance(
            Advance(batch=batch, was=BatchState.ENDED, kind=kind, at=self._clock.now())
        )


def _sort(agent: BatchAgent, batch: Batch, lines: Sequence[bytes], spool: Spool, odd: Odd) -> None:
    """Put lines where their members are."""
    names = batch.names
    for line in lines:
        place = names.glance(line)  # a wrong guess comes to light when the page is read
        if place is not None and place < batch.requests:
            spool.add(place, line)
        elif not line.isspace():
            _read_and_sort(agent, batch, line, spool, odd)


def _read_and_sort(agent: BatchAgent, batch: Batch, line: bytes, spool: Spool, odd: Odd) -> None:
    read = agent.spelling.read(line)
    place = None if read is None else batch.names.place(read[0])
    if place is None or place >= batch.requests:
        odd.keep(line, None if read is None else read[0])
    else:
        spool.add(place, line)
