"""The store on a PostgreSQL database: opened, brought up to date, and looked after."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from muster.domain.canonical import Json
from muster.domain.errors import LeaseLost, StoreFailed
from muster.domain.ids import RunId
from muster.domain.run import Driver, RunState
from muster.store import deletions, runs
from muster.store.base import Claim
from muster.store.codec import Codec
from muster.store.database import DatabaseLeases
from muster.store.parts import CallWrites, DatabaseStore, ignore_message, pass_point
from muster.store.postgres.changes import PostgresChanges
from muster.store.postgres.connection import WRITERS, PostgresConnection, WriterMark
from muster.store.postgres.failures import PostgresAddress, parse_address
from muster.store.postgres.server_time import ServerTime
from muster.store.queries import POSTGRES, DatabaseConnection, DatabaseReader, Locked, Locks, migrations
from muster.store.tables import TABLES
from muster.store.writer import Writer

READERS = 4  # connections of a process that only read
REST = 0.01  # seconds between two commits, of a writer that is busy: each is a dozen round trips
BEAT_PATIENCE = 10.0  # seconds for which a driver goes on without an answer; a lease of 15 is renewed every second
READ_PATIENCE = 30.0  # seconds for which a read waits for a server that is away
SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
MIGRATION = "migration"  # the lock under which tables are made and changed
MARK_SECONDS = 30 * 86_400  # after which the mark of a writer that crashed is forgotten

T = TypeVar("T")


class PostgresReader(DatabaseReader):
    """Reads in threads, each on a connection of its own; a read whose connection was lost is made again."""

    def __init__(self, address: PostgresAddress, server_time: ServerTime) -> None:
        self._address, self._time = address, server_time
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="muster-reader")
        self._idle: list[PostgresConnection] = []
        self._gives_up = False
        self._doubts_tables = False

    async def read(self, work: Callable[[DatabaseConnection], T]) -> T:
        """Run some queries that belong together."""
        loop, since, pause = asyncio.get_running_loop(), time.monotonic(), SHORTEST_PAUSE
        while True:
            try:
                return await loop.run_in_executor(self._threads, self._read, work)
            except Locked:
                if self._gives_up or time.monotonic() - since > READ_PATIENCE:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _read(self, work: Callable[[DatabaseConnection], T]) -> T:
        connection = self._idle.pop() if self._idle else PostgresConnection(self._address)
        try:
            if self._time.is_stale:
                self._time.ask(connection)
                self._doubts_tables = True
            if self._doubts_tables:
                require_known_tables(connection)  # every read fails from then on, not only the one that looked first
                self._doubts_tables = False
            return work(connection)
        finally:
            if connection.is_lost:
                connection.close()
            else:
                self._idle.append(connection)

    def give_up(self) -> None:
        """Wait no longer for a server that is away."""
        self._gives_up = True

    async def close(self) -> None:
        """End the threads and their connections."""
        await asyncio.to_thread(self._threads.shutdown)
        for connection in self._idle:
            connection.close()


class PostgresLeases(DatabaseLeases):
    """Who drives which run; a driver whom the server does not answer stops before another may take its run over."""

    def _claim(self, run: RunId, driver: Driver, epoch: int, at: float, until: float) -> Awaitable[Claim]:
        def work(database: DatabaseConnection) -> Claim:
            require_known_tables(database)  # once it is claimed, nobody changes them
            return runs.claim(
                database, codec=self._codec, run=run, driver=driver, expected_epoch=epoch, at=at, until=until
            )

        return self._writer.run(work, Locks(runs=(run,)))

    async def beat(self, run: RunId, epoch: int, until: float, active: float, state: RunState) -> bool:
        """Keep the lease; return whether somebody asked to cancel; raises LeaseLost without an answer in time."""
        beating = asyncio.ensure_future(super().beat(run, epoch, until, active, state))
        answered, _ = await asyncio.wait({beating}, timeout=BEAT_PATIENCE)
        if not answered:
            beating.add_done_callback(lambda late: late.cancelled() or late.exception())  # nobody waits for it
            raise LeaseLost(
                f"the store has not answered for {BEAT_PATIENCE:g} s; run {run} is left to another worker",
                suggestions=(f"muster runs resume {run}",),
            )
        return beating.result()


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
        claim = await self._writer.run(lambda database: runs.claim_store(database, driver, at))
        try:
            await asyncio.to_thread(self._vacuum)
        finally:
            await self._writer.run(lambda database: runs.unclaim_store(database, claim))

    def _vacuum(self) -> None:
        connection = PostgresConnection(self._address)
        try:
            connection.script(f"VACUUM (FULL, ANALYZE) {', '.join(TABLES)}")
        finally:
            connection.close()

    async def shortage(self) -> str | None:
        """Return None: what keeps a server from writing is known when it refuses to."""
        return None

    def touch(self) -> "asyncio.Future[None]":
        """Begin a write and end it without one."""
        return self._writer.run(lambda database: None)

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
    ) -> None:
        codec, address = Codec(secrets), prepared.writing.address
        writes = CallWrites(codec)
        self._pool = reader = PostgresReader(address, prepared.time)
        self.changes = PostgresChanges(address, reader, prepared.mark.token)
        writer = Writer(
            lambda: prepared.writing,
            groups=writes.groups,
            on_commit=self.changes.beat,
            reach=reach,
            rest=REST,
            on_wait=lambda: on_wait(
                f"waiting for the store {address}: its server does not answer, or another process is writing to it; "
                "press Ctrl-C twice to wait no longer"
            ),
        )
        super().__init__(reader, reader, writer, codec, writes, on_wait)
        self.time = prepared.time
        self.leases = PostgresLeases(writer, codec, on_wait)
        self.maintenance = PostgresMaintenance(address, reader, writer, codec, self._shut)

    async def _shut(self) -> None:
        await self._writer.close()
        await self.changes.close()
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
    return PreparedDatabase(writing=PostgresConnection(connection.address, mark), mark=mark, time=server_time)


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
        newest = migrations(POSTGRES)[-1][0]
        place, version = connection.address.shown, _version(connection)
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


def migrate(connection: PostgresConnection) -> None:
    """Bring the tables up to this version, one process at a time; a newer one is refused."""
    steps = migrations(POSTGRES)
    if _version(connection) == steps[-1][0]:
        return
    with connection.transaction():
        connection.lock(lambda: Locks(names=(MIGRATION,)))
        version = _version(connection)  # another process may have been faster
        if version > steps[-1][0]:
            raise StoreFailed(
                f"the store {connection.address} has version {version}; "
                f"this program supports versions up to {steps[-1][0]}",
                suggestions=("upgrade muster, or use another database",),
            )
        if version == 0:
            connection.execute("make_schema", {})
        elif version < steps[-1][0]:
            _require_undriven(connection)
        for number, _, text in steps:
            if number > version:
                connection.script(text)
                connection.execute("put_version", {"version": number})


def require_known_tables(database: DatabaseConnection) -> None:
    """Raise StoreFailed when a newer program has changed the tables since this one opened them."""
    version, newest = database.rows("select_version", {})[0]["version"], migrations(POSTGRES)[-1][0]
    if version > newest:
        raise StoreFailed(
            f"the store was upgraded to version {version} while it was open; "
            f"this program supports versions up to {newest}",
            suggestions=("end this process and start it again with the new version of muster",),
        )


def _version(connection: PostgresConnection) -> int:
    if not connection.rows("find_schema", {})[0]["found"]:
        return 0
    return int(connection.rows("select_version", {})[0]["version"] or 0)


def _require_undriven(connection: PostgresConnection) -> None:
    """Refuse to change the tables under an older program that is at work: what it is about to write would be lost."""
    driven = connection.rows("select_driven", connection.rows("select_time", {})[0])
    if driven:
        run, host = driven[0]["id"], driven[0]["driver_host"]
        raise StoreFailed(
            f"the store {connection.address} must be upgraded, and run {run} is in progress on {host}",
            suggestions=("wait until it has ended, or stop it; after a crash wait 15 seconds; then try again",),
        )


def _forget_old_marks(connection: PostgresConnection) -> None:
    """Forget the marks of writers that crashed long ago."""
    for row in connection.rows("select_traits", {"low": WRITERS, "high": WRITERS[:-1] + ";"}):
        if float(row["value"].split()[1]) < time.time() - MARK_SECONDS:
            connection.execute("delete_trait", {"name": row["name"], "value": row["value"]})
