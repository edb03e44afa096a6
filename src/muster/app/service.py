"""A process that serves: it drives submitted runs and tasks of the pool, tells hooks, and forgets what is old."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from muster.app.muster import Muster
from muster.app.pool.driver import PoolDriver
from muster.app.serving.limits import QueueCaps
from muster.domain.errors import Conflict, MusterError, StoreFailed
from muster.domain.ids import RunId

HOOK_SECONDS = 5.0  # for which hooks that are at work are waited for at the end
LOOK_SECONDS = 2.0  # between two looks for what changes with time only
RETENTION_SECONDS = 3600.0  # between two looks for runs that are too old


class Service:
    """Drives what was submitted while a server runs, what earlier ones left too."""

    def __init__(
        self,
        muster: Muster,
        *,
        on_error: Callable[[RunId, MusterError], None] = lambda run, error: None,
        on_note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._muster, self._on_note, self._on_error = muster, on_note, on_error
        serve = muster.settings.serve
        caps = QueueCaps(per_client=serve.jobs_per_client, battles=serve.battles)
        self._worker = muster.worker(most=serve.runs, on_error=on_error, caps=caps, serving=True, on_note=self._note)
        self._pool: PoolDriver | None = None
        self._closing = asyncio.Event()

    async def drive(self) -> None:
        """Drive runs and tasks until closed; those that are let go of can be resumed."""
        await self._muster.hooks.prepare()
        beside: list[asyncio.Future[Any]] = [
            asyncio.ensure_future(work) for work in (self._forget_old(), self._tell_hooks())
        ]
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._drive_runs())
                if self._muster.pool.is_declared:
                    group.create_task(self._drive_pool())
            beside.append(asyncio.ensure_future(self._tell_due()))
            await asyncio.wait(beside[1:], timeout=HOOK_SECONDS)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

    async def _drive_runs(self) -> None:
        """Drive runs until closed; a store that fails may work again later, and until then clients are told so."""
        while True:
            try:
                return await self._worker.serve()
            except StoreFailed as error:
                self._on_note(f"runs are not executed for now: {error.message}")
            if self._closing.is_set():
                return
            await self._until_writable()

    async def _until_writable(self) -> None:
        """Wait until the store can be written to, or until closed."""
        while not self._closing.is_set():
            await self._look_again()
            with suppress(StoreFailed):
                return await self._muster.store.require_writable()

    async def _drive_pool(self) -> None:
        """Drive the pool whenever no other process does; a pool that was drained is left alone."""
        first = True
        while not self._closing.is_set():
            if first or await self._muster.pool.may_be_driven():
                self._pool = self._muster.pool.driver(on_error=self._on_error)
                try:
                    await self._pool.serve()
                except Conflict as error:
                    self._on_note(f"tasks are left to another process: {error.message}")
                except StoreFailed as error:
                    self._on_note(f"tasks are not executed for now: {error.message}")
                    await self._until_writable()
                self._pool = None
            first = False
            await self._look_again()

    async def _look_again(self) -> None:
        """Wait for a moment, or until closed."""
        closing = asyncio.ensure_future(self._closing.wait())
        change = asyncio.ensure_future(self._muster.clock.sleep(LOOK_SECONDS))
        await asyncio.wait({closing, change}, return_when=asyncio.FIRST_COMPLETED)
        for task in (closing, change):
            task.cancel()

    async def _forget_old(self) -> None:
        """Delete what ended longer ago than the settings say, again and again."""
        days = self._muster.settings.serve.keep_days
        while days:
            try:
                await self._muster.runs.forget_ended(self._muster.clock.now() - days * 86_400)
            except MusterError as error:
                self._on_note(f"old runs could not be deleted: {error.message}")
            await self._muster.clock.sleep(RETENTION_SECONDS)

    async def _tell_hooks(self) -> None:
        """Tell hooks of what has ended, until closed; what is left then is told by the next server."""
        while self._muster.hooks.is_declared and not self._closing.is_set():
            if not await self._tell_due():
                await self._muster.hooks.wait(LOOK_SECONDS)

    async def _tell_due(self) -> int:
        try:
            return await self._muster.hooks.tell_due(self._worker.driving, self._on_note)
        except MusterError as error:
            self._on_note(f"hooks could not be called: {error.message}")
            return 0

    def _note(self, text: str) -> None:
        self._muster.log("serve.runs", note=text)
        self._on_note(text)

    def close(self) -> None:
        """Take nothing new."""
        self._closing.set()
        self._worker.close()
        if self._pool is not None:
            self._pool.close()
