"""Collecting: results are spooled to disk, read line by line, and settled a thousand to a transaction.

A result that was settled before is passed over, so collecting can be broken off and begun again at any point.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

from muster.agents.base import BatchAgent
from muster.domain.batch import Batch, BatchProgress, BatchState, Shortfall
from muster.domain.errors import TryLater, WireError
from muster.engine.batches.base import Asker, BatchServices, NotThere, PollDelays
from muster.engine.batches.dismiss import PAGE, Dismisser
from muster.engine.batches.follow import unread
from muster.engine.batches.parked_calls import Waiters
from muster.engine.batches.resolve import rejection
from muster.engine.batches.results import Ended, OddLines, ResultReader, Splitter, Spool, missing
from muster.store.base import Advance, ResultPage

MEMBER_BYTES = 64 * 1024  # around an answer in a line of results, at most
TOKEN_BYTES = 64  # of an answer as JSON, at most and on average

Writing = tuple[Awaitable[int], Sequence[tuple[int, Ended]]]


class Collector:
    """Takes a batch from ended to collected."""

    def __init__(
        self,
        services: BatchServices,
        *,
        asker: Asker,
        dismisser: Dismisser,
        waiters: Waiters,
        spool: Path,
    ) -> None:
        self._store, self._directory, self._clock = services.store, services.directory, services.clock
        self._kill, self._patience, self._timeouts = services.kill, services.patience, services.timeouts
        self._random = services.random
        self._asker, self._dismisser = asker, dismisser
        self._waiters, self._spool = waiters, spool

    async def __call__(self, batch: Batch, until: float) -> None:
        """Read all results and end the batch; what is missing then has an outcome too.

        Answers that the provider counts and that are not in its results are paid for: their members wait, and the
        results are fetched again after growing pauses.
        """
        delays, fewest = PollDelays(self._patience, self._random), batch.requests
        for download in count(1):
            with self._waiters.answering():  # but not while it pauses: others need not wait for that
                lacking = await self._collect(batch, until, fewest, last=download >= self._patience.downloads)
            if lacking is None:
                return
            fewest = lacking or fewest
            delay = delays.delay()
            if self._clock.monotonic() + delay >= until:
                raise unread(batch, _flaw(lacking))
            await self._clock.sleep(delay)

    async def _collect(self, batch: Batch, until: float, fewest: int, *, last: bool) -> int | None:
        """Read the results once; returns how many answers are lacking when they must be fetched again.

        Those are not more than before, also when this time the results break off earlier.
        """
        if not await self._waiting(batch):  # whoever settled the last page died over it
            self._spooling(batch).clear()
            await self._finish(batch, Shortfall.NONE)
            return None
        agent = self._directory.reopen(batch.endpoint)
        progress = await self._with_sources(agent, batch, until)
        odds = None if progress is None else await self._read_sources(agent, batch, progress, until)
        if progress is None or odds is None:
            return None  # the time is over, or it was not ours
        lacking, waiting = await self._lacking(batch, progress, odds), await self._waiting(batch)
        cut = waiting and any(odd.cut or odd.endless for odd in odds)  # the rest may hold what is lacking
        unreadable = waiting and any(odd.unreadable for odd in odds)
        if lacking or cut or (unreadable and not last):
            await self._note_lacking(batch, min(lacking, fewest))
            return min(lacking, fewest)
        for odd in filter(None, odds):
            await self._tell(batch, odd)
        await self._finish(batch, progress.shortfall)
        return None

    async def _waiting(self, batch: Batch) -> bool:
        """Return whether any member has no outcome yet."""
        return bool(await self._store.batches.waiting(batch.id, -1, 1))

    async def _lacking(self, batch: Batch, progress: BatchProgress, odds: Sequence[OddLines]) -> int:
        """Return how many answers the provider counts that were never in its results."""
        if not await self._waiting(batch):
            return 0
        fresh = await self._store.batches.get(batch.id) or batch
        read = max(sum(odd.answered for odd in odds), fresh.tally.succeeded)
        if progress.answered is not None and 0 <= progress.answered <= batch.requests:
            return max(0, progress.answered - read)
        # A provider that counts nothing, or nothing that can be right: after a batch that ran to its end every member
        # is taken for answered.
        whole = progress.shortfall is Shortfall.NONE
        return max(0, batch.requests - read - sum(odd.failed for odd in odds)) if whole else 0

    async def _note_lacking(self, batch: Batch, lacking: int) -> None:
        await self._note_trouble(batch, f"its results {_flaw(lacking)}; they are fetched again", "batch.short")

    async def _note_trouble(self, batch: Batch, note: str, kind: str) -> None:
        fresh = await self._store.batches.get(batch.id) or batch
        if fresh.note != note or not fresh.stalled:
            await self._advance(replace(fresh, epoch=batch.epoch, note=note, stalled=True), kind)

    async def _note_unread(self, batch: Batch, error: WireError) -> None:
        """Store once that the provider does not deliver; what was lacking before stays told."""
        fresh = await self._store.batches.get(batch.id) or batch
        if not fresh.stalled:
            note = f"its results cannot be read: {error.message}; they are fetched again"
            await self._note_trouble(fresh, note, "batch.unread")

    async def _read_sources(
        self, agent: BatchAgent, batch: Batch, progress: BatchProgress, until: float
    ) -> Sequence[OddLines] | None:
        odds = []
        for source in progress.sources:
            odd = await self._read_source(agent, batch, source, until)
            if odd is None:
                return None
            odds.append(odd)
        return odds

    async def _with_sources(self, agent: BatchAgent, batch: Batch, until: float) -> BatchProgress | None:
        """Ask where the results are; an ended batch without an address may get one, but not for ever."""

        async def look() -> BatchProgress:
            progress = await agent.poll(batch.provider_id or "", self._timeouts)
            if not progress.sources and (progress.shortfall is Shortfall.NONE or progress.answered):
                raise NotThere(f"batch {batch.provider_id} has ended without results")
            return progress

        what, trouble = f"the address of the results of batch {batch.provider_id}", partial(self._note_unread, batch)
        return await self._asker.ask(look, what, until, trouble)

    async def _read_source(self, agent: BatchAgent, batch: Batch, source: str, until: float) -> OddLines | None:
        """Bring one source of results into the store; None when the time is over or the batch is not ours."""
        spool = self._spooling(batch)
        try:
            download = partial(self._download, agent, batch, source, spool, until)
            what, trouble = f"the results of batch {batch.provider_id}", partial(self._note_unread, batch)
            odd = await self._asker.ask(download, what, until, trouble)
            if odd is None or (batch.adopted and not await self._confirm(batch, spool, odd)):
                return None
            await self._settle_pages(agent, batch, spool, odd)
        finally:
            spool.clear()
        return odd

    def _spooling(self, batch: Batch) -> Spool:
        return Spool(self._spool / batch.id, places=batch.requests, page=PAGE)

    async def _download(self, agent: BatchAgent, batch: Batch, source: str, spool: Spool, until: float) -> OddLines:
        """Write the results to disk, sorted by members; lines that are of no member are put aside."""
        odd, splitter, received = OddLines(), Splitter(), 0
        spool.begin()
        try:
            async with aclosing(agent.results(source, self._timeouts)) as chunks:
                async for chunk in chunks:
                    self._kill.reach("batch.downloading")
                    received += len(chunk)
                    if await self._too_long(batch, received) or self._clock.monotonic() >= until:
                        odd.endless = received
                        break
                    _sort(agent, batch, splitter.feed(chunk), spool, odd)
        except TryLater:
            if not spool.lines:
                raise
            odd.cut = True  # what arrived is settled before the next try
        _sort(agent, batch, [splitter.rest()], spool, odd)
        spool.finish()
        return odd

    async def _too_long(self, batch: Batch, received: int) -> bool:
        """Return whether results are longer than the answers that were asked for can be."""
        frame = MEMBER_BYTES * batch.requests
        if received <= frame:  # mostly: so nobody has to add anything up
            return False
        return received > frame + TOKEN_BYTES * await self._store.batches.max_tokens(batch.id)

    async def _confirm(self, batch: Batch, spool: Spool, odd: OddLines) -> bool:
        """Return whether an adopted batch is ours, by its custom ids."""
        if spool.lines:
            await self._advance(replace(batch, adopted=False, note="its custom ids confirm it"), "batch.confirmed")
        elif odd.unknown:
            await self._advance(replace(batch, **rejection(batch, batch.provider_id or "")), "batch.rejected")
            return False
        return True

    async def _settle_pages(self, agent: BatchAgent, batch: Batch, spool: Spool, odd: OddLines) -> None:
        """Settle page after page; while one is being written, the next is read."""
        before: Writing | None = None
        for first, after, lines in spool.pages():
            reading = ResultReader(agent, batch, wanted=self._waiters.places(batch.id), odd=odd)
            members = await self._store.batches.members(batch.id, first, after)
            # Queued at once, so that the writer never waits for us.
            written = self._store.batches.settle(reading.page(lines, members, self._clock.now()))
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

    async def _tell(self, batch: Batch, odd: OddLines) -> None:
        page = ResultPage(batch=batch.id, settlements=(), lines=odd.lines, at=self._clock.now())
        await self._store.batches.settle(page)
        await self._advance(replace(batch, adopted=False, note=str(odd)), "batch.odd")

    async def _finish(self, batch: Batch, shortfall: Shortfall) -> None:
        """Settle the members without a line, and close the batch."""
        fresh, lacking = await self._store.batches.get(batch.id) or batch, 0
        if fresh.tally.over < batch.requests:
            lacking = await self._dismisser.settle(batch, lambda _: missing(batch, shortfall))
            fresh = await self._store.batches.get(batch.id) or batch
        tally = fresh.tally
        note = (
            f"{tally.succeeded} succeeded, {tally.errored} errored, {tally.canceled} canceled, "
            f"{tally.expired} expired, {tally.uncertain} uncertain; {lacking} had no result"
        )
        done = replace(fresh, state=BatchState.COLLECTED, collected_at=self._clock.now(), note=note, stalled=False)
        await self._advance(done, "batch.collected")
        self._kill.reach("batch.collected")

    async def _advance(self, batch: Batch, kind: str) -> None:
        await self._store.batches.advance(Advance(batch=batch, was=BatchState.ENDED, kind=kind, at=self._clock.now()))


def _flaw(lacking: int) -> str:
    """Return what is wrong with results that must be fetched again."""
    if not lacking:
        return "break off"
    return "lack 1 answer" if lacking == 1 else f"lack {lacking} answers"


def _sort(agent: BatchAgent, batch: Batch, lines: Sequence[bytes], spool: Spool, odd: OddLines) -> None:
    """Put lines where their members are."""
    names = batch.names
    for line in lines:
        place = names.glance(line)  # a wrong guess comes to light when the page is read
        if place is not None and place < batch.requests:
            odd.duplicates += not spool.add(place, line)
        elif not line.isspace():
            _read_and_sort(agent, batch, line, spool, odd)


def _read_and_sort(agent: BatchAgent, batch: Batch, line: bytes, spool: Spool, odd: OddLines) -> None:
    read = agent.format.read(line)
    place = None if read is None else batch.names.place(read[0])
    if place is None or place >= batch.requests:
        odd.keep(line, None if read is None else read[0])
    else:
        odd.duplicates += not spool.add(place, line)
