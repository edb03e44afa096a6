"""One thing done beside another: a page is written while the next one fills, and never two at a time."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Aside:
    """Does things in order, each while its caller goes on; an error comes up with the next thing, or at the end."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin something, as soon as the thing before it is done."""
        try:
            await self.done()
        except BaseException:
            work.close()
            raise
        self._task = asyncio.create_task(work)
        await asyncio.sleep(0)  # it is under way from now on, also if the caller does not wait for anything

    async def done(self) -> None:
        """Wait for the last thing."""
        task, self._task = self._task, None
        if task is not None:
            await task

    async def abandon(self) -> None:
        """Let go of the last thing, if it is still under way."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
