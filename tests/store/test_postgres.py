"""The store as a database: versions, refusals, lost connections, notifications, and several processes."""

import asyncio
import contextlib
import os
import queue
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

import muster
from muster.app.base.stores import open_store
from muster.domain.budget import Granted
from muster.domain.entry import EntryKind
from muster.domain.errors import BadArgument, BadConfiguration, Conflict, LeaseLost, MusterError, StoreFailed
from muster.domain.ids import RunId
from muster.domain.run import RunState
from muster.engine.drive import LEASE_SECONDS
from muster.settings import load_settings
from muster.store.base import Record
from muster.store.postgres.store import PostgresStore, open_database, open_postgres, prepare_postgres
from muster.store.queries import migrations
from muster.testing.stores import DRIVER, NOW, driven, new_run, opening, replied, settling
from muster.testing.stores.values import OTHER
from tests.postgres import postgres_server
from tests.transaction_pooler import TransactionPooler

NEWEST = migrations("postgres")[-1][0]

PASSWORD = "hunter2-and-more"


@contextlib.asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresStore]:
    store = open_postgres(url)
    try:
        yield store
    finally:
        await store.maintenance.close()


def query(url: str, text: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as database:
        cursor = database.execute(text.encode())
        return cursor.fetchall() if cursor.description else []


async def test_what_was_written_is_there_when_it_is_opened_again(database_url: str) -> None:
    async with opened(database_url) as store:
        run, claim = await driven(store)
        one = opening(run, claim.epoch, "k")
        await store.journal.open(one)
        await store.journal.settle(settling(one, replied(40)))
    async with opened(database_url) as again:
        entry = await again.journal.find(run, "k")
        assert entry is not None
        assert entry.reply == replied(40).reply
        info = await again.maintenance.info()
    assert (info["kind"], info["version"], info["check"]) == ("postgresql", NEWEST, "ok")
    assert (
        query(database_url, "SELECT name FROM traits WHERE name LIKE 'writer:%'") == []
    )  # marks end with their writers


async def test_marks_of_writers_are_dated_and_forgotten_by_the_clock_of_the_server(database_url: str) -> None:
    name, day = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"], 86_400
    for statement in (
        "CREATE SCHEMA behind",
        "CREATE FUNCTION behind.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
        "$$ SELECT pg_catalog.clock_timestamp() - interval '60 days' $$",
        f"ALTER DATABASE {name} SET search_path = behind, pg_catalog, public",
        f"INSERT INTO traits VALUES ('writer:a', '1 {time.time() - 61 * day:.0f}')",  # a day old, there
        f"INSERT INTO traits VALUES ('writer:b', '1 {time.time() - 100 * day:.0f}')",
    ):
        query(database_url, statement)
    async with opened(database_url) as store:
        await store.runs.create(new_run("run1"))
        marks = query(database_url, "SELECT value FROM traits WHERE name LIKE 'writer:%'")
    ages = sorted(round((time.time() - float(str(value).split()[1])) / day) for (value,) in marks)
    assert ages == [60, 61]


async def test_the_order_of_texts_is_that_of_their_bytes_whatever_the_language_of_the_server(database_url: str) -> None:
    async with opened(database_url):
        other = query(
            database_url,
            "SELECT attrelid::regclass::text, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid "
            "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND atttypid = 'text'::regtype "
            "AND attcollation <> '\"C\"'::regcollation",
        )
    assert other == []


def test_many_who_open_an_empty_database_make_its_tables_once(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("DROP DATABASE IF EXISTS made_by_many")
        server.execute("CREATE DATABASE made_by_many")
    url = psycopg.conninfo.make_conninfo(postgres, dbname="made_by_many")
    code = (
        "import asyncio, sys; from muster.store.postgres.store import open_postgres\n"
        "async def main(): await open_postgres(sys.argv[1]).maintenance.close()\n"
        "asyncio.run(main())"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, url], stderr=subprocess.PIPE) for _ in range(4)]
    assert [(process.communicate()[1], process.returncode) for process in started] == [(b"", 0)] * 4
    assert query(url, "SELECT COUNT(*), MAX(version) FROM muster_schema") == [(NEWEST, NEWEST)]


async def test_a_store_of_a_newer_version_is_refused(database_url: str) -> None:
    query(database_url, "INSERT INTO muster_schema (version) VALUES (999)")
    with pytest.raises(StoreFailed, match=rf"has version 999; this program supports versions up to {NEWEST}\b"):
        open_postgres(database_url)


async def test_a_store_is_not_upgraded_while_a_run_is_in_progress(database_url: str) -> None:
    async with opened(database_url) as store:
        run = await store.runs.create(new_run("run1"))
        await store.leases.claim(run.id, DRIVER, 0, NOW, 9e9)
        query(database_url, f"DELETE FROM muster_schema WHERE version = {NEWEST}")
        with pytest.raises(StoreFailed, match="must be upgraded, and run run1 is in progress on here"):
            open_postgres(database_url)


@pytest.mark.parametrize(
    "harm",
    ["DROP TABLE runs", "DROP TABLE muster_schema", "INSERT INTO muster_schema (version) VALUES (999)"],
)
async def test_a_store_that_cannot_be_used_is_noticed_by_a_touch(database_url: str, harm: str) -> None:
    async with opened(database_url) as store:
        await store.maintenance.touch()
        query(database_url, harm)
        end_sessions(database_url)
        with pytest.raises(StoreFailed, match=r"has lost tables|was upgraded to version 999"):
            await store.maintenance.touch()


async def test_writes_wait_while_the_server_is_read_only_as_in_a_failover(database_url: str) -> None:
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    async with opened(database_url) as store:
        query(database_url, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        end_sessions(database_url)
        creating = asyncio.ensure_future(store.runs.create(new_run("run1")))
        with pytest.raises(StoreFailed, match=r"cannot be written: .*read-only"):
            await asyncio.to_thread(prepare_postgres, database_url)
        assert not creating.done()
        with psycopg.connect(database_url, autocommit=True) as session:
            session.execute("SET default_transaction_read_only = off")
            session.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        assert (await asyncio.wait_for(creating, 60)).id == "run1"


def end_sessions(url: str) -> None:
    """Do to its sessions what a server does that is started again."""
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
    query(url, ended + "AND datname = current_database()")


async def test_a_touch_is_no_change_for_whoever_waits_for_one(database_url: str) -> None:
    async with opened(database_url) as here, opened(database_url) as there:
        for store in (here, there):
            await store.changes.wait(0.01, store.changes.commits)  # begins to listen
            while await store.changes.wait(0.3, store.changes.commits):
                pass
        number = "SELECT pg_snapshot_xmax(pg_current_snapshot())"
        before = query(database_url, number)
        waiting = [asyncio.ensure_future(store.changes.wait(0.3, store.changes.commits)) for store in (here, there)]
        await here.maintenance.touch()
        assert query(database_url, number) == before  # the slow look sees nothing either
        assert await asyncio.gather(*waiting) == [False, False]


async def read_for_ever(store: PostgresStore) -> None:
    while True:
        await store.runs.get(RunId("run1"))


async def test_whoever_has_a_store_open_that_is_upgraded_claims_no_run_any_more(database_url: str) -> None:
    async with opened(database_url) as store:
        await store.runs.create(new_run("run1"))
        with psycopg.connect(database_url, autocommit=True) as session:
            session.execute("INSERT INTO muster_schema (version) VALUES (999)")
        with pytest.raises(StoreFailed, match="was upgraded to version 999 while it was open"):
            await store.leases.claim(RunId("run1"), DRIVER, 0, NOW, NOW + 15)
        with pytest.raises(StoreFailed, match="was upgraded"):
            await read_for_ever(store)  # a worker reads all the time, and notices after some seconds


async def test_whoever_has_a_store_open_that_is_upgraded_starts_no_run_any_more(database_url: str) -> None:
    async with opened(database_url) as store:
        await store.runs.create(new_run("run1"))
        query(database_url, "INSERT INTO muster_schema (version) VALUES (999)")
        with pytest.raises(StoreFailed, match="was upgraded to version 999 while it was open"):
            await store.runs.create(new_run("run2"))


async def test_a_server_that_is_starting_is_waited_for_and_that_is_told_once() -> None:
    told = list[str]()
    with postgres_server() as server:
        settings = load_settings(environment={"MUSTER_DATABASE_URL": server.url()})
        server.kill()

        def start(words: str) -> None:
            told.append(words)
            server.start()

        store = await open_store(settings, on_wait=start, start_secs=60)
        await store.maintenance.close()
    assert len(told) == 1
    assert told[0].endswith("; waiting up to 60 seconds for it to start")


async def test_a_server_that_does_not_start_is_waited_for_only_so_long() -> None:
    told, settings = list[str](), load_settings(environment={"MUSTER_DATABASE_URL": "postgresql://me@127.0.0.1:1/shop"})
    with pytest.raises(StoreFailed, match="cannot be reached"):
        await open_store(settings, on_wait=told.append, start_secs=1.2)
    assert len(told) == 1
    with pytest.raises(StoreFailed, match="cannot be reached"):
        await open_store(settings, on_wait=told.append)
    assert len(told) == 1


def answer_with_tls(listener: socket.socket) -> None:
    """Say to the next client that TLS is spoken, as a server does before any certificate is looked at."""
    connection, _ = listener.accept()
    with connection:
        connection.recv(8)
        connection.sendall(b"S")
        connection.recv(1)


async def test_a_missing_ca_file_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = asyncio.ensure_future(asyncio.to_thread(answer_with_tls, listener))
        port, file = listener.getsockname()[1], quote(str(tmp_path / "ca.pem"), safe="")
        url = f"postgresql://me@127.0.0.1:{port}/shop?sslmode=verify-full&sslrootcert={file}"
        with pytest.raises(StoreFailed, match="the file of sslrootcert is missing") as refused:
            await asyncio.to_thread(open_database, url)
        await answering
    assert "ca.pem" in refused.value.message
    assert "sslrootcert" in refused.value.suggestions[0]


async def test_a_pooler_in_transaction_mode_is_named_when_the_store_is_opened(database_url: str) -> None:
    place = {name: str(value) for name, value in psycopg.conninfo.conninfo_to_dict(database_url).items()}
    pooler = TransactionPooler(Path(place["host"]) / ".s.PGSQL.5432", place["dbname"], place["user"])
    with pooler.listening() as port:
        url = f"postgresql://{place['user']}@127.0.0.1:{port}/{place['dbname']}"
        with pytest.raises(StoreFailed, match="pooler in transaction mode, such as PgBouncer: two sessions are one"):
            await asyncio.to_thread(prepare_postgres, url)


async def test_a_session_that_has_lost_what_was_prepared_names_poolers_in_transaction_mode(database_url: str) -> None:
    with contextlib.closing(open_database(database_url)) as connection:
        for _ in range(2):  # what is used twice is prepared
            connection.now()
        connection.raw.execute("DEALLOCATE ALL")
        with pytest.raises(StoreFailed, match="pooler in transaction mode, such as PgBouncer") as refused:
            connection.now()
    assert "pool_mode = session" in refused.value.suggestions[0]


async def test_a_server_that_is_down_is_told_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed) as refused:
        open_postgres(f"postgresql://me:{PASSWORD}@127.0.0.1:1/shop")
    assert "postgresql://me@127.0.0.1:1/shop cannot be reached" in refused.value.message
    assert PASSWORD not in repr((refused.value, refused.value.suggestions, refused.value.__cause__))


async def test_of_several_servers_all_are_told_without_the_password() -> None:
    with pytest.raises(StoreFailed) as refused:
        open_postgres(f"postgresql://me:{PASSWORD}@127.0.0.1:1,localhost:2/shop")
    assert "postgresql://me@127.0.0.1:1,localhost:2/shop cannot be reached" in refused.value.message
    assert PASSWORD not in refused.value.message


async def test_a_second_server_is_used_when_the_first_is_away(database_url: str) -> None:
    place = psycopg.conninfo.conninfo_to_dict(database_url)
    second = f"{quote(str(place['host']), safe='')}:5432/{place['dbname']}"
    url = f"postgresql://muster@127.0.0.1:1,{second}"
    settings = load_settings(environment={"MUSTER_DATABASE_URL": url})
    async with muster.open(settings=settings) as m:
        assert (await m.store.info())[
            "path"
        ] == f"postgresql://muster@127.0.0.1:1,{place['host']}:5432/{place['dbname']}"


@pytest.mark.parametrize("place", ["[oops/shop", f"{PASSWORD}@127.0.0.1:1/shop"])
async def test_what_is_not_an_address_is_told_without_the_password(place: str) -> None:
    with pytest.raises(BadConfiguration) as refused:
        open_postgres(f"postgresql://me:{PASSWORD}@{place}")
    assert PASSWORD not in repr((refused.value.message, refused.value.suggestions))


async def test_a_wrong_password_and_an_unknown_database_are_told_apart() -> None:
    with postgres_server(password=PASSWORD) as server:
        async with opened(server.url(password=PASSWORD)):
            pass
        with pytest.raises(StoreFailed, match="refuses the password"):
            open_postgres(server.url(password="wrong"))
        with pytest.raises(StoreFailed, match="wants a password"):
            open_postgres(server.url())
        with pytest.raises(StoreFailed, match="does not know it") as unknown:
            open_postgres(server.url("nowhere", PASSWORD))
        assert PASSWORD not in unknown.value.message


async def test_a_text_that_postgres_cannot_store_is_refused_by_name(database_url: str) -> None:
    async with opened(database_url) as store:
        with pytest.raises(BadArgument, match="NUL"):
            await store.pool.set_context("name", "a\x00b", NOW)
        await store.pool.set_context("name", "a b", NOW)


async def test_reads_leave_the_event_loop_free(database_url: str) -> None:
    async with opened(database_url) as store:
        run, _ = await driven(store)
        with psycopg.connect(database_url) as other:
            other.execute("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE")
            reading = asyncio.ensure_future(store.runs.get(run))
            assert await store.batches.select() == []  # another read is answered meanwhile
            assert not reading.done()
            other.rollback()
        assert await reading is not None


async def test_a_commit_of_another_process_wakes_whoever_waits(database_url: str) -> None:
    async with opened(database_url) as here, opened(database_url) as there:
        await here.changes.wait(0.01, here.changes.commits)  # begins to listen
        while await here.changes.wait(0.3, here.changes.commits):
            pass
        waiting = asyncio.ensure_future(here.changes.wait(60, here.changes.commits))
        await there.runs.create(new_run("run1"))
        assert await waiting


async def test_the_heartbeats_of_a_process_are_one_transaction_with_one_statement(database_url: str) -> None:
    async with opened(database_url) as store:
        claims = []
        for number in range(3):
            run = (await store.runs.create(new_run(f"run{number}"))).id
            claims.append((run, await store.leases.claim(run, DRIVER, 0, NOW, NOW + LEASE_SECONDS)))
        await store.runs.cancel(claims[1][0], NOW)
        (before,) = query(database_url, "SELECT split_part(value, ' ', 1) FROM traits WHERE name LIKE 'writer:%'")
        beats = [store.leases.beat(run, claim.epoch, NOW + 15, 1.0, RunState.RUNNING) for run, claim in claims]
        lost = store.leases.beat(claims[2][0], 7, NOW + 15, 1.0, RunState.RUNNING)
        found = await asyncio.gather(*beats, lost, return_exceptions=True)
        assert (found[:3], type(found[3])) == ([False, True, False], LeaseLost)
        (after,) = query(database_url, "SELECT split_part(value, ' ', 1) FROM traits WHERE name LIKE 'writer:%'")
        assert int(str(after[0])) == int(str(before[0])) + 1


async def test_a_listener_whose_connection_is_ended_listens_again(database_url: str) -> None:
    async with opened(database_url) as here, opened(database_url) as there:
        await here.changes.wait(0.01, here.changes.commits)
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN muster'"
        while not query(database_url, ended):  # the server tells nobody when somebody listens
            await here.changes.wait(0.01, here.changes.commits)
        for number in range(3):
            waiting = asyncio.ensure_future(here.changes.wait(60, here.changes.commits))
            await there.runs.create(new_run(f"run{number}"))
            assert await waiting


async def test_connections_that_are_opened_after_the_listener_lost_its_own_can_be_used() -> None:
    """libpq closes the socket of a lost session by itself; whoever gets its number next must not be taken for it."""
    with postgres_server() as server:
        async with opened(server.url()) as store:
            while not query(server.url(), "SELECT 1 FROM pg_stat_activity WHERE query = 'LISTEN muster'"):
                await store.changes.wait(0.01, store.changes.commits)
            await asyncio.to_thread(server.stop)
            echo = await asyncio.start_server(_echo, "127.0.0.1", 0)
            async with echo, asyncio.timeout(60):
                port = echo.sockets[0].getsockname()[1]
                for _ in range(2):  # whatever number is free is used by one of them
                    pairs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
                    for reader, writer in pairs:
                        writer.write(b"hello\n")
                        assert await reader.readline() == b"hello\n"
                        writer.close()
            await asyncio.to_thread(server.start)


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()


class CuttingProxy:
    """Passes sessions on to a server, and cuts one off at its next commit: before it arrives, or after it is done."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self._port: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._over: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        self.cut: str | None = None
        self.cuts = 0
        self.refuses = False  # sessions after the next cut
        self._serving: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    @contextlib.contextmanager
    def listening(self) -> Iterator[int]:
        """Listen in a thread of its own: a store is opened without giving the loop a turn."""
        thread = threading.Thread(target=lambda: asyncio.run(self._listen()), daemon=True)
        thread.start()
        try:
            yield self._port.get()
        finally:
            self._loop.call_soon_threadsafe(self._over.set)
            thread.join()

    async def _listen(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port.put(server.sockets[0].getsockname()[1])
        await self._over.wait()
        server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._writers.append(writer)
        if self.refuses and self.cuts:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            return
        far_reader, far_writer = await asyncio.open_unix_connection(str(self._server))
        silent = asyncio.Event()
        back = asyncio.ensure_future(_pass_back(far_reader, writer, silent))
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                if self.cut is not None and b"COMMIT" in data:
                    how, self.cut, self.cuts = self.cut, None, self.cuts + 1
                    if how == "before":
                        break
                    silent.set()
                    back.add_done_callback(lambda _: reader.feed_eof())
                far_writer.write(data)
                await far_writer.drain()
        back.cancel()
        for one in (writer, far_writer):
            one.transport.abort()


async def _pass_back(far_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, silent: asyncio.Event) -> None:
    """Pass answers on; when it is to be silent, only until the server says that it has committed."""
    with contextlib.suppress(ConnectionError):
        while data := await far_reader.read(65536):
            if not silent.is_set():
                writer.write(data)
                await writer.drain()
            elif b"COMMIT" in data:
                return


@pytest.mark.parametrize("cut", ["before", "after"])
async def test_a_write_whose_commit_was_not_answered_is_there_once(database_url: str, cut: str) -> None:
    place = psycopg.conninfo.conninfo_to_dict(database_url)
    proxy = CuttingProxy(Path(str(place["host"])) / ".s.PGSQL.5432")
    with proxy.listening() as port:
        async with opened(f"postgresql://muster@127.0.0.1:{port}/{place['dbname']}") as store:
            run, claim = await driven(store)
            for number in range(5):
                proxy.cut = cut
                assert await store.journal.open(opening(run, claim.epoch, f"k{number}")) == Granted()
                proxy.cut = cut
                await store.events.append(run, claim.epoch, "told", {"number": number}, NOW)
            events = await store.events.read(run, 0, 100)
            found = await store.runs.get(run)
    assert proxy.cuts == 10
    assert found is not None
    assert (found.calls.total, found.spent.reserved) == (5, 500)
    assert [event.data["number"] for event in events if event.kind == "told"] == [0, 1, 2, 3, 4]


async def test_whoever_gives_up_a_commit_that_was_not_answered_is_told_that_nobody_knows(database_url: str) -> None:
    place = psycopg.conninfo.conninfo_to_dict(database_url)
    proxy, told = CuttingProxy(Path(str(place["host"])) / ".s.PGSQL.5432"), asyncio.Queue[str]()
    with proxy.listening() as port:
        url = f"postgresql://muster@127.0.0.1:{port}/{place['dbname']}"
        store = open_postgres(url, on_wait=told.put_nowait)
        run, claim = await driven(store)
        proxy.cut, proxy.refuses = "after", True
        one = asyncio.ensure_future(store.journal.open(opening(run, claim.epoch, "k")))
        await told.get()
        store.maintenance.give_up()
        with pytest.raises(StoreFailed, match="it is not known whether the last writes are stored"):
            await one
        await store.maintenance.close()


async def test_writes_and_reads_wait_for_a_server_that_is_started_again() -> None:
    with postgres_server() as server:
        async with opened(server.url()) as store:
            run, claim = await driven(store)
            await asyncio.to_thread(server.stop)
            one = asyncio.ensure_future(store.journal.open(opening(run, claim.epoch, "k")))
            reading = asyncio.ensure_future(store.runs.get(run))
            await asyncio.to_thread(server.start)
            assert await one == Granted()
            assert await reading is not None


async def test_what_waits_for_a_server_that_is_away_ends_when_it_is_given_up() -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    with postgres_server() as server:
        store = open_postgres(server.url(), on_wait=told.put_nowait)
        run, claim = await driven(store)
        await asyncio.to_thread(server.stop)
        one = asyncio.ensure_future(store.journal.open(opening(run, claim.epoch, "k")))
        words = await told.get()
        store.maintenance.give_up()
        with pytest.raises(StoreFailed, match=r"cannot be reached|was lost"):
            await one
        await store.maintenance.close()
        await asyncio.to_thread(server.start)
    assert "waiting for the store postgresql://muster@" in words


async def test_sessions_that_the_server_ends_are_opened_again(database_url: str) -> None:
    async with opened(database_url) as store:
        run, claim = await driven(store)
        for number in range(10):
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            query(database_url, ended + "AND datname = current_database()")
            record = Record(
                run=run, epoch=claim.epoch, key=f"s{number}", kind=EntryKind.STEP, digest="d", value=number, at=NOW
            )
            assert await store.journal.record(record) == number
            assert await store.journal.find(run, f"s{number}") is not None


async def test_a_backup_is_restored_into_another_database(database_url: str, postgres: str, tmp_path: Path) -> None:
    async with opened(database_url) as store:
        run, claim = await driven(store)
        one = opening(run, claim.epoch, "k")
        await store.journal.open(one)
        await store.journal.settle(settling(one, replied(40)))
        file = tmp_path / "muster.dump"
        await _tool("pg_dump", "--format=custom", f"--file={file}", database_url)
    with psycopg.connect(postgres, autocommit=True) as server:
        server.execute("DROP DATABASE IF EXISTS restored")
        server.execute("CREATE DATABASE restored")
    url = psycopg.conninfo.make_conninfo(postgres, dbname="restored")
    await _tool("pg_restore", "--no-owner", f"--dbname={url}", str(file))
    async with opened(url) as restored:
        entry = await restored.journal.find(run, "k")
        assert entry is not None
        assert entry.reply == replied(40).reply
        again = opening(run, claim.epoch, "another")  # positions go on where they were
        assert await restored.journal.open(again) == Granted()


async def _tool(name: str, *arguments: str) -> None:
    found = shutil.which(name) or str(sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))[-1])
    process = await asyncio.create_subprocess_exec(found, *arguments, stderr=asyncio.subprocess.PIPE)
    _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()


async def test_space_is_given_back_while_nobody_works(database_url: str) -> None:
    async with opened(database_url) as store:
        await store.maintenance.vacuum(DRIVER, NOW)
        assert await store.maintenance.shortage() is None
        await store.maintenance.touch()


WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
CLAIM_ENDS = "SELECT CAST(value AS json) ->> 'until' FROM traits WHERE name = 'claim'"


async def test_a_vacuum_that_takes_long_keeps_its_claim(database_url: str) -> None:
    async with opened(database_url) as store:
        run = await store.runs.create(new_run("run1"))
        with psycopg.connect(database_url) as other:
            other.execute("LOCK TABLE workers IN ACCESS SHARE MODE")
            vacuuming = asyncio.ensure_future(store.maintenance.vacuum(OTHER, NOW))
            while not (first := query(database_url, CLAIM_ENDS)):
                await store.changes.wait(0.01, store.changes.commits)
            while query(database_url, CLAIM_ENDS) == first:
                await store.changes.wait(0.01, store.changes.commits)
            claiming = asyncio.ensure_future(store.leases.claim(run.id, DRIVER, 0, NOW + 15, NOW + 30))
            with pytest.raises(Conflict, match=f"process {OTHER.pid} on {OTHER.host} is vacuuming the store"):
                await store.maintenance.vacuum(DRIVER, NOW + 15)
            other.rollback()
        await vacuuming
        assert (await claiming).epoch == 1
        assert query(database_url, CLAIM_ENDS) == []


async def test_a_vacuum_sees_a_run_that_is_just_being_claimed(database_url: str) -> None:
    async with opened(database_url) as store:
        await store.runs.create(new_run("run1"))
        with psycopg.connect(database_url) as claiming:
            claiming.execute("SELECT pg_advisory_xact_lock_shared(hashtextextended('claims', 0))")
            claiming.execute(
                "UPDATE runs SET state = 'running', driver_pid = 1, driver_host = 'far', lease_until = 9e9"
            )
            vacuuming = asyncio.ensure_future(store.maintenance.vacuum(OTHER, NOW))
            while not query(database_url, WAITS):
                await store.changes.wait(0.01, store.changes.commits)
            claiming.commit()
        with pytest.raises(Conflict, match="run1 by process 1 on far"):
            await vacuuming


async def test_a_run_is_claimed_only_when_a_vacuum_has_looked_whether_runs_are_driven(database_url: str) -> None:
    async with opened(database_url) as store:
        run = await store.runs.create(new_run("run1"))
        with psycopg.connect(database_url) as looking:
            looking.execute("SELECT pg_advisory_xact_lock(hashtextextended('claims', 0))")
            claiming = asyncio.ensure_future(store.leases.claim(run.id, DRIVER, 0, NOW, NOW + 15))
            while not query(database_url, WAITS):
                await store.changes.wait(0.01, store.changes.commits)
            assert not claiming.done()
        assert (await claiming).epoch == 1


async def test_a_driver_that_is_cut_off_stops_before_its_lease_ends(database_url: str, tmp_path: Path) -> None:
    place = psycopg.conninfo.conninfo_to_dict(database_url)
    proxy = CuttingProxy(Path(str(place["host"])) / ".s.PGSQL.5432")
    command = ["sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 600"]
    (tmp_path / "muster.toml").write_text(f'[agents.slow]\nkind = "program"\nmode = "plain"\ncommand = {command}\n')
    with proxy.listening() as port:
        url = f"postgresql://muster@127.0.0.1:{port}/{place['dbname']}"
        settings = load_settings(tmp_path, folder=tmp_path, environment={"MUSTER_DATABASE_URL": url})
        async with muster.open(settings=settings) as m:
            run = await m.start("ask", {"agent": "slow", "prompt": "x"})
            while not (await run.run()).calls.total or not (tmp_path / "pid").exists():
                pass
            proxy.cut, proxy.refuses, since = "before", True, time.monotonic()
            with pytest.raises(MusterError, match=r"has not answered for \d+ s"):
                await run.wait()
            assert time.monotonic() - since < LEASE_SECONDS
            with pytest.raises(ProcessLookupError):
                os.kill(int((tmp_path / "pid").read_text()), 0)
            proxy.refuses = False


async def test_a_beat_that_was_answered_late_leaves_less_time_for_the_next(database_url: str) -> None:
    now = 100.0
    store = PostgresStore(prepare_postgres(database_url), monotonic=lambda: now)
    run, claim = await driven(store)
    with psycopg.connect(database_url) as other:
        other.execute("SELECT id FROM runs FOR UPDATE")
        late = asyncio.ensure_future(store.leases.beat(run, claim.epoch, NOW + 15, 0.0, RunState.RUNNING))
        while not query(database_url, WAITS):
            await store.changes.wait(0.01, store.changes.commits)
        now += 9.8
        other.rollback()
        assert await late is False
        other.execute("SELECT id FROM runs FOR UPDATE")
        since = time.monotonic()
        with pytest.raises(LeaseLost, match=r"has not answered for \d+ s"):
            await store.leases.beat(run, claim.epoch, NOW + 25, 0.0, RunState.RUNNING)
        assert time.monotonic() - since < 5.2  # what is left of the lease
        other.rollback()
    await store.maintenance.close()
