"""The store on a PostgreSQL database: opened, brought up to date, and looked after."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from muster.domain.canonical import Json
from muster.domain.errors import MusterError
from muster.domain.run import Driver
from muster.store import claims
from muster.store.codec import Codec
from muster.store.database import deletions
from muster.store.database.store import CallWrites, DatabaseStore, ignore_message, pass_point
from muster.store.postgres.changes import PostgresChanges, PostgresOffers
from muster.store.postgres.connection import WRITERS, PostgresConnection, WriterMark
from muster.store.postgres.failures import PostgresAddress, parse_address, pooled, why_it_waits
from muster.store.postgres.leases import PostgresLeases
from muster.store.postgres.server_time import ServerTime
from muster.store.postgres.versions import migrate, require_known_tables, require_usable, stored_version
from muster.store.queries import POSTGRES, DatabaseConnection, DatabaseReader, Locked, Locks, newest_version
from muster.store.tables import TABLES
from muster.store.writer import Writer, require_loop

READERS = 4  # connections of a process that only read
REST = 0.01  # seconds between two commits, of a writer that is busy: each is a dozen round trips
READ_PATIENCE = 30.0  # seconds for which a read waits for a server that is away
RENEW_SECONDS = 1.0  # between two renewals of the claim of a vacuum
MIN_PAUSE, MAX_PAUSE = 0.02, 1.0
MARK_SECONDS = 30 * 86_400  # after which the mark of a writer that crashed is forgotten

T = TypeVar("T")


class PostgresReader(DatabaseReader):
    """Reads in threads, each on a connection of its own; a read whose connection was lost is made again."""

    def __init__(self, address: PostgresAddress, server_time: ServerTime) -> None:
        self._address, self._time, self._loop = address, server_time, asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="muster-reader")
        self._idle: list[PostgresConnection] = []
        self._gives_up = False
        self._doubts_tables = False

    async def read(self, work: Callable[[DatabaseConnection], T]) -> T:
        """Run some queries that belong together."""
        require_loop(self._loop)
        since, pause = time.monotonic(), MIN_PAUSE
        while True:
            try:
                return await self._loop.run_in_executor(self._threads, self._read, work)
            except Locked:
                if self._gives_up or time.monotonic() - since > READ_PATIENCE:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE)

    def _read(self, work: Callable[[DatabaseConnection], T]) -> T:
        connection = self._idle.pop() if self._idle else PostgresConnection(self._address, on_snapshot=self._ask)
        try:
            if self._time.is_stale or self._doubts_tables:
                with connection.snapshot():
                    pass
            return work(connection)
        finally:
            if connection.is_lost:
                connection.close()
            else:
                self._idle.append(connection)

    def _ask(self, connection: PostgresConnection) -> None:
        """Ask for the time of the server and the version of the tables, unless that was asked a moment ago."""
        if not self._time.is_old and not self._doubts_tables:
            return
        self._doubts_tables = True
        self._time.ask(connection)
        require_known_tables(connection)  # every read fails from then on, not only the one that looked first
        self._doubts_tables = False

    def give_up(self) -> None:
        """Wait no longer for a server that is away."""
        self._gives_up = True

    async def close(self) -> None:
        """End the threads and their connections."""
        await asyncio.to_thread(self._threads.shutdown)
        for connection in self._idle:
            connection.close()


class PostgresMaintenance:
    """The store as a database."""

    def __init__(
        self,
        address: PostgresAddress,
        reader: PostgresReader,
        writer: Writer,
        codec: Codec,
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self._address, self._reader, self._writer, self._codec = address, reader, writer, codec
        self._close = close

    async def info(self) -> Mapping[str, Json]:
        """Return where the store is, how large, of which version."""

        def work(database: DatabaseConnection) -> Mapping[str, Json]:
            server = database.rows("describe_server", {})[0]
            return {
                "path": self._address.shown,
                "kind": "postgresql",
                "version": database.rows("select_version", {})[0]["version"],
                "postgresql": server["server"],
                "bytes": server["bytes"],
                "unfinished_deletions": len(deletions.unfinished_deletions(database)),
                "check": "ok",
            }

        return await self._reader.read(work)

    async def vacuum(self, driver: Driver, at: float) -> None:
        """Return free space to the disk; no run may be driven meanwhile."""
        alone = Locks(names=(claims.CLAIMS,))
        claim = await self._writer.run(partial(claims.claim_store, driver=driver, at=at), alone)
        began, working = time.monotonic(), asyncio.ensure_future(asyncio.to_thread(self._vacuum))
        working.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait for it any more
        try:
            while not (await asyncio.wait({working}, timeout=RENEW_SECONDS))[0]:
                # One table after the other is locked, so that a run could be claimed in between.
                renewing = partial(claims.renew_claim, claim=claim, at=at + time.monotonic() - began)
                claim = await self._writer.run(renewing)
            working.result()
        finally:
            await self._writer.run(lambda database: claims.unclaim_store(database, claim))

    def _vacuum(self) -> None:
        connection = PostgresConnection(self._address)
        try:
            connection.script(f"VACUUM (FULL, ANALYZE) {', '.join(TABLES)}")
        finally:
            connection.close()

    async def shortage(self) -> MusterError | None:
        """Return what the server lacks; it is known while a write waits for that."""
        return self._writer.shortage

    def touch(self) -> "asyncio.Future[None]":
        """Begin a write that changes nothing."""
        return self._writer.run(require_usable)

    def hide(self, secret: str) -> None:
        """Take a secret out of everything that is written from now on."""
        self._codec.hide(secret)

    def give_up(self) -> None:
        """Wait no longer for a lock of another process, or for the server: what cannot be done now fails."""
        self._writer.give_up()
        self._reader.give_up()

    async def close(self) -> None:
        """Write what is queued and end all connections."""
        await self._close()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDatabase:
    """A database whose tables are up to date, with a connection that writes and the time of its server."""

    writing: PostgresConnection
    mark: WriterMark
    time: ServerTime

    def close(self) -> None:
        """End the connection, of one that no store was made of."""
        self.writing.close()


class PostgresStore(DatabaseStore):
    """All parts of the store on one database."""

    def __init__(
        self,
        prepared: PreparedDatabase,
        *,
        secrets: Sequence[str] = (),
        reach: Callable[[str], None] = pass_point,
        on_wait: Callable[[str], None] = ignore_message,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        codec, address = Codec(secrets), prepared.writing.address
        writes = CallWrites(codec)
        self._pool = reader = PostgresReader(address, prepared.time)
        self.changes = PostgresChanges(address, reader, prepared.mark.token)
        self.offers = PostgresOffers(address)
        writer = Writer(
            lambda: prepared.writing,
            groups=writes.groups,
            on_commit=self.changes.beat,
            reach=reach,
            rest=REST,
            on_wait=lambda error: on_wait(why_it_waits(address, error, writer.count(writes.settles))),
        )
        super().__init__(reader, reader, writer, codec, writes, on_wait, require_known_tables)
        self.time = prepared.time
        self.leases = PostgresLeases(writer, codec, writes.beats, on_wait, monotonic)
        self.maintenance = PostgresMaintenance(address, reader, writer, codec, self._shut)

    async def _shut(self) -> None:
        await self._writer.close()
        await self.changes.close()
        await self.offers.close()
        await self._pool.close()


def open_postgres(
    url: str,
    *,
    secrets: Sequence[str] = (),
    reach: Callable[[str], None] = pass_point,
    on_wait: Callable[[str], None] = ignore_message,
) -> PostgresStore:
    """Open the store inside a running event loop, which stands still until the server has answered."""
    return PostgresStore(prepare_postgres(url), secrets=secrets, reach=reach, on_wait=on_wait)


def prepare_postgres(url: str) -> PreparedDatabase:
    """Make the tables of a database or bring them up to date, and open it for writing; waits for the server."""
    with closing(open_database(url)) as connection:
        _forget_old_marks(connection)
        mark, server_time = WriterMark(token=uuid.uuid4().hex), ServerTime()
        server_time.ask(connection)
        writing = PostgresConnection(connection.address, mark)  # before the other one is closed
    if writing.process == connection.process:
        writing.close()
        raise pooled(connection.address)
    return PreparedDatabase(writing=writing, mark=mark, time=server_time)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFacts:
    """What a server says of a database, and the version of its tables: 0 when there are none."""

    place: str
    server: str
    version: int
    newest: int


def look_at_database(url: str) -> DatabaseFacts:
    """Connect to a database and change nothing there."""
    with closing(PostgresConnection(parse_address(url))) as connection:
        server = str(connection.rows("describe_server", {})[0]["server"])
        newest = newest_version(POSTGRES)
        place, version = connection.address.shown, stored_version(connection)
        return DatabaseFacts(place=place, server=server, version=version, newest=newest)


def open_database(url: str) -> PostgresConnection:
    """Open a connection to a database whose tables are made, or brought up to date, first."""
    connection = PostgresConnection(parse_address(url))
    try:
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _forget_old_marks(connection: PostgresConnection) -> None:
    """Forget the marks of writers that crashed long ago."""
    connection.execute("forget_marks", {"low": WRITERS, "high": WRITERS[:-1] + ";", "seconds": MARK_SECONDS})
