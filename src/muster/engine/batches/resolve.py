"""Reconciling: was a batch created whose create was cut off, or whose process died? The provider's own list tells.

Some lists name the input file and our id (`BatchAgent.labels_batches`). Where one names neither, a batch that nobody of
this store knows and that fits in time and count is taken for ours, and its custom ids confirm or refute that when it
ends. How long a batch is looked for is stored with it, so that all processes count the same time; an operator who
reconciles takes a batch over from the worker that looks for it.
"""

import asyncio
import contextlib
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from muster.agents.base import BatchAgent
from muster.domain.agent import Timeouts
from muster.domain.batch import LOOK_AGAIN, RESUBMIT, Batch, BatchState, KnownIds, ListedBatch
from muster.domain.canonical import Json
from muster.domain.errors import (
    BadConfiguration,
    BatchLost,
    BatchOpen,
    CallFailed,
    Conflict,
    LeftWaiting,
    WireError,
)
from muster.domain.ids import BatchId
from muster.domain.run import Driver
from muster.engine.base.clock import Clock
from muster.engine.batches.base import Asker, BatchServices, Patience, PollDelays
from muster.store.base import Advance, BatchClaim

LEASE_SECONDS = 30.0
RENEW_SECONDS = 5.0
STOP_SECONDS = 8.0  # that a process which is told to stop waits for the work under a claim

T = TypeVar("T")


class Claims:
    """Takes, keeps and releases the claims of this process."""

    def __init__(self, services: BatchServices) -> None:
        self._batches, self._clock = services.store.batches, services.clock
        self._driver, self._is_gone = services.driver, services.is_gone
        self.turns: set[BatchId] = set()  # at batches that this process polls or reads: what is spooled is shared

    def holder(self, batch: Batch) -> Driver | None:
        """Return who holds the claim on a batch, unless its lease is over or its process is certainly dead."""
        if batch.driver is None or batch.lease_until <= self._clock.now() or self._is_gone(batch.driver):
            return None
        return batch.driver

    async def take(self, batch: Batch, *, alone: bool = False, by_hand: bool = False) -> Batch | None:
        """Claim a batch that is not held, and return it as it then is; None when that is not possible now.

        By hand, one that a worker only looks for is taken over; the worker is refused from then on.
        """
        if self.holder(batch) is not None and not (by_hand and yields_to_operator(batch)):
            return None
        now = self._clock.now()
        until = now + LEASE_SECONDS
        return await self._batches.claim(
            BatchClaim(batch=batch, driver=self._driver, at=now, until=until, alone=alone, by_hand=by_hand)
        )

    async def keep(self, claimed: Batch, work: Coroutine[Any, Any, T], stop_seconds: float = STOP_SECONDS) -> T:
        """Do the work under a claim that is renewed meanwhile and released afterwards.

        Raises Conflict when the claim is lost. Canceled, the work is given a moment to end: once a create has left,
        its answer is the only sure way to know its outcome.
        """
        task = asyncio.get_running_loop().create_task(work)
        renewal = asyncio.get_running_loop().create_task(self._renew(claimed))
        try:
            await asyncio.wait({task, renewal}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                renewal.result()
                raise lost(claimed)
            return task.result()
        except asyncio.CancelledError:
            await asyncio.wait({task}, timeout=stop_seconds)
            raise
        finally:
            renewal.cancel()
            await _end(task)
            await self._batches.release(claimed)

    async def change(self, claimed: Batch, kind: str, **changes: object) -> Batch:
        """Change a sent batch under the claim and return it; raises Conflict when the claim is lost."""
        stored = await self._batches.get(claimed.id) or claimed
        changed = replace(stored, epoch=claimed.epoch, **changes)  # type: ignore[arg-type]
        advance = Advance(batch=changed, was=BatchState.SENT, kind=kind, at=self._clock.now())
        if not await self._batches.advance(advance):
            raise lost(claimed)
        return changed

    async def _renew(self, claimed: Batch) -> None:
        """Extend the lease again and again; returns when the claim is lost."""
        while True:
            await self._clock.sleep(RENEW_SECONDS)
            if not await self._batches.renew(claimed, self._clock.now() + LEASE_SECONDS):
                return


def yields_to_operator(batch: Batch) -> bool:
    """Return whether whoever holds a batch only looks for it: a create under way is never disturbed."""
    return batch.state is BatchState.SENT and batch.grace_until is not None and not batch.by_hand


def lost(batch: Batch) -> Conflict:
    """Return the error for a batch that another process has claimed."""
    return Conflict(f"another process has claimed batch {batch.id}")


async def _end(task: "asyncio.Task[Any]") -> None:
    """Cancel what is not done, and wait until it is."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # whoever awaited the work has it


SKEW = 300.0  # seconds that the provider's clock may differ from ours
MAX_CREATE_SECONDS = 3600.0  # seconds that a create may take from the moment it was claimed
LOOK_SECONDS = 1.0
MAX_LISTED = 20_000  # batches of a list that are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """This is the one."""

    id: str
    sure: bool  # else its custom ids must confirm it
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Several:
    """Each of these may be the one; their custom ids tell when they end."""

    found: tuple[ListedBatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """It may be one that another batch of this store was taken for; that one's custom ids tell when it ends."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """It is not in the list, or not yet."""


Judgment = Adopt | Several | Assumed | Nothing


def judge(batch: Batch, listed: Sequence[ListedBatch], known: KnownIds, *, labeled: bool) -> Judgment:
    """Decide which batch of the provider's list is ours; in one that is `labeled` ours bears our name."""
    candidates = [found for found in listed if found.id not in known.sure and found.id not in batch.rejected]
    strangers = [found for found in candidates if found.id not in known.assumed]
    for found in strangers:
        if found.label == batch.id or (batch.file is not None and found.file == batch.file):
            return Adopt(id=found.id, sure=True, why="it names our batch or our input file")
    if labeled:
        return Nothing()
    fitting = tuple(found for found in strangers if _fits(batch, found))
    if len(fitting) > 1:
        return Several(found=fitting)
    if not fitting:
        assumed = next((found.id for found in candidates if _fits(batch, found)), None)
        return Nothing() if assumed is None else Assumed(id=assumed)
    why = f"it is the only unknown batch with {batch.requests} requests from that time"
    return Adopt(id=fitting[0].id, sure=False, why=why)


def _fits(batch: Batch, found: ListedBatch) -> bool:
    sent = batch.sent_at or batch.created_at
    in_time = sent - SKEW <= found.created_at <= sent + MAX_CREATE_SECONDS + SKEW
    return in_time and found.requests in (None, batch.requests)


class BatchResolver:
    """Takes a batch whose create is unresolved to running, or back to planned when it cannot have been created."""

    def __init__(self, services: BatchServices, *, claims: Claims, asker: Asker, by_hand: bool = False) -> None:
        self._store, self._directory, self._clock = services.store, services.directory, services.clock
        self._random, self._patience, self._timeouts = services.random, services.patience, services.timeouts
        self._claims, self._asker, self._by_hand = claims, asker, by_hand

    async def for_another(self, batch: Batch, until: float) -> None:
        """Resolve a batch that no process works on and another one waits for, no longer than that has to wait."""
        if self._claims.holder(batch) is None:
            with contextlib.suppress(LeftWaiting, WireError):  # what its own runs are told when they ask
                await self(batch, min(until, self._clock.monotonic() + self._left(batch)))

    async def __call__(self, batch: Batch, until: float) -> None:
        """Look for the batch until it is found, or long enough to say that it is open."""
        seen = self._store.changes.commits
        claimed = await self._claims.take(batch, by_hand=self._by_hand)
        if claimed is None:
            await self._store.changes.wait(LOOK_SECONDS, seen)
            return
        with contextlib.suppress(Conflict):  # another process has claimed it, and decides what becomes of it
            await self._claims.keep(claimed, self._resolve(claimed, until), stop_seconds=0.0)

    def _left(self, batch: Batch) -> float:
        """Return for how many seconds a batch is to be looked for; a shorter grace of this process counts."""
        stored = self._patience.grace if batch.grace_until is None else batch.grace_until - self._clock.now()
        return max(0.0, min(stored, self._patience.grace))

    async def _resolve(self, batch: Batch, until: float) -> None:
        agent = self._directory.reopen(batch.endpoint)
        if agent.uploads_file and batch.file is None:
            note = "its requests were never uploaded, so it cannot have been created"
            put_back = {"state": BatchState.PLANNED, "sent_at": None, "stalled": False}
            await self._claims.change(batch, "batch.put_back", note=note, **put_back)
            return
        if batch.grace_until is None:
            batch = await self._claims.change(batch, "batch.unclear", **unclear(DIED, self._clock, self._patience))
        delays, give_up_at = PollDelays(self._patience, self._random), self._clock.monotonic() + self._left(batch)
        while not await self._is_found(agent, batch, give_up_at, until) and self._clock.monotonic() < until:
            await self._clock.sleep(self._pause(delays, give_up_at, until))
            batch = replace(await self._store.batches.get(batch.id) or batch, epoch=batch.epoch)

    async def _is_found(self, agent: BatchAgent, batch: Batch, give_up_at: float, until: float) -> bool:
        """Look for the batch once, and adopt it if it is found; raises BatchOpen after its grace."""
        judgment = await self._look(agent, batch, until)
        if judgment is not None and UNREAD in batch.note:
            batch = await self._tell(batch, "batch.listed", remarked(batch.note))
        if isinstance(judgment, Several):
            judgment = await self._wait_for_ends(agent, batch, judgment, until)
        if isinstance(judgment, Assumed):
            await self._tell(batch, "batch.undecided", f"{judgment.id} may be it, or another batch of this store")
        if isinstance(judgment, Nothing) and self._clock.monotonic() >= give_up_at:
            raise still_open(await self._note_open(batch))
        if isinstance(judgment, Adopt):
            await self._adopt(batch, judgment)
        return isinstance(judgment, Adopt)

    def _pause(self, delays: PollDelays, give_up_at: float, until: float) -> float:
        """Return how long to wait for the next look; the last one is made when the grace is over."""
        now = self._clock.monotonic()
        pause = min(delays.delay(), max(self._patience.grace / 4, self._patience.poll_first), until - now)
        return max(0.0, min(pause, give_up_at - now) if now < give_up_at else pause)

    async def _note_open(self, batch: Batch) -> Batch:
        """Store once that a batch was looked for long enough."""
        return await self._tell(batch, "batch.open", remarked(batch.note, NOT_LISTED))

    async def _note_unread(self, name: BatchId, epoch: int, error: WireError) -> None:
        """Store once that the provider's list cannot be read; the next one that can be clears it."""
        batch = await self._store.batches.get(name)
        if batch is not None and UNREAD not in batch.note:
            note = remarked(batch.note, f"{UNREAD}: {error.message}")
            await self._tell(replace(batch, epoch=epoch), "batch.unlisted", note)

    async def _tell(self, batch: Batch, kind: str, note: str) -> Batch:
        if batch.note == note and batch.stalled:
            return batch
        return await self._claims.change(batch, kind, note=note, stalled=True)

    async def _look(self, agent: BatchAgent, batch: Batch, until: float) -> Judgment | None:
        since = (batch.sent_at or batch.created_at) - SKEW

        async def read_list() -> list[ListedBatch]:
            listed: list[ListedBatch] = []
            async for found in agent.find(since, self._timeouts):
                listed.append(found)
                if len(listed) >= MAX_LISTED or self._clock.monotonic() >= until:
                    break  # what is not seen is not adopted, and nothing is sent again because of that
            return listed

        what, trouble = f"the list of batches at {batch.endpoint.base_url}", self._note_unread
        listed = await self._asker.ask(read_list, what, until, partial(trouble, batch.id, batch.epoch))
        if listed is None:
            return None
        known = await self._store.batches.known(batch.endpoint)
        return judge(batch, listed, known, labeled=agent.labels_batches)

    async def _adopt(self, batch: Batch, adopt: Adopt) -> None:
        await self._claims.change(
            batch,
            "batch.adopted",
            state=BatchState.RUNNING,
            provider_id=adopt.id,
            adopted=not adopt.sure,
            submitted_at=batch.submitted_at or self._clock.now(),
            stalled=False,
            note=f"{adopt.id} was found in the provider's list and taken for ours: {adopt.why}",
        )

    async def _wait_for_ends(self, agent: BatchAgent, batch: Batch, several: Several, until: float) -> Judgment:
        """Read the first result of those that have ended; what is not ours is rejected for good."""
        ids = ", ".join(found.id for found in several.found)
        batch = await self._tell(
            batch, "batch.undecided", f"any of {ids} may be it; their custom ids will tell when they end"
        )
        for found in several.found:
            if not found.ended:
                continue
            try:
                ours = await self._asker.ask(partial(self._is_ours, agent, batch, found), f"batch {found.id}", until)
            except (BatchLost, BadConfiguration, CallFailed):
                continue  # its results cannot be read; another one may be ours
            if ours is False:
                batch = await self._claims.change(batch, "batch.rejected", **rejection(batch, found.id))
            elif ours:
                return Adopt(id=found.id, sure=True, why="its results carry our custom ids")
        return several

    async def _is_ours(self, agent: BatchAgent, batch: Batch, found: ListedBatch) -> bool | None:
        progress = await agent.poll(found.id, self._timeouts)
        for source in progress.sources:
            name = await first_name(agent, source, self._timeouts)
            if name is not None:
                return batch.names.place(name) is not None
        return None


LIST = "the provider's list"  # begins what is remarked about it in a note
NOT_LISTED = f"{LIST} does not show it"
UNREAD = f"{LIST} cannot be read"
DIED = "its process ended before the provider's answer arrived"


def remarked(note: str, remark: str = "") -> str:
    """Return a note with another remark about the provider's list, or with none."""
    before = note.partition(f"; {LIST}")[0]
    return f"{before}; {remark}" if remark else before


def unclear(why: str, clock: Clock, patience: Patience) -> dict[str, Json]:
    """Return what changes in a batch when its create got no answer: from now on it is looked for."""
    note = f"it is unknown whether it was created: {why}"
    return {"note": note, "stalled": True, "grace_until": clock.now() + patience.grace}


def rejection(batch: Batch, provider_id: str, why: str = "its results carry other custom ids") -> dict[str, Any]:
    """Return what changes in a batch when one of the provider's turns out not to be it: it is looked for again."""
    return {
        "state": BatchState.SENT,
        "provider_id": None,
        "adopted": False,
        "submitted_at": None,
        "ended_at": None,
        "done": None,
        "word": "",
        "rejected": (*batch.rejected, provider_id),
        "stalled": True,
        "note": f"it is unknown whether it was created: {provider_id} is not ours, {why}",
    }


async def first_name(agent: BatchAgent, source: str, timeouts: Timeouts) -> str | None:
    """Read the first name in a source of results, and no more."""
    line = b""
    chunks = agent.results(source, timeouts)
    async for chunk in chunks:
        line += chunk
        while b"\n" in line:
            first, _, line = line.partition(b"\n")
            if (read := agent.format.read(first)) is not None:
                return read[0]
    read = agent.format.read(line) if line else None
    return read[0] if read else None


def still_open(batch: Batch) -> BatchOpen:
    """Return the error for a batch of which it is unknown whether it was created."""
    return BatchOpen(
        f"batch {batch.id} ({batch.requests} requests) was sent, and is not sent again automatically because it may "
        f"have arrived: {batch.note}",
        suggestions=(LOOK_AGAIN, RESUBMIT),
    )
