"""Starts that are requested over a network: known ones are found again, new ones are admitted, counted and logged."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from muster.app.muster import Muster
from muster.app.serving.limits import WINDOW, StartRate
from muster.domain.errors import Conflict
from muster.domain.run import Run, StartRequest, User


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedRun:
    """The run of a request, and whether an earlier one under the same key had started it."""

    run: Run
    known: bool


class Starts:
    """Starts runs for the users of a server; one for a process, since it counts."""

    def __init__(self, muster: Muster) -> None:
        self._muster = muster
        self._rate = StartRate(muster.clock, muster.settings.serve.starts_per_minute)
        self._recalled, self._recalling = False, asyncio.Lock()
        self._keys = KeyLocks()

    async def start(self, user: User, begin: Callable[[Muster], Awaitable[Run]]) -> RequestedRun:
        """Start a run for a user whose `request` says by which request; the same request again gives the same run.

        A known request is found before limits count. Raises Conflict for another request under the same key,
        LimitReached when there were too many starts.
        """
        if user.request is not None:
            user = replace(user, request=replace(user.request, limit=self._rate.limit))
        acting = self._muster.acting_for(user)
        async with AsyncExitStack() as held:
            for name in _held_names(user):
                await held.enter_async_context(self._keys.held((user.name or "", name)))
            known = await acting.runs.requested()
            if known is not None:
                return RequestedRun(run=known, known=True)
            await self._recall()
            self._rate.admit(user.request.client if user.request else "")
            try:
                run = await begin(acting)
            except Conflict:
                known = await acting.runs.requested()  # another server was faster with the id that was chosen
                if known is None:
                    raise
                return RequestedRun(run=known, known=True)
            return RequestedRun(run=run, known=_was_faster(run.request, user.request))

    async def _recall(self) -> None:
        """Count what was started before this process, so that a restart gives nobody more."""
        if not self._recalled:
            async with self._recalling:
                if not self._recalled:
                    self._rate.recall(await self._muster.runs.starts(WINDOW))
                    self._recalled = True


def _held_names(user: User) -> Iterable[str]:
    """Return what no other request of the user may use meanwhile: the id before the key, so no two block each other."""
    names = (f"id:{user.run}" if user.run else None, user.request.key if user.request else None)
    return dict.fromkeys(name for name in names if name is not None)


class KeyLocks:
    """One lock for each key that somebody holds or waits for."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, str], tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def held(self, key: tuple[str, str]) -> AsyncIterator[None]:
        """Hold the lock of a key."""
        lock, users = self._locks.get(key, (asyncio.Lock(), 0))
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            users = self._locks[key][1] - 1
            if users:
                self._locks[key] = (lock, users)
            else:
                del self._locks[key]


def _was_faster(started: StartRequest | None, request: StartRequest | None) -> bool:
    """Return whether a run was started by the same request at another server, at the same moment."""
    if started is None or request is None:
        return False
    return request.asks_for(started) and started.id != request.id
