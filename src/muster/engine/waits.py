"""What a run waits for by key: signals of its channels, and moments. It uses up none of the run's time."""

import math
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeGuard, TypeVar

from muster.domain.call import require_key
from muster.domain.entry import AwaitedSignal, EntryKind, Signal, slot_address
from muster.domain.errors import BadArgument
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


def require_seconds(seconds: object) -> float:
    """Return a number of seconds; raises BadArgument for one that cannot be waited for."""
    if isinstance(seconds, timedelta):
        raise BadArgument(
            f"must be a number, not {seconds!r}", argument="seconds", suggestions=("write delta.total_seconds()",)
        )
    if not _is_number(seconds) or seconds < 0:
        raise BadArgument(f"must be 0 or more, not {seconds!r}", argument="seconds")
    return float(seconds)


def require_moment(time: float | datetime) -> float:
    """Return a time as seconds since 1970; raises BadArgument for one that is not a certain moment."""
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise BadArgument(
                "must have a time zone", argument="time", suggestions=("datetime.now(UTC) + timedelta(hours=8)",)
            )
        return time.timestamp()
    if not _is_number(time):
        raise BadArgument(f"must be seconds since 1970 or a datetime, not {time!r}", argument="time")
    return float(time)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
