"""Collecting: results are spooled to disk, read line by line, and settled a thousand to a transaction.

A result that was settled before is passed over, so collecting can be broken off and begun again at any point.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from muster.agents.base import BatchAgent, Directory
from muster.domain.agent import Timeouts
from muster.domain.batch import (
    Answered,
    Batch,
    BatchState,
    Dropped,
    Errored,
    MemberResult,
    Progress,
    Seated,
    Shortfall,
    place_of,
)
from muster.domain.call import Reply
from muster.domain.entry import AttemptState, Failed, Replied, Settlement
from muster.domain.errors import BatchCanceled, Expired, OutcomeUnknown, StoreFailed, WireError
from muster.domain.money import NOTHING
from muster.engine.clock import Clock
from muster.engine.dismissing import PAGE, Dismisser, fate_of, settlement_of
from muster.engine.killpoints import KillPoints
from muster.engine.parking import Waiters
from muster.engine.patience import Patience
from muster.engine.resolving import Resolver
from muster.engine.trying import Asker, NotThere
from muster.store.base import Advance, Page, Store

LONGEST_LINE = 64 * 1024 * 1024
ODD_SAMPLES = 5


@dataclass(slots=True)
class Odd:
    """What was strange about the lines."""

    unreadable: int = 0
    unknown: list[str] = field(default_factory=list)
    duplicates: int = 0

    def note(self) -> dict[str, object] | None:
        """Give it for an event, if there is anything."""
        if not (self.unreadable or self.unknown or self.duplicates):
            return None
        return {
            "unreadable": self.unreadable,
            "unknown": len(self.unknown),
            "unknown_ids": self.unknown[:ODD_SAMPLES],
            "duplicates": self.duplicates,
        }


class Collector:
    """Takes a batch from ended to collected."""

    def __init__(
        self,
        *,
        store: Store,
        directory: Directory,
        clock: Clock,
        kill: KillPoints,
        patience: Patience,
        timeouts: Timeouts,
        asker: Asker,
        dismisser: Dismisser,
        resolver: Resolver,
        waiters: Waiters,
        spool: Path,
    ) -> None:
        self._store, self._directory, self._clock, self._kill = store, directory, clock, kill
        self._patience, self._timeouts, self._asker = patience, timeouts, asker
        self._dismisser, self._resolver, self._waiters = dismisser, resolver, waiters
        self._spool = spool

    async def __call__(self, batch: Batch, until: float) -> None:
        """Read all results and end the batch; what is missing then has an outcome too."""
        agent = self._directory.reopen(batch.desk)
        shortfall = Shortfall.NONE
        for turn in range(1, self._patience.downloads + 1):
            progress = await self._with_sources(agent, batch, until)
            if progress is None:
                return
            shortfall = progress.shortfall
            unreadable = 0
            for source in progress.sources:
                read = await self._read_source(agent, batch, source, until)
                if read is None:
                    return  # the time is over, or it was not ours
                unreadable += read.unreadable
            left = await self._store.batches.waiting(batch.id, -1, 1)
            if not (left and unreadable) or turn == self._patience.downloads:
                break
        await self._finish(batch, shortfall)

    async def _with_sources(self, agent: BatchAgent, batch: Batch, until: float) -> Progress | None:
        """Ask where the results are; an ended batch without an address may get one, but not for ever."""

        async def look() -> Progress:
            progress = await agent.poll(batch.provider_id or "", self._timeouts)
            if not progress.sources and progress.shortfall is Shortfall.NONE:
                raise NotThere(f"batch {batch.provider_id} has ended and names no results")
            return progress

        return await self._asker.ask(look, f"the address of the results of batch {batch.provider_id}", until)

    async def _read_source(self, agent: BatchAgent, batch: Batch, source: str, until: float) -> Odd | None:
        path = self._spool / f"{batch.id}.jsonl"
        downloaded = await self._asker.ask(
            lambda: self._download(agent, source, path), f"the results of batch {batch.provider_id}", until
        )
        if downloaded is None:
            return None
        try:
            return await self._settle_file(agent, batch, path)
        finally:
            path.unlink(missing_ok=True)

    async def _download(self, agent: BatchAgent, source: str, path: Path) -> int:
        """Write the results to disk; a download that breaks is begun anew."""
        size = 0
        with _spooling(path) as file:
            async for chunk in agent.results(source, self._timeouts):
                self._kill.reach("batch.downloading")
                size += _write(file, chunk)
        return size

    async def _settle_file(self, agent: BatchAgent, batch: Batch, path: Path) -> Odd | None:
        total = Odd()
        confirmed = not batch.adopted
        for lines in pages(path):
            odd = Odd()
            results = sort_lines(agent, batch, lines, odd)
            if results and not confirmed:
                confirmed = True
                await self._advance(replace(batch, adopted=False, note="its custom ids confirm it"), "batch.confirmed")
            await self._settle_page(agent, batch, results, odd)
            total.unreadable += odd.unreadable
            total.unknown += odd.unknown[:ODD_SAMPLES]
            await asyncio.sleep(0)
        if not confirmed and total.unknown:
            await self._resolver.reject(batch, batch.provider_id or "", BatchState.ENDED)
            return None
        return total

    async def _settle_page(
        self, agent: BatchAgent, batch: Batch, results: "dict[int, tuple[bytes, MemberResult]]", odd: Odd
    ) -> None:
        seated = await self._store.batches.members(batch.id, list(results))
        odd.unknown += [f"place {place}" for place in results.keys() - {member.place for member in seated}]
        waiting = [member for member in seated if member.state is AttemptState.PARKED]
        odd.duplicates += len(seated) - len(waiting)
        outcomes = [(member, self._outcome(agent, batch, member, results[member.place][1])) for member in waiting]
        now = self._clock.now()
        settlements = [_settlement(batch, member, outcome, now) for member, outcome in outcomes]
        lines = b"\n".join([results[member.place][0] for member in waiting])
        page = Page(batch=batch.id, settlements=settlements, lines=lines or None, at=now, note=odd.note())
        await self._store.batch_book.settle(page)
        self._kill.reach("batch.page")
        for member, outcome in outcomes:
            self._waiters.answer(batch.id, member.place, outcome)

    def _outcome(self, agent: BatchAgent, batch: Batch, member: Seated, result: MemberResult) -> "Reply | WireError":
        match result:
            case Errored(error=error):
                return error
            case Dropped(why=why):
                return dropped(batch, why)
            case Answered(body=body):
                try:
                    reply = agent.spelling.decode(body, batch.tariffs[member.agent], member.size, member.max_tokens)
                except WireError as error:
                    return error
                since = batch.submitted_at or batch.created_at
                return reply.finished(member.attempt.n, 0.0, max(0.0, (batch.ended_at or since) - since))

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


def sort_lines(
    agent: BatchAgent, batch: Batch, lines: list[bytes], odd: Odd
) -> "dict[int, tuple[bytes, MemberResult]]":
    """Read lines and sort them by place; the first result of a member counts."""
    results: dict[int, tuple[bytes, MemberResult]] = {}
    for line in lines:
        read = agent.spelling.read(line)
        if read is None:
            odd.unreadable += 1
            continue
        name, result = read
        place = place_of(name, batch.nonce, batch.id)
        if place is None:
            odd.unknown.append(name[:80])
        elif place in results:
            odd.duplicates += 1
        else:
            results[place] = (line, result)
    return results


def pages(path: Path) -> Iterator[list[bytes]]:
    """Give the lines of a file, some at a time."""
    page: list[bytes] = []
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            if line := line.strip():
                page.append(line)
            if len(page) >= PAGE:
                yield page
                page = []
    if page:
        yield page


def dropped(batch: Batch, why: Shortfall) -> WireError:
    """Say that a batch did not come to a member."""
    if why is Shortfall.EXPIRED:
        return Expired(f"batch {batch.id} ran out of time before it came to this call")
    return BatchCanceled(f"batch {batch.id} was canceled before it came to this call")


_ENDED_AS = {Expired: AttemptState.EXPIRED, BatchCanceled: AttemptState.CANCELED}


def _settlement(batch: Batch, member: Seated, outcome: "Reply | WireError", at: float) -> Settlement:
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


def _spooling(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path.open("wb")
    except OSError as error:
        raise StoreFailed(f"results cannot be spooled to {path}: {error.strerror}") from error


def _write(file: BinaryIO, chunk: bytes) -> int:
    try:
        return file.write(chunk)
    except OSError as error:
        raise StoreFailed(f"results cannot be spooled to {file.name}: {error.strerror}") from error
