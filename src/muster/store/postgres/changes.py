"""Commits of other processes: the server notifies, and a slow look finds what no notification told of."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

import psycopg

from muster.domain.errors import StoreFailed
from muster.store.postgres.failures import PostgresAddress
from muster.store.postgres.session import CHANNEL, OFFER, connect
from muster.store.queries import DatabaseReader
from muster.store.writer import CommitSignal

STEP_SECONDS = 0.1
LOOK_SECONDS = 5.0
CLOSE_SECONDS = 12.0  # for which a session that is being opened is waited for: longer than that may take


class PostgresOffers:
    """Tells that a run may have become due. Notifications say so: most commits are those of calls."""

    def __init__(self, listen: Callable[[], None]) -> None:
        self._listen = listen
        self._count = 0
        self._signal = CommitSignal(lambda: self._count, STEP_SECONDS)

    def beat(self) -> None:
        """Wake everybody who waits."""
        self._count += 1
        self._signal.beat()

    async def wait(self, seconds: float) -> bool:
        """Wait for the next offer, at most so long; return whether there was one."""
        self._listen()
        return await self._signal.wait(seconds)


class PostgresChanges:
    """Tells that something was written, by this process or another; listens as soon as somebody waits."""

    def __init__(self, address: PostgresAddress, reader: DatabaseReader, token: str) -> None:
        self._address, self._reader, self._token = address, reader, token
        self._commits = 0
        self._signal = CommitSignal(lambda: self._commits, STEP_SECONDS)
        self._listening: asyncio.Task[None] | None = None
        self._heard = False  # a notification, since it was looked
        self.offers = PostgresOffers(self._begin)

    def beat(self) -> None:
        """Wake everybody who waits."""
        self._commits += 1
        self._signal.beat()

    async def wait(self, seconds: float) -> bool:
        """Wait for the next commit, at most so long; return whether there was one."""
        self._begin()
        return await self._signal.wait(seconds)

    def _begin(self) -> None:
        """Begin to listen."""
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())

    async def close(self) -> None:
        """Listen no more."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})

    async def _listen(self) -> None:
        while True:
            with suppress(StoreFailed, psycopg.Error):
                await self._listen_once()
            await asyncio.sleep(STEP_SECONDS)

    async def _listen_once(self) -> None:
        """Listen until the connection is lost."""
        loop, lost = asyncio.get_running_loop(), asyncio.Event()
        raw = await self._subscribed()
        # A copy, since libpq closes its socket when the server is gone: the loop would go on to watch that number,
        # which the next connection of this process gets.
        socket = os.dup(raw.fileno())
        loop.add_reader(socket, self._arrived, raw, lost.set)
        try:
            self._beat_all()  # what was committed before it listened
            await self._look_until(lost)
        finally:
            loop.remove_reader(socket)
            os.close(socket)
            raw.close()

    async def _subscribed(self) -> "psycopg.Connection[object]":
        """Return a session that listens; canceled, it closes one that is being opened."""
        opening = asyncio.ensure_future(asyncio.to_thread(_subscribe, self._address))
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
        senders = []
        while (note := raw.pgconn.notifies()) is not None:
            senders.append(note.extra.decode())
        self._heard = self._heard or bool(senders)
        if any(sender.removesuffix(OFFER) != self._token for sender in senders):  # commits of its own were told before
            self.beat()
        if any(sender.endswith(OFFER) for sender in senders):
            self.offers.beat()

    def _beat_all(self) -> None:
        self.beat()
        self.offers.beat()

    async def _look_until(self, lost: asyncio.Event) -> None:
        """Look now and then for what was not told: a pooler between us and the server passes no notifications on."""
        seen = None
        while not lost.is_set():
            if not self._heard:  # else notifications arrive
                row = (await self._reader.rows("last_transaction", {}))[0]
                if seen is not None and row["number"] != seen:
                    self._beat_all()
                seen = row["number"]
            self._heard = False
            with suppress(TimeoutError):
                await asyncio.wait_for(lost.wait(), LOOK_SECONDS)


def _subscribe(address: PostgresAddress) -> "psycopg.Connection[object]":
    raw = connect(address)
    raw.execute(f"LISTEN {CHANNEL}".encode())
    return raw
