"""Which due run of the store is driven next: clients in turn, the oldest of each first, within caps."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from muster.domain.ids import RunId
from muster.domain.run import TERMINAL, Run
from muster.engine.queue.base import queue_of
from muster.store.base import QueueTurn, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """Whose runs, and runs of which workloads, have to wait because enough of them are driven."""

    clients: frozenset[str] = frozenset()
    workloads: frozenset[str] = frozenset()


class DriveCaps(Protocol):
    """How many runs may be driven beside each other. Asked by the worker whenever it has a place; decides purely."""

    def held(self, driven: Collection[Run], awaited: Run | None) -> HeldBack:
        """Return what has to wait; whatever competes with an `awaited` run, which was first, waits for it."""

    def fits(self, run: Run, driven: Collection[Run]) -> bool:
        """Return whether there is room for a run that does not have to wait."""


class NoCaps:
    """Any runs beside each other."""

    def held(self, driven: Collection[Run], awaited: Run | None) -> HeldBack:
        """Hold nothing back."""
        return HeldBack()

    def fits(self, run: Run, driven: Collection[Run]) -> bool:
        """Take every run."""
        return True


class StoredTurns:
    """Finds the next run in the store, and remembers whose turn it was."""

    def __init__(self, store: Store, caps: DriveCaps, knows: Callable[[str], bool]) -> None:
        self._store, self._caps, self._knows = store, caps, knows
        self._served = ""  # the client whose run was taken last
        self._awaited: Run | None = None  # whose turn it was, and for which there was not enough room

    def take(self, run: Run) -> None:
        """Remember that a run was taken."""
        self._served = client_of(run)

    async def next(self, driven: Collection[Run], passed: frozenset[RunId], queues: Collection[str]) -> Run | None:
        """Return the run that is to be driven next; one that needs more room than there is has the next turn."""
        await self._look_after_awaited(driven)
        if self._awaited is not None and self._caps.fits(self._awaited, driven):
            run, self._awaited = self._awaited, None
            return run
        found = await self._due(driven, passed, queues)
        if found is None or self._caps.fits(found, driven):
            return found
        self._awaited = found
        return await self._due(driven, passed, queues)

    async def _look_after_awaited(self, driven: Collection[Run]) -> None:
        """Forget the run that was awaited when it is over, driven elsewhere, or its client has enough others."""
        if self._awaited is None:
            return
        run = await self._store.runs.get(self._awaited.id)
        gone = run is None or run.state in TERMINAL or run.lease.driver is not None
        full = self._caps.held(driven, None).clients
        self._awaited = None if gone or run is None or client_of(run) in full else run

    async def _due(self, driven: Collection[Run], passed: frozenset[RunId], queues: Collection[str]) -> Run | None:
        held = self._caps.held(driven, self._awaited)
        waiting = await self._store.queue.workloads()
        allowed = tuple(
            one for one in waiting if self._knows(one) and queue_of(one) in queues and one not in held.workloads
        )
        if not allowed:
            return None
        turn = QueueTurn(workloads=allowed, after=self._served, full=held.clients, passed=passed)
        return await self._store.queue.next(turn)


def client_of(run: Run) -> str:
    """Return the client whose request started a run; empty for somebody at this machine."""
    return run.request.client if run.request is not None else ""
