"""Runs: sent signals and answers, canceled, deleted and moved. The part of `Muster.runs` that starts nothing."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from muster.app.base.outputs import require_output
from muster.app.runs.files import export_run, import_run
from muster.app.runs.questions import AnswerOutcome, root_of, send_answer
from muster.app.runs.reading import RunReader
from muster.domain.call import require_key
from muster.domain.canonical import plain_json
from muster.domain.entry import ANSWERS, NewSignal, Signal
from muster.domain.errors import (
    AccessDenied,
    BadArgument,
    Conflict,
    MusterError,
    state_verb,
)
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL, Run, RunState

PAGE_FORGOTTEN = 1_000  # old runs that are asked for at a time
CANCEL_SECONDS = 5.0  # for which the driver of a canceled run is waited for


class RunActions(RunReader):
    """Acts on runs of an open Muster, whoever drives them."""

    async def send(
        self,
        reference: str,
        channel: str,
        payload: Any,
        *,
        sender: str = "",
        client_id: str | None = None,
        number: int | None = None,
    ) -> Signal:
        """Send a signal to a run, or to the run that it was resumed as; the same client id twice sends one.

        With a `number` it is refused when it is not the one of that number in its channel.
        A run that waits for it without a process is queued, and goes on as soon as somebody drives submitted runs.
        """
        require_key(channel)
        if channel.startswith(ANSWERS):
            raise BadArgument(
                f"{channel!r} is for answers of people", suggestions=("use runs.answer, or muster answer",)
            )
        run = await self.end_of_lineage(await self.find(reference))
        if run.state in TERMINAL:
            raise Conflict(f"run {run.id} {state_verb(run.state)}; it no longer receives signals")
        await self._require_counted(run)
        return await self._store.signals.send(
            NewSignal(
                address=run.lineage_level,
                channel=channel,
                payload=plain_json(payload, "the payload of a signal"),
                client_id=client_id or uuid4().hex,
                sender=sender,
                at=self._clock.now(),
                number=number,
            )
        )

    async def answer(
        self, reference: str, text: str, *, key: str | None = None, sender: str = "", client_id: str | None = None
    ) -> AnswerOutcome:
        """Answer the only open question of a run, or the one under a key; the same client id twice answers once.

        An answer that does not fit the schema of the question is refused, and not stored.
        """
        run = await self.end_of_lineage(await self.find(reference))
        await self._require_counted(run)
        sent = await send_answer(
            self._store,
            run,
            text,
            key=key,
            sender=sender,
            client_id=client_id or uuid4().hex,
            at=self._clock.now(),
        )
        return AnswerOutcome(sent=sent, root=await root_of(self._store, sent.run), workers=await self.workers())

    async def cancel(self, reference: str) -> Run:
        """Cancel a run and its batches; returns it when its driver has let go, or as it is after a few seconds."""
        await self._engine.sweep()
        run = await self.find(reference)
        canceled = await self._store.runs.cancel(run.id, self._clock.now())
        if canceled.state is RunState.CANCELED:
            await self._cancel_batches(run.id)
        return await self._until_let_go(await self.get(run.id))

    async def _cancel_batches(self, run: RunId) -> None:
        try:
            await self._engine.cancel_batches(run)
        except MusterError as error:
            left = await self.batches_under_way(run)
            ways = [f"run {run} was canceled, its batches were not: muster batch cancel {batch.id}" for batch in left]
            error.suggestions = (*error.suggestions, *ways)
            raise

    async def _until_let_go(self, run: Run) -> Run:
        loop = asyncio.get_running_loop()
        end = loop.time() + CANCEL_SECONDS
        while run.is_driven and loop.time() < end:
            seen = self._store.changes.commits
            run = await self.get(run.id)
            if run.is_driven:
                await self._store.changes.wait(end - loop.time(), seen)
        return run

    async def delete(self, references: Iterable[str]) -> Sequence[RunId]:
        """Delete runs with everything in them; none is deleted when one of them is not found."""
        found = list(dict.fromkeys([(await self.find(reference)).id for reference in references]))
        for run in found:
            await self._store.runs.delete(run, self._clock.now())
        return found

    async def forget_ended(self, before: float, page: int = PAGE_FORGOTTEN) -> int:
        """Delete runs that ended before a time, with everything in them; return how many.

        Those that a baseline names, or that others still need, stay.
        """
        deleted, kept = 0, set[RunId]()
        while found := [run for run in await self._store.runs.ended(before, page + len(kept)) if run not in kept]:
            for run in found:
                try:
                    await self._store.runs.delete(run, self._clock.now())
                    deleted += 1
                except Conflict:
                    kept.add(run)
        return deleted

    async def export(self, reference: str, path: str | Path) -> tuple[Run, int]:
        """Write a run to a file; returns it with the number of its entries."""
        require_output(Path(path))
        run = await self.find(reference)
        return run, await export_run(self._store, run, Path(path))

    async def import_(self, path: str | Path) -> Run:
        """Read a run from a file; it keeps its id."""
        return await import_run(self._store, Path(path))

    async def _require_counted(self, run: Run) -> None:
        """Raise AccessDenied for a run that would spend past the budget of the server through which the user comes."""
        balance = await self._server_balance()
        counted = run.budgets is not None and self._user.level in run.budgets.above
        if balance is not None and balance.cap is not None and not counted:
            raise AccessDenied(
                f"run {run.id} was not started through this server, so the budget of the server does not cover it",
                suggestions=("resume it on the command line instead",),
            )
