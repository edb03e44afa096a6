"""A process that serves: it drives submitted runs and tasks of the pool, tells hooks, and forgets what is old."""

import asyncio
from collections.abc import Callable

from muster.app.muster import Muster
from muster.app.serving.limits import QueueCaps
from muster.domain.errors import Conflict, MusterError
from muster.domain.ids import RunId
from muster.domain.run import Run
from muster.settings.sections import PoolSection

HOOK_SECONDS = 5.0  # for which hooks that are at work are waited for at the end
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
        self._muster, self._on_note = muster, on_note
        settings = muster.settings
        caps = QueueCaps(per_client=settings.serve.jobs_per_client, battles=settings.serve.battles)
        self._worker = muster.worker(
            most=settings.serve.runs, on_end=self._tell_hooks, on_error=on_error, admits=caps.admits
        )
        has_slots = bool(settings.slots) or settings.pool != PoolSection()
        self._pool = muster.pool.driver(on_end=self._tell_hooks, on_error=on_error) if has_slots else None
        self._hooks: set[asyncio.Task[None]] = set()

    async def drive(self) -> None:
        """Drive runs and tasks until closed; those that are let go of can be resumed."""
        retention = asyncio.ensure_future(self._forget_old())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._worker.serve())
                if self._pool is not None:
                    group.create_task(self._drive_pool())
            if self._hooks:
                await asyncio.wait(self._hooks, timeout=HOOK_SECONDS)
        finally:
            for task in (retention, *self._hooks):
                task.cancel()

    async def _drive_pool(self) -> None:
        if self._pool is None:
            return
        try:
            await self._pool.serve()
        except Conflict as error:
            self._on_note(f"tasks are left to another process: {error.message}")

    async def _forget_old(self) -> None:
        """Delete what ended longer ago than the settings say, again and again."""
        days = self._muster.settings.serve.keep_days
        while days:
            try:
                await self._muster.runs.forget_ended(self._muster.clock.now() - days * 86_400)
            except MusterError as error:
                self._on_note(f"old runs could not be deleted: {error.message}")
            await self._muster.clock.sleep(RETENTION_SECONDS)

    def _tell_hooks(self, run: Run) -> None:
        task = asyncio.get_running_loop().create_task(self._tell(run))
        self._hooks.add(task)
        task.add_done_callback(self._hooks.discard)

    async def _tell(self, run: Run) -> None:
        try:
            await self._muster.hooks.tell(run)
        except MusterError as error:
            self._on_note(f"a hook about run {run.id} failed: {error.message}")

    def close(self) -> None:
        """Take nothing new."""
        self._worker.close()
        if self._pool is not None:
            self._pool.close()
