"""What other processes have committed: the server notifies, and a slow look finds what no notification told of.

A notification costs a transaction in every session that listens, whatever the channel, and commits that notify wait for
each other. So the commits of calls notify only while somebody waits for any change (`PostgresChanges`): writers see
that by a lock of the session. Workers wait for runs that become due (`PostgresOffers`), whose workloads are named.
"""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from weakref import WeakSet

import psycopg

from muster.domain.errors import StoreFailed
from muster.store.postgres.failures import PostgresAddress
from muster.store.postgres.session import CHANGES, OFFERS, WATCHED, connect
from muster.store.queries import DatabaseReader, numbered_queries
from muster.store.writer import CommitSignal

STEP_SECONDS = 0.1
LOOK_SECONDS = 5.0
SETTLE_SECONDS = 0.5  # after which it is looked for commits that were under way when the session began to listen
UNUSED_SECONDS = 10.0  # after which a session ends for which nobody waits
CLOSE_SECONDS = 12.0  # for which a session that is being opened is waited for: longer than that may take


class NotificationListener:
    """A session that listens on a channel, opened again when it is lost.

    `hear` is given what was notified. `stay` runs beside each session, is told when it is lost, and returns whether
    another one is needed.
    """

    def __init__(
        self,
        subscribe: Callable[[], "psycopg.Connection[object]"],
        hear: Callable[[Sequence[str]], None],
        stay: Callable[[asyncio.Event], Awaitable[bool]],
    ) -> None:
        self._subscribe, self._hear, self._stay = subscribe, hear, stay
        self._listening: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin to listen."""
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen())

    async def close(self) -> None:
        """Listen no more."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})

    async def _listen(self) -> None:
        needed = True
        while needed:
            with suppress(StoreFailed, psycopg.Error):
                needed = await self._listen_once()
            if needed:
                await asyncio.sleep(STEP_SECONDS)

    async def _listen_once(self) -> bool:
        """Listen until the connection is lost or not needed; return whether another one is."""
        loop, lost = asyncio.get_running_loop(), asyncio.Event()
        raw = await self._subscribed()
        # A copy, since libpq closes its socket when the server is gone: the loop would go on to watch that number,
        # which the next connection of this process gets.
        socket = os.dup(raw.fileno())
        loop.add_reader(socket, self._arrived, raw, lost.set)
        try:
            return await self._stay(lost)
        finally:
            loop.remove_reader(socket)
            os.close(socket)
            raw.close()

    async def _subscribed(self) -> "psycopg.Connection[object]":
        """Return a session that listens; canceled, it closes one that is being opened."""
        opening = asyncio.ensure_future(asyncio.to_thread(self._subscribe))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            await asyncio.wait({opening}, timeout=CLOSE_SECONDS)
            if opening.done() and not opening.cancelled() and opening.exception() is None:
                opening.result().close()
            raise

    def _arrived(self, raw: "psycopg.Connection[object]", lose: Callable[[], None]) -> None:
        try:
            raw.pgconn.consume_input()
        except psycopg.Error:
            lose()
            return
        notes = []
        while (note := raw.pgconn.notifies()) is not None:
            notes.append(note.extra.decode())
        if notes:
            self._hear(notes)


class PostgresOfferWatch:
    """Waits for offers of some workloads."""

    def __init__(self, wanted: Callable[[str], bool], begin: Callable[[], None]) -> None:
        self._wanted, self._begin = wanted, begin
        self._offered = asyncio.Event()

    def tell(self, workloads: Collection[str] | None) -> None:
        """Wake whoever waits if runs of these workloads, None for any, are wanted."""
        if workloads is None or any(map(self._wanted, workloads)):
            self._offered.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for the next offer, at most so long; return whether there was one."""
        self._begin()
        if not await _is_set_within(self._offered, seconds):
            return False
        self._offered.clear()
        return True


class PostgresOffers:
    """Tells which runs have become due, by their workloads; listens as soon as somebody waits.

    Nobody looks for offers that were not told of: workers look at the queue now and then by themselves.
    """

    def __init__(self, address: PostgresAddress) -> None:
        self._watches: WeakSet[PostgresOfferWatch] = WeakSet()
        self._listener = NotificationListener(partial(_subscribe, address, OFFERS), self._hear, self._stay)

    def watch(self, wanted: Callable[[str], bool]) -> PostgresOfferWatch:
        """Return what waits for offers of the workloads that are wanted."""
        watch = PostgresOfferWatch(wanted, self._listener.begin)
        self._watches.add(watch)
        return watch

    async def close(self) -> None:
        """Listen no more."""
        await self._listener.close()

    def _hear(self, notes: Sequence[str]) -> None:
        for note in notes:
            self._tell(json.loads(note))

    def _tell(self, workloads: Collection[str] | None) -> None:
        for watch in list(self._watches):
            watch.tell(workloads)

    async def _stay(self, lost: asyncio.Event) -> bool:
        self._tell(None)  # what became due before it listened
        await lost.wait()
        return True


class PostgresChanges:
    """Tells that something was written, by this process or another; listens as long as somebody waits."""

    def __init__(self, address: PostgresAddress, reader: DatabaseReader, token: str) -> None:
        self._reader, self._token = reader, token
        self._signal = CommitSignal(_look_nowhere, LOOK_SECONDS)
        self._listener = NotificationListener(
            partial(_subscribe, address, CHANGES, watched=True), self._hear, self._stay
        )
        self._heard = False  # a notification, since it was looked
        self._waiting, self._waited_at = 0, 0.0

    @property
    def commits(self) -> int:
        """Return how many commits were told so far."""
        return self._signal.commits

    def beat(self) -> None:
        """Wake everybody who waits."""
        self._signal.beat()

    async def wait(self, seconds: float, since: int) -> bool:
        """Wait until there are other commits than at `since`, at most so long; return whether there are."""
        self._listener.begin()
        self._waiting += 1
        try:
            return await self._signal.wait(seconds, since)
        finally:
            self._waiting, self._waited_at = self._waiting - 1, time.monotonic()

    async def close(self) -> None:
        """Listen no more."""
        await self._listener.close()

    def _hear(self, senders: Sequence[str]) -> None:
        self._heard = True
        if any(sender != self._token for sender in senders):  # commits of its own were told before
            self.beat()

    async def _stay(self, lost: asyncio.Event) -> bool:
        """Look now and then for what was not told: a pooler between us and the server passes no notifications on."""
        seen, pause = await self._transactions(), SETTLE_SECONDS
        self.beat()  # what was committed before it listened
        while not await _is_set_within(lost, pause):
            if not self._waiting and time.monotonic() - self._waited_at >= UNUSED_SECONDS:
                return False
            if pause == SETTLE_SECONDS or not self._heard:  # else notifications arrive
                before, seen = seen, await self._transactions()
                if seen != before:
                    self.beat()
            self._heard, pause = False, LOOK_SECONDS
        return True

    async def _transactions(self) -> str:
        """Return which transactions have begun to write, and which of them are not over."""
        return str((await self._reader.rows("last_transactions", {}))[0]["snapshot"])


def _look_nowhere() -> None:
    """Return nothing that could change: others are heard of, not looked for."""


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


def _subscribe(address: PostgresAddress, channel: str, *, watched: bool = False) -> "psycopg.Connection[object]":
    raw = connect(address)
    if watched:
        query = numbered_queries()["share_name_for_session"]
        psycopg.RawCursor(raw).execute(query.text, query.values({"name": WATCHED}))
    raw.execute(f"LISTEN {channel}".encode())
    return raw
