"""Handing a planned batch in: the right to send is claimed first, the create leaves once, and its outcome is stored.

Every write carries the claim. Once one is refused, another process decides about this batch, and nothing more is sent.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from itertools import islice

from muster.agents.base import BatchAgent, BatchUpload
from muster.domain.batch import Batch, BatchLimits, BatchState, Member, Names, Plan, Tariff, confusable
from muster.domain.call import MIN_CACHED_PREFIX, Request
from muster.domain.errors import (
    CallFailed,
    Conflict,
    InvalidRequest,
    MusterError,
    OutcomeUnknown,
    Overloaded,
    Paid,
    ProviderFault,
    RateLimited,
    TryLater,
    Unreachable,
    WireError,
)
from muster.domain.ids import BatchId
from muster.domain.media import filled_size
from muster.engine.base.media import MediaFiles
from muster.engine.batches.base import BatchServices, PollDelays
from muster.engine.batches.dismiss import Dismisser
from muster.engine.batches.parked_calls import Parked
from muster.engine.batches.resolve import BatchResolver, Claims, rejection, unclear
from muster.store.base import Advance, BatchTable

LOOK_SECONDS = 1.0
USUAL_CREATE_SECONDS = 5.0  # after which whoever waits for another create says so
MAX_UNRESOLVED = 1000  # creates that are looked through
PASSING = (RateLimited, Overloaded, Unreachable)  # refusals of an upload that say nothing about it


class Sender:
    """Takes a batch from planned to running, or to refused."""

    def __init__(
        self, services: BatchServices, *, claims: Claims, dismisser: Dismisser, resolver: BatchResolver
    ) -> None:
        self._store, self._directory, self._clock = services.store, services.directory, services.clock
        self._random, self._kill, self._patience = services.random, services.kill, services.patience
        self._timeouts = services.create_timeouts
        self._claims, self._dismisser, self._resolver = claims, dismisser, resolver
        self._media = MediaFiles(services.store)

    async def __call__(self, batch: Batch, until: float) -> None:
        """Send the batch; refusals that pass are waited out."""
        if batch.cancel_requested:
            await self._dismisser.cancel(batch, "it was canceled before it was sent")
            return
        agent = self._directory.reopen(batch.endpoint)
        delays = PollDelays(self._patience, self._random)
        while self._clock.monotonic() < until:
            seen = self._store.changes.commits
            fresh = await self._store.batches.get(batch.id)
            if fresh is None or fresh.state is not BatchState.PLANNED or fresh.cancel_requested:
                return  # another process sends it, or it is not to be sent any more
            # Where the provider keeps no word of ours with a batch, two unresolved ones could not be told apart.
            claimed = await self._claims.take(fresh, alone=not agent.labels_batches)
            if claimed is None:
                await self._wait_for_others(agent, fresh, until, seen)
                continue
            self._kill.reach("batch.claimed")
            try:
                delay = await self._claims.keep(claimed, self._submit(agent, claimed, delays))
            except Conflict:
                return  # another process has claimed it, and decides what becomes of it
            if delay is None:
                return
            await self._clock.sleep(delay)

    async def _wait_for_others(self, agent: BatchAgent, batch: Batch, until: float, seen: int) -> None:
        """Wait for creates that this one could be taken for; what no process works on is resolved here."""
        sent = () if agent.labels_batches else await self._store.batches.select((BatchState.SENT,), MAX_UNRESOLVED)
        for other in sent:
            if confusable(batch, other, self._clock.now()):
                await self._note_wait(batch, other)
                await self._resolver.for_another(other, until)
        await self._store.changes.wait(LOOK_SECONDS, seen)

    async def _note_wait(self, batch: Batch, other: Batch) -> None:
        """Store what a batch waits for, unless that is only a create which is just being answered."""
        now = self._clock.now()
        usual = other.grace_until is None and now - (other.sent_at or now) < USUAL_CREATE_SECONDS
        fresh = await self._store.batches.get(batch.id)
        if usual or fresh is None or fresh.state is not BatchState.PLANNED or fresh.waits_for == other.id:
            return
        most = "" if other.grace_until is None else f", for {max(1.0, other.grace_until - now):.0f} s at most"
        alike = "both have as many requests, and the provider's list would not tell them apart"
        note = f"it waits until it is known whether batch {other.id} was created{most}: {alike}"
        waiting = replace(fresh, note=note, stalled=True, waits_for=other.id)
        await self._store.batches.advance(Advance(batch=waiting, was=BatchState.PLANNED, kind="batch.waiting", at=now))

    async def _submit(self, agent: BatchAgent, claimed: Batch, delays: PollDelays) -> float | None:
        """Create the batch; returns the seconds to wait when nothing was created and it is worth another try."""
        try:
            provider_id = await agent.submit(self._upload(claimed), self._timeouts)
        except WireError as error:
            return await self._failed(agent, claimed, error, delays)
        self._kill.reach("batch.created")
        known = await self._store.batches.known(claimed.endpoint)
        if provider_id in known.sure:
            await self._note_unclear(claimed, f"the provider gave it the id of another batch, {provider_id}")
            return None
        if provider_id in known.assumed:
            await self._take_back(claimed, provider_id)
        try:
            await self._claims.change(
                claimed,
                "batch.submitted",
                state=BatchState.RUNNING,
                provider_id=provider_id,
                submitted_at=self._clock.now(),
                stalled=False,
                note=f"the provider took it as {provider_id}",
            )
        except Conflict:
            await self._cancel_if_given_up(agent, claimed, provider_id)
            raise
        self._kill.reach("batch.confirmed")
        return None

    async def _note_unclear(self, claimed: Batch, why: str) -> None:
        await self._claims.change(claimed, "batch.unclear", **unclear(why, self._clock, self._patience))

    async def _take_back(self, claimed: Batch, provider_id: str) -> None:
        """Take an id that was just given to this batch from the one that it was wrongly taken for."""
        for other in await self._store.batches.match(provider_id):
            if other.adopted and other.provider_id == provider_id:
                changes = rejection(other, provider_id, f"it was created for batch {claimed.id}")
                refuted = Advance(
                    batch=replace(other, **changes), was=other.state, kind="batch.rejected", at=self._clock.now()
                )
                await self._store.batches.advance(refuted)

    async def _cancel_if_given_up(self, agent: BatchAgent, claimed: Batch, provider_id: str) -> None:
        """Cancel a batch that was abandoned while it was being created: its results are no longer awaited."""
        fresh = await self._store.batches.get(claimed.id)
        if fresh is not None and fresh.state is BatchState.ABANDONED:
            with contextlib.suppress(WireError):  # its members are in the books as uncertain in any case
                await agent.cancel(provider_id, self._timeouts)

    async def _failed(self, agent: BatchAgent, claimed: Batch, error: WireError, delays: PollDelays) -> float | None:
        fresh = await self._store.batches.get(claimed.id) or claimed
        created = not agent.uploads_file or fresh.file is not None  # else it got no further than its upload
        if created and (isinstance(error, OutcomeUnknown | ProviderFault) or error.paid is Paid.UNKNOWN):
            await self._note_unclear(claimed, error.message)
            return None
        uploads = fresh.uploads + (not created and not isinstance(error, PASSING))
        if isinstance(error, TryLater) and uploads >= self._patience.uploads:
            error = ProviderFault(f"its requests could not be uploaded {uploads} times: {error.message}")
        elif isinstance(error, TryLater):
            tried = f" (upload {uploads} of {self._patience.uploads})" if uploads else ""
            note = f"it was not accepted{tried} and is tried again: {error.message}"
            put_back = {"state": BatchState.PLANNED, "sent_at": None, "uploads": uploads, "stalled": True}
            await self._claims.change(claimed, "batch.put_back", note=note, **put_back)
            return delays.delay(error.retry_after)
        await self._dismisser.refuse(replace(fresh, epoch=claimed.epoch), error, BatchState.SENT)
        return None

    def _upload(self, claimed: Batch) -> BatchUpload:
        async def remember(file: str) -> None:
            # Refused, this ends the submission: the create must not leave without its claim.
            await self._claims.change(claimed, "batch.uploaded", file=file, note=f"its requests are uploaded as {file}")

        def pieces() -> AsyncIterator[bytes]:
            return self._media.fill(self._store.batches.bodies(claimed.id))

        return BatchUpload(
            id=claimed.id,
            requests=claimed.requests,
            size=claimed.bytes,
            pieces=pieces,
            file=claimed.file,
            on_file=remember,
        )


PIECE_BYTES = 1024 * 1024
MIN_SHARERS = 3  # to keep a prefix for an hour costs twice its price, and each other call a tenth: two pay more
YIELD_EVERY = 256  # members between two moments for the rest of the process


@dataclass(slots=True)
class Composition:
    """A batch as it grows."""

    id: BatchId
    nonce: str
    agent: BatchAgent
    most: BatchLimits
    members: list[Member] = field(default_factory=list)
    parked: list[Parked] = field(default_factory=list)
    tariffs: dict[str, Tariff] = field(default_factory=dict)
    refused: list[tuple[Parked, MusterError]] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    bytes: int = 0

    def plan(self, at: float) -> Plan:
        """Return the plan as it is to be stored."""
        return Plan(
            id=self.id,
            endpoint=self.agent.endpoint,
            nonce=self.nonce,
            tariffs=self.tariffs,
            members=self.members,
            bodies=self.pieces,
            bytes=self.bytes,
            at=at,
        )


async def compose(composition: Composition, queue: deque[Parked], at: float, book: BatchTable) -> Composition:
    """Take calls from the queue, oldest first, until the batch is full."""
    batch_format = composition.agent.format
    shared, names = shared_prefixes(queue, composition.most.requests), Names(composition.nonce, composition.id)
    piece = bytearray(batch_format.head)
    size = len(batch_format.head) + len(batch_format.tail)
    while queue and len(composition.members) < composition.most.requests:
        place = len(composition.members)
        try:
            book.check(queue[0].attempt.key, queue[0].text)
            line, member = _spell(composition, queue[0], place, names.name(place), at, cached=_marks(queue[0], shared))
        except MusterError as error:
            composition.refused.append((queue.popleft(), error))
            continue
        except Exception as error:  # one that cannot be written must not take its neighbours along
            composition.refused.append((queue.popleft(), CallFailed(f"the request cannot be written: {error!r}")))
            continue
        sent = filled_size(line, queue[0].request.media) if queue[0].request.has_media else len(line)
        grown = size + sent + (len(batch_format.separator) if place else 0)
        if grown > composition.most.bytes:
            if place:
                break
            composition.refused.append((queue.popleft(), _too_large(sent, composition.most.bytes)))
            continue
        size = grown
        piece += (batch_format.separator if place else b"") + line
        _add(composition, queue.popleft(), member)
        if len(piece) >= PIECE_BYTES:
            composition.pieces.append(await book.pack(bytes(piece)))
            piece.clear()
        elif place % YIELD_EVERY == 0:
            await asyncio.sleep(0)
    composition.pieces.append(await book.pack(bytes(piece) + batch_format.tail))
    composition.bytes = size
    return composition


def _spell(
    composition: Composition, parked: Parked, place: int, name: str, at: float, *, cached: bool
) -> tuple[bytes, Member]:
    body = parked.batching.encode(parked.request, cached)
    return composition.agent.format.member(name, body), parked.member(place, body, at)


def _add(composition: Composition, parked: Parked, member: Member) -> None:
    composition.members.append(member)
    composition.parked.append(parked)
    composition.tariffs[parked.agent] = parked.batching.tariff


def shared_prefixes(queue: deque[Parked], most: int) -> frozenset[str]:
    """Return the long prefixes that enough of the first calls have in common."""
    counts = Counter(prefix for parked in islice(queue, most) if (prefix := prefix_of(parked.request)) is not None)
    return frozenset(prefix for prefix, count in counts.items() if count >= MIN_SHARERS)


def prefix_of(request: Request) -> str | None:
    """Return what stands before that which is asked, if it is long enough to be cached."""
    parts = [repr(request.tools) if request.tools else "", request.system]
    if request.shared:  # another shape of the answer would be another prompt to the provider
        parts += [request.messages[0].text[: request.shared], "" if request.schema is None else repr(request.schema)]
    return "".join(parts) if sum(map(len, parts)) >= MIN_CACHED_PREFIX else None


def _marks(parked: Parked, shared: frozenset[str]) -> bool:
    return parked.cache and bool(shared) and prefix_of(parked.request) in shared


def _too_large(size: int, most: int) -> CallFailed:
    return InvalidRequest(
        f"the request has {size} bytes; the maximum of a whole batch is {most}",
        suggestions=("make the request shorter", "or send it live"),
    )
