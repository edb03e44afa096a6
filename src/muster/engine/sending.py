"""Handing a planned batch in: the right to send is taken first, the create leaves once, and its outcome is stored."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from typing import Any

from muster.agents.base import BatchAgent, Parcel
from muster.domain.batch import Batch, BatchState
from muster.domain.errors import OutcomeUnknown, Paid, ProviderFault, TryLater, WireError
from muster.engine.dismissing import Dismisser
from muster.engine.resolving import Resolver
from muster.engine.tools import Tools
from muster.engine.trying import Pulse
from muster.store.base import Advance

LOOK_SECONDS = 1.0
STOP_SECONDS = 8.0  # that a process which is told to stop waits for a create


class Sender:
    """Takes a batch from planned to running, or to refused."""

    def __init__(self, tools: Tools, *, dismisser: Dismisser, resolver: Resolver) -> None:
        self._store, self._directory, self._clock = tools.store, tools.directory, tools.clock
        self._random, self._kill, self._patience = tools.random, tools.kill, tools.patience
        self._driver, self._timeouts = tools.driver, tools.create_timeouts
        self._dismisser, self._resolver = dismisser, resolver

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
            if not await self._claim(batch):
                await self._wait_for_others(batch, until)
                continue
            self._kill.reach("batch.claimed")
            # Once it has left it is waited for, also by a process that is told to stop: else nobody knows its outcome.
            with self._resolver.sending(batch.id):
                delay = await _to_its_end(self._submit(agent, batch, pulse))
            if delay is None:
                return
            await self._clock.sleep(delay)

    async def _claim(self, batch: Batch) -> bool:
        # Where the provider keeps no word of ours with a batch, two unresolved ones could not be told apart.
        alone = batch.desk.kind == "anthropic"
        return await self._store.batch_book.claim(batch, self._driver, self._clock.now(), alone=alone)

    async def _wait_for_others(self, batch: Batch, until: float) -> None:
        """Wait until no other create of this account is unresolved; one whose process is gone is resolved here."""
        for other in await self._store.batches.select((BatchState.SENT,), limit=1000):
            if other.desk.account == batch.desk.account and other.id != batch.id:
                await self._resolver.if_abandoned(other, until)
        await self._store.changes.wait(LOOK_SECONDS)

    async def _submit(self, agent: BatchAgent, batch: Batch, pulse: Pulse) -> float | None:
        """Create the batch; gives the seconds to wait when nothing was created and it is worth another try."""
        fresh = await self._store.batches.get(batch.id) or batch
        try:
            provider_id = await agent.submit(self._parcel(fresh), self._timeouts)
        except WireError as error:
            return await self._failed(batch, error, pulse)
        self._kill.reach("batch.created")
        await self._change(
            batch,
            "batch.submitted",
            state=BatchState.RUNNING,
            provider_id=provider_id,
            submitted_at=self._clock.now(),
            note=f"the provider took it as {provider_id}",
        )
        self._kill.reach("batch.confirmed")
        return None

    async def _failed(self, batch: Batch, error: WireError, pulse: Pulse) -> float | None:
        fresh = await self._store.batches.get(batch.id) or batch
        created = fresh.desk.kind != "openai" or fresh.file is not None  # else it got no further than its upload
        if created and (isinstance(error, OutcomeUnknown | ProviderFault) or error.paid is Paid.UNKNOWN):
            note = f"nobody knows whether it was created: {error.message}"
            await self._change(batch, "batch.unclear", state=BatchState.SENT, note=note)
            return None
        if isinstance(error, TryLater):
            note = f"it was not taken and is tried again: {error.message}"
            await self._change(batch, "batch.put_back", state=BatchState.PLANNED, sent_at=None, note=note)
            return pulse.delay(error.retry_after)
        await self._dismisser.refuse(batch, error, BatchState.SENT)
        return None

    async def _change(self, batch: Batch, kind: str, **changes: object) -> None:
        fresh = await self._store.batches.get(batch.id) or batch
        changed = replace(fresh, **changes)  # type: ignore[arg-type]
        advance = Advance(batch=changed, was=BatchState.SENT, kind=kind, at=self._clock.now())
        await self._store.batch_book.advance(advance)

    def _parcel(self, batch: Batch) -> Parcel:
        async def remember(file: str) -> None:
            note = f"its requests are uploaded as {file}"
            await self._change(batch, "batch.uploaded", state=BatchState.SENT, file=file, note=note)

        def pieces() -> AsyncIterator[bytes]:
            return self._store.batches.bodies(batch.id)

        return Parcel(
            id=batch.id,
            requests=batch.requests,
            size=batch.bytes,
            pieces=pieces,
            file=batch.file,
            on_file=remember,
        )


async def _to_its_end(work: Coroutine[Any, Any, float | None]) -> float | None:
    task = asyncio.get_running_loop().create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=STOP_SECONDS)
        task.cancel()  # its outcome is unknown then, and is reconciled by whoever comes next
        raise
