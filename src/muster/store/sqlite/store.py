"""The store on one SQLite file, which several processes of one machine may open."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from muster.domain.errors import MusterError, StoreFailed
from muster.domain.run import Driver
from muster.store import claims
from muster.store.codec import Codec
from muster.store.database import deletions
from muster.store.database.store import CallWrites, DatabaseStore, ignore_message, pass_point
from muster.store.queries import (
    DatabaseConnection,
    DatabaseReader,
    Locked,
    migrations,
    newest_version,
    schema,
    upgraded,
)
from muster.store.sqlite.connection import BUSY_SECONDS, Access, SqliteConnection, prepare_file
from muster.store.sqlite.failures import FULL, DiskFull, is_full, is_read_only, lock_holder
from muster.store.sqlite.read_only import find_access, is_current, make_empty, no_store, read_only
from muster.store.writer import CommitSignal, Writer, require_loop

T = TypeVar("T")
LOOK_SECONDS = 0.1
VACUUM_PATIENCE = 10.0  # seconds; shorter than its claim
TURN_SECONDS = 1.0  # for which the writer waits for a lock before it looks whether it still should


def _nothing() -> None:
    """Let go of nothing."""


class SqliteMaintenance:
    """The store as a file."""

    def __init__(
        self,
        path: Path,
        reader: SqliteConnection,
        writer: Writer,
        codec: Codec,
        close: Callable[[], Awaitable[None]],
        refusal: MusterError | None,
    ) -> None:
        self._path, self._reader, self._writer, self._codec = path, reader, writer, codec
        self._close, self._refusal = close, refusal

    async def info(self) -> Mapping[str, Any]:
        """Return where the store is, how large, of which version."""
        sizes = {name: _size(Path(f"{self._path}{end}")) for name, end in (("bytes", ""), ("wal_bytes", "-wal"))}
        return {
            "path": str(self._path),
            "kind": "sqlite",
            "version": self._reader.pragma("user_version"),
            "sqlite": sqlite3.sqlite_version,
            **sizes,
            "free_bytes": self._reader.pragma("freelist_count") * self._reader.pragma("page_size"),
            "unfinished_deletions": len(deletions.unfinished_deletions(self._reader)),
            "check": self._reader.pragma("quick_check"),
        }

    async def vacuum(self, driver: Driver, at: float) -> None:
        """Return free space to the disk; no run may be driven meanwhile."""
        claim = await self._writer.run(lambda database: claims.claim_store(database, driver, at))
        try:
            connection = SqliteConnection(self._path, patience=VACUUM_PATIENCE)
            working = asyncio.ensure_future(asyncio.to_thread(connection.vacuum))
            try:
                await asyncio.shield(working)
            except asyncio.CancelledError:
                connection.interrupt()  # nothing was changed
                await asyncio.wait({working})
                working.exception()
                raise
            finally:
                connection.close()
        finally:
            await self._writer.run(lambda database: claims.unclaim_store(database, claim))

    async def shortage(self) -> MusterError | None:
        """Return what keeps the store from being written to, if anything is known."""
        if self._refusal is not None:
            return self._refusal
        return DiskFull(self._path, FULL) if is_full(self._path) else self._writer.shortage

    def touch(self) -> "asyncio.Future[None]":
        """Begin a write that changes nothing."""
        return self._writer.run(_touch)

    def hide(self, secret: str) -> None:
        """Take a secret out of everything that is written from now on."""
        self._codec.hide(secret)

    def give_up(self) -> None:
        """Wait no longer for a lock of another process, or for room: what cannot be written now fails."""
        self._writer.give_up()

    async def close(self) -> None:
        """Write what is queued and let go of the file."""
        await self._close()


class SqliteReader(DatabaseReader):
    """Reads at once, on one connection: a read of a file is over before a thread would have begun with it."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection, self._loop = connection, asyncio.get_running_loop()

    async def read(self, work: Callable[[DatabaseConnection], T]) -> T:
        """Run some queries that belong together."""
        require_loop(self._loop)
        return work(self._connection)


class SqliteThreadReader(DatabaseReader):
    """Reads in a thread, each time on a connection of its own: for what takes a while."""

    def __init__(self, connect: Callable[[], SqliteConnection]) -> None:
        self._connect = connect

    async def read(self, work: Callable[[DatabaseConnection], T]) -> T:
        """Run some queries that belong together."""
        return await asyncio.to_thread(self._read, work)

    def _read(self, work: Callable[[DatabaseConnection], T]) -> T:
        connection = self._connect()
        try:
            return work(connection)
        finally:
            connection.close()


class SqliteOffers:
    """Takes any commit for an offer: a file does not tell what others wrote, and looking into it costs little."""

    def __init__(self, changes: CommitSignal) -> None:
        self._changes = changes

    def watch(self, wanted: Callable[[str], bool]) -> "SqliteOfferWatch":
        """Return what waits for any commit."""
        return SqliteOfferWatch(self._changes)


class SqliteOfferWatch:
    """Waits for any commit since it waited last."""

    def __init__(self, changes: CommitSignal) -> None:
        self._changes, self._seen = changes, changes.commits

    async def wait(self, seconds: float) -> bool:
        """Wait for the next commit, at most so long; return whether there was one."""
        told = await self._changes.wait(seconds, self._seen)
        self._seen = self._changes.commits
        return told


class SqliteStore(DatabaseStore):
    """All parts of the store on one file; with a `refusal` it can only be read, with the `access` that is left.

    A copy `stands_for` the file that the user knows.
    """

    def __init__(
        self,
        path: Path,
        *,
        secrets: Sequence[str],
        reach: Callable[[str], None],
        on_wait: Callable[[str], None],
        refusal: MusterError | None = None,
        access: Access = Access.SHARED,
        release: Callable[[], None] = _nothing,
        stands_for: Path | None = None,
    ) -> None:
        codec = Codec(secrets)
        writes = CallWrites(codec)
        self._release = release
        self._connection = connection = SqliteConnection(path, access=access)
        self.changes = CommitSignal(lambda: connection.pragma("data_version"), LOOK_SECONDS)
        self.offers = SqliteOffers(self.changes)
        writer = Writer(
            partial(SqliteConnection, path, patience=TURN_SECONDS),
            groups=writes.groups,
            on_commit=self.changes.beat,
            reach=reach,
            on_wait=lambda error: on_wait(_why_it_waits(path, error, writer.count(writes.settles))),
            refusal=refusal,
        )
        reader = SqliteReader(connection)
        # A file that is opened alone has room for no other connection.
        connect = partial(SqliteConnection, path, access=access)
        slow_reader = reader if access is Access.ALONE else SqliteThreadReader(connect)
        super().__init__(reader, slow_reader, writer, codec, writes, on_wait, _require_known_tables)
        self.maintenance = SqliteMaintenance(stands_for or path, connection, writer, codec, self._shut, refusal)

    async def _shut(self) -> None:
        await self._writer.close()
        self._connection.close()
        self._release()


def open_sqlite(
    path: Path,
    *,
    secrets: Sequence[str] = (),
    reach: Callable[[str], None] = pass_point,
    on_wait: Callable[[str], None] = ignore_message,
    create: bool = True,
) -> SqliteStore:
    """Open the store, making the file or bringing it up to date; call inside a running event loop.

    Without `create` a file that is not there is not made: the store is empty, and refuses to be written to.
    """
    missing = not create and not os.path.lexists(path)
    if missing or is_read_only(path):
        found = make_empty(path, migrate) if missing else find_access(path, migrate)
        return SqliteStore(
            found.path,
            secrets=secrets,
            reach=reach,
            on_wait=on_wait,
            refusal=no_store(path) if missing else read_only(path),
            access=found.access,
            release=found.release,
            stands_for=path,
        )
    prepare_file(path)
    try:
        connection = SqliteConnection(path)
        try:
            migrate(connection)
        finally:
            connection.close()
    except StoreFailed as error:
        if not isinstance(error, DiskFull) or not is_current(path, Access.ALONE):
            raise
        return SqliteStore(path, secrets=secrets, reach=reach, on_wait=on_wait, refusal=error, access=Access.ALONE)
    return SqliteStore(path, secrets=secrets, reach=reach, on_wait=on_wait)


def open_file(path: Path) -> SqliteConnection:
    """Open a connection to a file that is made, or brought up to date, first."""
    prepare_file(path)
    connection = SqliteConnection(path)
    try:
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _why_it_waits(path: Path, error: Locked, answers: int) -> str:
    if isinstance(error, DiskFull):
        waiting = "1 answer waits" if answers == 1 else f"{answers} answers wait"
        return (
            f"{error.message}; {waiting} in memory, and no calls are started. "
            f"{error.way[0].upper()}{error.way[1:]}, and it continues by itself; press Ctrl-C twice to wait no longer"
        )
    holder = lock_holder(path)
    who = "another process" if holder is None else f"process {holder}"
    return f"waiting for the store {path}: {who} is writing to it; press Ctrl-C twice to wait no longer"


def migrate(connection: SqliteConnection) -> None:
    """Bring the file up to this version; a newer one is refused."""
    newest = newest_version("sqlite")
    version = connection.pragma("user_version")
    if version > newest:
        raise StoreFailed(
            f"the store {connection.path} has version {version}; this program supports versions up to {newest}",
            suggestions=("upgrade muster, or choose another folder with --home",),
        )
    if version == newest:
        return
    _switch_to_wal(connection)
    with connection.transaction():
        version = connection.pragma("user_version")  # another process may have been faster
        if 0 < version < newest:
            _require_undriven(connection)
        steps = migrations("sqlite") if version else ()
        scripts = [text for number, _, text in steps if number > version] if version else [schema("sqlite")]
        for text in scripts:
            connection.script(text)
        connection.pragma(f"user_version = {newest}")


def _require_undriven(connection: SqliteConnection) -> None:
    """Refuse to change the tables under an older program that is at work: what it is about to write would be lost."""
    driven = connection.rows("select_driven", {"now": time.time()})
    if driven:
        run, pid = driven[0]["id"], driven[0]["driver_pid"]
        raise StoreFailed(
            f"the store {connection.path} must be upgraded, and run {run} is in progress (process {pid})",
            suggestions=("wait until it has ended, or stop it; after a crash wait 15 seconds; then try again",),
        )


def _switch_to_wal(connection: SqliteConnection) -> None:
    """Switch the log on; SQLite does not wait its turn for this, so we do."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.pragma("journal_mode = WAL")
            return
        except Locked as error:
            if isinstance(error, DiskFull) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _require_known_tables(database: DatabaseConnection) -> None:
    """Raise StoreFailed when a newer program has changed the tables since this one opened them."""
    version = database.pragma("user_version") if isinstance(database, SqliteConnection) else 0
    if version > newest_version("sqlite"):
        raise upgraded(version, newest_version("sqlite"))


def _touch(database: DatabaseConnection) -> None:
    _require_known_tables(database)
    database.execute("touch", {})


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
