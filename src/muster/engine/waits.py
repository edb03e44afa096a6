"""What a run waits for by key: signals of its channels, and moments. It uses up none of the run's time."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from muster.domain.call import require_key
from muster.domain.entry import AwaitedSignal, EntryKind, Signal, slot_address
from muster.engine.base.clock import STEP, Clock, StepActivity
from muster.engine.base.driven_run import DrivenRun, StopState
from muster.engine.base.signals import CallInbox, Receiver
from muster.engine.memory import RunMemory
from muster.engine.steps import Steps

R = TypeVar("R")
TIMERS = "timer"  # a channel on which nobody sends: who waits there waits for a moment


async def inside(step: StepActivity, calling: Awaitable[R]) -> R:
    """Wait for what a step has begun, which counts by itself."""
    with step.calling():
        return await calling


class RunWaits:
    """Waits for what one run is told, and for the time."""

    def __init__(
        self,
        driven: DrivenRun,
        *,
        memory: RunMemory,
        steps: Steps,
        receiver: Receiver,
        clock: Clock,
        halt: StopState,
    ) -> None:
        self._address = driven.run.lineage_level
        self._memory, self._steps, self._receiver, self._clock, self._halt = memory, steps, receiver, clock, halt
        self._inboxes: list[CallInbox] = []

    async def receive(self, key: str, channel: str, *, timeout: float | None, aside: bool) -> Signal | None:
        """Return the next signal of a channel; None when the time for it is over."""
        require_key(key)
        async with self._memory.alone(key):
            until = None if timeout is None else await self._since(key, self._clock.now) + timeout
            return await self._signal(key, AwaitedSignal(address=self._address, channel=channel, until=until), aside)

    async def until(self, key: str, seconds: float, since: Callable[[], float]) -> None:
        """Wait until so many seconds after a moment, which is remembered."""
        require_key(key)
        async with self._memory.alone(key):
            moment = await self._since(key, since) + seconds
            await self._signal(key, AwaitedSignal(address=self._address, channel=TIMERS, until=moment), aside=False)

    async def _since(self, key: str, since: Callable[[], float]) -> float:
        async def read() -> float:
            return since()

        return float(await self._steps.once(f"{key}/since", read))

    async def _signal(self, key: str, awaited: AwaitedSignal, aside: bool) -> Signal | None:
        known, value = await self._memory.recall(key, EntryKind.SIGNAL)
        if known:
            return Signal(**value[0]) if value else None
        await self._halt.admit()
        receiving, step = self._receiver.receive(key, awaited, aside=aside), STEP.get()
        return await (receiving if step is None or aside else inside(step, receiving))

    async def collect(self, key: str, channel: str, slot: str | None) -> Sequence[Signal]:
        """Return the signals of a channel that are there."""
        require_key(key)
        async with self._memory.alone(key):
            known = await self._recalled(key)
            if known is not None:
                return known
            await self._halt.admit()
            return await self._receiver.collect(key, self._of(slot), channel)

    def inbox(self, call: str, channel: str, slot: str | None, written: Callable[[Signal], str]) -> CallInbox:
        """Return the inbox of a call."""
        awaited = AwaitedSignal(address=self._of(slot), channel=channel)
        inbox = CallInbox(self._receiver, call, awaited, recall=self._recalled, written=written)
        self._inboxes.append(inbox)
        return inbox

    @property
    def open_inbox(self) -> CallInbox | None:
        """The inbox of a call that is being made; None when there is none."""
        return next((inbox for inbox in self._inboxes if inbox.is_open), None)

    async def _recalled(self, key: str) -> Sequence[Signal] | None:
        known, value = await self._memory.recall(key, EntryKind.SIGNAL)
        return [Signal(**one) for one in value] if known else None

    def _of(self, slot: str | None) -> str:
        return self._address if slot is None else slot_address(slot)
