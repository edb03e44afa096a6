"""Signals as a run receives them: waited for without using up its time, taken once, remembered under a key."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from muster.domain.canonical import digest
from muster.domain.entry import AwaitedSignal, EntryKind, Signal
from muster.engine.clock import Clock
from muster.engine.driven_run import DrivenRun
from muster.engine.killpoints import KillPoints
from muster.store.base import SignalTaking, Store

LOOK_SECONDS = 1.0  # between two looks when nothing was written meanwhile
MOST = 1000  # signals that are collected at once
NO_DIGEST = digest({"kind": str(EntryKind.SIGNAL)})


class Receiver:
    """Receives the signals of one run under its driver."""

    def __init__(self, driven: DrivenRun, store: Store, clock: Clock, kill: KillPoints) -> None:
        self._run, self._epoch, self._activity = driven.run, driven.epoch, driven.activity
        self._store, self._clock, self._kill = store, clock, kill
        self._awaited: dict[str, AwaitedSignal] = {}  # by key

    @property
    def awaited(self) -> tuple[AwaitedSignal, ...]:
        """What is waited for now."""
        return tuple(self._awaited.values())

    async def receive(self, key: str, awaited: AwaitedSignal) -> Signal | None:
        """Wait for the next signal of a channel and remember it under the key; None when the time for it is over."""
        while True:
            with self._activity.receiving(), self._waits(key, awaited):
                over = await self._until_there(awaited)
            # No longer counted as waiting: a run is not let go of while it takes what came.
            taken = await self._take(key, awaited, most=1, even_none=over)
            if taken is not None:
                return taken[0] if taken else None

    async def collect(self, key: str, address: str, channel: str) -> Sequence[Signal]:
        """Take all signals of a channel that are there, which may be none, and remember them under the key."""
        taken = await self._take(key, AwaitedSignal(address=address, channel=channel), most=MOST, even_none=True)
        return taken or ()

    async def _until_there(self, awaited: AwaitedSignal) -> bool:
        """Wait until there is a signal, or the time for it is over; returns whether it is."""
        while not await self._store.signals.untaken(awaited.address, awaited.channel):
            if awaited.until is not None and self._clock.now() >= awaited.until:
                return True
            await self._store.changes.wait(self._pause(awaited))
        return False

    async def _take(self, key: str, awaited: AwaitedSignal, *, most: int, even_none: bool) -> Sequence[Signal] | None:
        self._kill.reach("signal.before_take")
        taken = await self._store.signals.take(
            SignalTaking(
                run=self._run.id,
                epoch=self._epoch,
                key=key,
                digest=NO_DIGEST,
                address=awaited.address,
                channel=awaited.channel,
                at=self._clock.now(),
                most=most,
                even_none=even_none,
            )
        )
        self._kill.reach("signal.taken")
        return taken

    def _pause(self, awaited: AwaitedSignal) -> float:
        if awaited.until is None:
            return LOOK_SECONDS
        return max(0.0, min(LOOK_SECONDS, awaited.until - self._clock.now()))

    @contextmanager
    def _waits(self, key: str, awaited: AwaitedSignal) -> Iterator[None]:
        self._awaited[key] = awaited
        try:
            yield
        finally:
            del self._awaited[key]
