"""Collecting: results are spooled to disk, read line by line, and settled a thousand to a transaction.

A result that was settled before is passed over, so collecting can be broken off and begun again at any point.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from muster.agents.base import BatchAgent
from muster.domain.batch import (
    Answered,
    Batch,
    BatchState,
    Dropped,
    Errored,
    MemberResult,
    Names,
    Progress,
    Seated,
    Shortfall,
)
from muster.domain.call import Reply, Timings
from muster.domain.entry import AttemptState, Failed, Replied, Settlement
from muster.domain.errors import BatchCanceled, Expired, OutcomeUnknown, WireError
from muster.domain.money import NOTHING
from muster.engine.dismissing import PAGE, Dismisser, fate_of, settlement_of
from muster.engine.parking import Waiters
from muster.engine.resolving import Resolver
from muster.engine.spool import Splitter, Spool
from muster.engine.tools import Tools
from muster.engine.trying import Asker, NotThere
from muster.store.base import Advance, Page

MOST_ODD = 100  # strange lines that are kept
MOST_ODD_BYTES = 100_000  # of each

Ended = Reply | WireError
Writing = tuple[Awaitable[int], list[tuple[Seated, Ended]]]


@dataclass(slots=True)
class Odd:
    """What was strange about the lines of one source."""

    unreadable: int = 0
    unknown: int = 0
    duplicates: int = 0
    answered: int = 0  # not strange: members with an answer
    names: list[str] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)

    def keep(self, line: bytes, name: str | None = None) -> None:
        """Keep a line that belongs to no member."""
        self.unreadable += name is None
        self.unknown += name is not None
        if len(self.lines) < MOST_ODD:
            self.lines.append(line if len(line) <= MOST_ODD_BYTES else line[:MOST_ODD_BYTES] + b"\n")
            self.names += [] if name is None else [name[:80]]

    def __str__(self) -> str:
        shown = f" ({', '.join(self.names[:3])})" if self.names else ""
        return (
            f"{self.unreadable} lines of the results cannot be read, {self.unknown} have unknown ids{shown}, "
            f"{self.duplicates} came twice"
        )

    def __bool__(self) -> bool:
        return bool(self.unreadable or self.unknown or self.duplicates)


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
        for _ in range(self._patience.downloads):
            progress = await self._with_sources(agent, batch, until)
            if progress is None:
                return
            shortfall, unreadable, answered = progress.shortfall, 0, 0
            for source in progress.sources:
                odd = await self._read_source(agent, batch, source, until)
                if odd is None:
                    return  # the time is over, or it was not ours
                unreadable += odd.unreadable
                answered += odd.answered
            if answered < (progress.answered or 0):
                shortfall = Shortfall.NONE  # answers were lost on the way, so what is missing may have been paid
            if not unreadable or not await self._store.batches.waiting(batch.id, -1, 1):
                break  # else perhaps it was cut on the way, and is whole the next time
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
        if odd:
            await self._tell(batch, odd)
        return odd

    def _spooling(self, batch: Batch) -> Spool:
        return Spool(self._spool / batch.id, places=batch.requests, page=PAGE)

    async def _download(self, agent: BatchAgent, batch: Batch, source: str, spool: Spool) -> Odd:
        """Write the results to disk, sorted by members; lines that are of no member are put aside."""
        odd, splitter, names = Odd(), Splitter(), batch.names
        spool.begin()
        async with aclosing(agent.results(source, self._timeouts)) as chunks:
            async for chunk in chunks:
                self._kill.reach("batch.downloading")
                for line in splitter.feed(chunk):
                    _sort(agent, batch, names, line, spool, odd)
        _sort(agent, batch, names, splitter.rest(), spool, odd)
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
            page, outcomes = await self._read_page(agent, batch, (first, after), lines, odd)
            writing = self._store.batch_book.settle(page), outcomes  # queued at once: the writer never waits for us
            await asyncio.sleep(0)  # lets the writer begin
            await self._hand_out(batch, before)
            before = writing
        await self._hand_out(batch, before)

    async def _read_page(
        self, agent: BatchAgent, batch: Batch, places: tuple[int, int], lines: list[bytes], odd: Odd
    ) -> tuple[Page, list[tuple[Seated, Ended]]]:
        results = _results(agent, batch, lines, odd)
        seated = await self._store.batches.members(batch.id, *places)
        waiting = [member for member in seated if member.place in results and member.state is AttemptState.PARKED]
        timings = Timings(waited=batch.seconds)  # parked: no clock of a call or a case goes on
        outcomes = [(member, _outcome(agent, batch, member, results[member.place][1], timings)) for member in waiting]
        now = self._clock.now()
        settlements = [_settlement(batch, member, outcome, now) for member, outcome in outcomes]
        kept = _joined([results[member.place][0] for member in waiting])
        return Page(batch=batch.id, settlements=settlements, lines=kept, at=now), outcomes

    async def _hand_out(self, batch: Batch, writing: "Writing | None") -> None:
        """Wait until a page is written, and then give its outcomes to those who wait for them."""
        if writing is None:
            return
        written, outcomes = writing
        await written
        self._kill.reach("batch.page")
        for member, outcome in outcomes:
            self._waiters.answer(batch.id, member.place, outcome)

    async def _tell(self, batch: Batch, odd: Odd) -> None:
        page = Page(batch=batch.id, settlements=(), lines=_joined(odd.lines), at=self._clock.now())
        await self._store.batch_book.settle(page)
        await self._advance(replace(batch, adopted=False, note=str(odd)), "batch.odd")

    async def _finish(self, batch: Batch, shortfall: Shortfall) -> None:
        """Give the members without a line their outcome, and close the batch."""
        missing = await self._dismisser.settle(batch, lambda _: _missing(batch, shortfall))
        fresh = await self._store.batches.get(batch.id) or batch
        tally = fresh.tally
        note = (
            f"{tally.succeeded} succeeded, {tally.errored} errored, {tally.canceled} canceled, "
            f"{tally.expired} expired, {tally.uncertain} uncertain; {missing} had no result"
        )
        done = replace(fresh, state=BatchState.COLLECTED, collected_at=self._clock.now(), note=note)
        await self._advance(done, "batch.collected")
        self._kill.reach("batch.collected")

    async def _advance(self, batch: Batch, kind: str) -> None:
        await self._store.batch_book.advance(
            Advance(batch=batch, was=BatchState.ENDED, kind=kind, at=self._clock.now())
        )


def _sort(agent: BatchAgent, batch: Batch, names: Names, line: bytes, spool: Spool, odd: Odd) -> None:
    """Put a line where its member is."""
    if not line.strip():
        return
    read = None
    place = names.glance(line)  # when the page is settled the line is read in full, and a wrong guess comes to light
    if place is None:
        read = agent.spelling.read(line)
        place = None if read is None else names.place(read[0])
    if place is None or place >= batch.requests:
        odd.keep(line, None if read is None else read[0])
    else:
        spool.add(place, line)


def _joined(lines: list[bytes]) -> bytes | None:
    return b"".join(lines).removesuffix(b"\n") if lines else None


def _results(agent: BatchAgent, batch: Batch, lines: list[bytes], odd: Odd) -> dict[int, tuple[bytes, MemberResult]]:
    """Read the lines of a page; the first one of a member counts."""
    names = batch.names
    results: dict[int, tuple[bytes, MemberResult]] = {}
    for line in lines:
        read = agent.spelling.read(line)
        place = None if read is None else names.place(read[0])
        if read is None or place is None:
            odd.keep(line, None if read is None else read[0])
        elif place in results:
            odd.duplicates += 1
        else:
            results[place] = (line, read[1])
            odd.answered += isinstance(read[1], Answered)
    return results


def _outcome(agent: BatchAgent, batch: Batch, member: Seated, result: MemberResult, timings: Timings) -> Ended:
    if isinstance(result, Errored):
        return result.error
    if isinstance(result, Dropped):
        return dropped(batch, result.why)
    tariff = batch.tariffs[member.agent]
    try:
        reply = agent.spelling.decode(result.answer, tariff, member.size, member.max_tokens, timings)
    except WireError as error:
        return error
    n = member.attempt.n
    return reply if n == 1 else reply.finished(n, timings.waited, 0.0)


def dropped(batch: Batch, why: Shortfall) -> WireError:
    """Say that a batch did not come to a member."""
    if why is Shortfall.EXPIRED:
        return Expired(f"batch {batch.id} ran out of time before it came to this call")
    return BatchCanceled(f"batch {batch.id} was canceled before it came to this call")


_ENDED_AS = {Expired: AttemptState.EXPIRED, BatchCanceled: AttemptState.CANCELED}


def _settlement(batch: Batch, member: Seated, outcome: Ended, at: float) -> Settlement:
    if isinstance(outcome, WireError):
        failed, _ = fate_of(outcome, _ENDED_AS.get(type(outcome), AttemptState.FAILED))
        return settlement_of(member, failed, at)
    live = batch.tariffs[member.agent].live
    return Settlement(
        attempt=member.attempt,
        outcome=Replied(reply=outcome),
        reserved=member.reserved,
        levels=member.levels,
        at=at,
        live_cost=NOTHING if live is None else live.cost(outcome.usage),
    )


def _missing(batch: Batch, shortfall: Shortfall) -> tuple[Failed, WireError]:
    if shortfall is not Shortfall.NONE:
        error = dropped(batch, shortfall)
        return fate_of(error, _ENDED_AS[type(error)])
    return fate_of(OutcomeUnknown(f"batch {batch.id} ended and gave no result for this call"))
