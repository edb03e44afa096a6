"""Signals as a run receives them: waited for without using up its time, taken once, remembered under a key."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from uuid import NAMESPACE_URL, uuid5

from muster.agents.base import InboxMessage
from muster.domain.call import Request
from muster.domain.canonical import Json, digest
from muster.domain.entry import AwaitedSignal, EntryKind, Signal
from muster.engine.base.clock import Clock
from muster.engine.base.driven_run import DrivenRun
from muster.engine.base.killpoints import KillPoints
from muster.store.base import SignalTaking, Store

LOOK_SECONDS = 1.0  # between two looks when nothing was written meanwhile
MAX_SIGNALS = 1000  # signals that are collected at once
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

    async def receive(self, key: str, awaited: AwaitedSignal, *, aside: bool = False) -> Signal | None:
        """Wait for the next signal of a channel and remember it under the key; None when the time for it is over.

        Waiting `aside` does not count: whether the run waits is for its other work to say.
        """
        with nullcontext() if aside else self._activity.working():
            while True:
                over = await self._until_there(key, awaited, nullcontext() if aside else self._activity.awaiting())
                with self._activity.working():  # a run is not let go of while it takes what came
                    taken = await self._take(key, awaited, most=1, even_none=over)
                if taken is not None:
                    return taken[0] if taken else None

    async def wait(self, key: str, awaited: AwaitedSignal) -> bool:
        """Wait, in a call that is counted already, until a signal is there; returns whether the time for it is over."""
        return await self._until_there(key, awaited, self._activity.awaiting())

    async def collect(self, key: str, address: str, channel: str) -> Sequence[Signal]:
        """Take all signals of a channel that are there, which may be none, and remember them under the key."""
        taken = await self._take(key, AwaitedSignal(address=address, channel=channel), most=MAX_SIGNALS, even_none=True)
        return taken or ()

    async def take_only(self, key: str, awaited: AwaitedSignal, numbers: Sequence[int]) -> Sequence[Signal]:
        """Take some signals of a channel, as far as they are still there, and remember them under the key."""
        return await self._take(key, awaited, most=MAX_SIGNALS, even_none=False, only=tuple(numbers)) or ()

    async def untaken(self, awaited: AwaitedSignal) -> Sequence[Signal]:
        """Return the signals of a channel that nobody has taken."""
        return await self._store.signals.untaken(awaited.address, awaited.channel, MAX_SIGNALS)

    @property
    def commits(self) -> int:
        """Return how many commits were told so far, to be taken before a look."""
        return self._store.changes.commits

    async def change(self, since: int) -> None:
        """Wait until something was written since, or it is time to look again."""
        await self._store.changes.wait(LOOK_SECONDS, since)

    async def _until_there(self, key: str, awaited: AwaitedSignal, waiting: AbstractContextManager[None]) -> bool:
        """Wait until there is a signal, or the time for it is over; returns whether it is.

        The first look and the last one are not `waiting`: a run for which a signal is there is not let go of.
        """
        seen = self._store.changes.commits
        if await self._is_there(awaited):
            return False
        with waiting, self._waits(key, awaited):
            while not self._is_over(awaited):
                await self._pause(awaited, seen)
                seen = self._store.changes.commits
                if not self._is_over(awaited) and await self._is_there(awaited):
                    return False
        return not await self._is_there(awaited)

    def _is_over(self, awaited: AwaitedSignal) -> bool:
        return awaited.until is not None and self._clock.now() >= awaited.until

    async def _is_there(self, awaited: AwaitedSignal) -> bool:
        return bool(await self._store.signals.untaken(awaited.address, awaited.channel))

    async def _take(
        self, key: str, awaited: AwaitedSignal, *, most: int, even_none: bool, only: tuple[int, ...] = ()
    ) -> Sequence[Signal] | None:
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
                only=only,
            )
        )
        self._kill.reach("signal.taken")
        return taken

    async def _pause(self, awaited: AwaitedSignal, seen: int) -> None:
        """Wait until something was written since, it is time to look again, or the time for a signal is over."""
        if awaited.until is None:
            await self._store.changes.wait(LOOK_SECONDS, seen)
            return
        change = asyncio.ensure_future(self._store.changes.wait(LOOK_SECONDS, seen))
        moment = asyncio.ensure_future(self._clock.sleep(max(0.0, awaited.until - self._clock.now())))
        try:
            await asyncio.wait({change, moment}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            change.cancel()
            moment.cancel()

    @contextmanager
    def _waits(self, key: str, awaited: AwaitedSignal) -> Iterator[None]:
        self._awaited[key] = awaited
        try:
            yield
        finally:
            del self._awaited[key]


Recall = Callable[[str], Awaitable[Sequence[Signal] | None]]


class CallInbox:
    """The signals of a channel that reach one call while it is made, remembered below the key of the call.

    What an attempt has taken in is in the request of the next one: a call that is made again loses and repeats nothing.
    """

    def __init__(
        self,
        receiver: Receiver,
        call: str,
        awaited: AwaitedSignal,
        *,
        recall: Recall,
        written: Callable[[Signal], str],
    ) -> None:
        self._receiver, self._call, self._awaited = receiver, call, awaited
        self._recall, self._written = recall, written
        self._taken: list[Sequence[Signal]] = []  # by earlier attempts and this one, in order
        self._seen: set[int] = set()  # the numbers of those that were offered to this attempt, or read by it
        self._offered: dict[str, int] = {}  # the same by the id of the message, of those that were offered
        self._lock = asyncio.Lock()
        self.is_open = False  # the call is being made

    async def open(self, request: Request) -> Request:
        """Begin an attempt: return the request with everything that attempts before it have taken in."""
        async with self._lock:
            while (known := await self._recall(self._key)) is not None:
                self._taken.append(known)
        self._seen.clear()
        self._offered.clear()
        self.is_open = True
        texts: list[Json] = [self._written(one) for taken in self._taken for one in taken]
        return request.attach({"inbox": texts}) if texts else request

    def close(self) -> None:
        """End an attempt: what was offered and not taken stays where it was."""
        self.is_open = False

    async def next(self) -> InboxMessage:
        """Wait for the next message that was not offered to this attempt."""
        while True:
            seen = self._receiver.commits
            for signal in await self._unseen():
                id_ = str(uuid5(NAMESPACE_URL, f"{self._awaited.address}/{signal.channel}/{signal.seq}"))
                self._seen.add(signal.seq)
                self._offered[id_] = signal.seq
                return InboxMessage(id=id_, text=self._written(signal))
            await self._receiver.change(seen)

    async def taken(self, message: InboxMessage) -> None:
        """Write down that the agent has taken a message in."""
        await self._take([self._offered[message.id]])

    async def read(self) -> Sequence[Signal]:
        """Take all messages that were not offered, for an agent that asks for them by itself."""
        numbers = [signal.seq for signal in await self._unseen()]
        self._seen.update(numbers)  # before they are taken, or they could be offered meanwhile
        return await self._take(numbers) if numbers else ()

    async def _unseen(self) -> Sequence[Signal]:
        return [one for one in await self._receiver.untaken(self._awaited) if one.seq not in self._seen]

    async def _take(self, numbers: Sequence[int]) -> Sequence[Signal]:
        async with self._lock:
            found = await self._receiver.take_only(self._key, self._awaited, numbers)
            if found:
                self._taken.append(found)
        return found

    @property
    def _key(self) -> str:
        return f"{self._call}/inbox/{len(self._taken) + 1:03d}"
