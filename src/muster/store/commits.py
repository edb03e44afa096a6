"""That something was written: waiters are woken after each commit of this process, and by looking for others."""

import asyncio
from collections.abc import Callable


class CommitSignal:
    """Wakes waiters after each commit of this process; other processes are seen by looking."""

    def __init__(self, look: Callable[[], object], every: float) -> None:
        self._look, self._every = look, every
        self._seen = look()
        self._waiters: set[asyncio.Future[None]] = set()

    def beat(self) -> None:
        """Wake everybody who waits."""
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seconds: float) -> bool:
        """Wait for the next commit of any process, at most so long."""
        left = seconds
        while left > 0:
            step = min(left, self._every)
            if await self._wait_here(step) or self._changed():
                return True
            left -= step
        return False

    async def _wait_here(self, seconds: float) -> bool:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            done, _ = await asyncio.wait({waiter}, timeout=seconds)
            return bool(done)
        finally:
            self._waiters.discard(waiter)

    def _changed(self) -> bool:
        now = self._look()
        if now == self._seen:
            return False
        self._seen = now
        self.beat()  # whoever looks first tells all the others
        return True
