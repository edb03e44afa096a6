"""Handing a planned batch in: the right to send is claimed first, the create leaves once, and its outcome is stored.

Every write carries the claim. Once one is refused, another process decides about this batch, and nothing more is sent.
"""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

from muster.agents.base import BatchAgent, Parcel
from muster.domain.batch import Batch, BatchState
from muster.domain.errors import Conflict, OutcomeUnknown, Paid, ProviderFault, TryLater, WireError
from muster.engine.claims import Claims
from muster.engine.dismissing import Dismisser
from muster.engine.resolving import Resolver
from muster.engine.tools import Tools
from muster.engine.trying import Pulse

LOOK_SECONDS = 1.0


class Sender:
    """Takes a batch from planned to running, or to refused."""

    def __init__(self, tools: Tools, *, claims: Claims, dismisser: Dismisser, resolver: Resolver) -> None:
        self._store, self._directory, self._clock = tools.store, tools.directory, tools.clock
        self._random, self._kill, self._patience = tools.random, tools.kill, tools.patience
        self._timeouts = tools.create_timeouts
        self._claims, self._dismisser, self._resolver = claims, dismisser, resolver

    async def __call__(self, batch: Batch, until: float) -> None:
        """Send the batch; refusals that pass are waited out."""
        if batch.cancel_requested:
            await self._dismisser.cancel(batch, "it was canceled before it was sent")
            return
        agent = self._directory.reopen(batch.desk)
        pulse = Pulse(self._patience, self._random)
        while self._clock.monotonic() < until:
            fresh = await self._store.batches.get(batch.id)
            if fresh is None or fresh.state is not BatchState.PLANNED or fresh.cancel_requested:
                return  # another process sends it, or it is not to be sent any more
            # Where the provider keeps no word of ours with a batch, two unresolved ones could not be told apart.
            claimed = await self._claims.take(fresh, alone=fresh.desk.kind == "anthropic")
            if claimed is None:
                await self._wait_for_others(fresh, until)
                continue
            self._kill.reach("batch.claimed")
            try:
                delay = await self._claims.keep(claimed, self._submit(agent, claimed, pulse))
            except Conflict:
                return  # another process has claimed it, and decides what becomes of it
            if delay is None:
                return
            await self._clock.sleep(delay)

    async def _wait_for_others(self, batch: Batch, until: float) -> None:
        """Wait until no other create of this account is unresolved; one that nobody is at is resolved here."""
        for other in await self._store.batches.select((BatchState.SENT,), limit=1000):
            if other.desk.account == batch.desk.account and other.id != batch.id:
                await self._resolver.if_unclaimed(other, until)
        await self._store.changes.wait(LOOK_SECONDS)

    async def _submit(self, agent: BatchAgent, claimed: Batch, pulse: Pulse) -> float | None:
        """Create the batch; returns the seconds to wait when nothing was created and it is worth another try."""
        try:
            provider_id = await agent.submit(self._parcel(claimed), self._timeouts)
        except WireError as error:
            return await self._failed(claimed, error, pulse)
        self._kill.reach("batch.created")
        if provider_id in await self._store.batches.known(claimed.desk.account):
            note = f"nobody knows whether it was created: the provider gave it the id of another batch, {provider_id}"
            await self._claims.change(claimed, "batch.unclear", note=note)
            return None
        try:
            await self._claims.change(
                claimed,
                "batch.submitted",
                state=BatchState.RUNNING,
                provider_id=provider_id,
                submitted_at=self._clock.now(),
                note=f"the provider took it as {provider_id}",
            )
        except Conflict:
            await self._cancel_if_given_up(agent, claimed, provider_id)
            raise
        self._kill.reach("batch.confirmed")
        return None

    async def _cancel_if_given_up(self, agent: BatchAgent, claimed: Batch, provider_id: str) -> None:
        """Cancel a batch that somebody gave up while it was being created: nobody waits for its results any more."""
        fresh = await self._store.batches.get(claimed.id)
        if fresh is not None and fresh.state is BatchState.ABANDONED:
            with contextlib.suppress(WireError):  # its members are in the books as uncertain in any case
                await agent.cancel(provider_id, self._timeouts)

    async def _failed(self, claimed: Batch, error: WireError, pulse: Pulse) -> float | None:
        fresh = await self._store.batches.get(claimed.id) or claimed
        created = fresh.desk.kind != "openai" or fresh.file is not None  # else it got no further than its upload
        if created and (isinstance(error, OutcomeUnknown | ProviderFault) or error.paid is Paid.UNKNOWN):
            note = f"nobody knows whether it was created: {error.message}"
            await self._claims.change(claimed, "batch.unclear", note=note)
            return None
        if isinstance(error, TryLater):
            note = f"it was not taken and is tried again: {error.message}"
            await self._claims.change(claimed, "batch.put_back", state=BatchState.PLANNED, sent_at=None, note=note)
            return pulse.delay(error.retry_after)
        await self._dismisser.refuse(replace(fresh, epoch=claimed.epoch), error, BatchState.SENT)
        return None

    def _parcel(self, claimed: Batch) -> Parcel:
        async def remember(file: str) -> None:
            # Refused, this ends the submission: the create must not leave without its claim.
            await self._claims.change(claimed, "batch.uploaded", file=file, note=f"its requests are uploaded as {file}")

        def pieces() -> AsyncIterator[bytes]:
            return self._store.batches.bodies(claimed.id)

        return Parcel(
            id=claimed.id,
            requests=claimed.requests,
            size=claimed.bytes,
            pieces=pieces,
            file=claimed.file,
            on_file=remember,
        )
