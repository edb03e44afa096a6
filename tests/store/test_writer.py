"""The writer when something goes wrong around it: nobody waits for ever, and nothing that is paid for is dropped."""

import asyncio
import contextlib
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from muster.domain.errors import MusterError, StoreFailed
from muster.store.queries import DatabaseConnection
from muster.store.sqlite.connection import SqliteConnection
from muster.store.sqlite.store import open_sqlite
from muster.store.writer import WriteGroup, Writer
from muster.testing.stores import NOW, OTHER, driven, new_run, opening, replied, settling

PATIENCE = 120.0


def counted(database: DatabaseConnection, items: Sequence[int]) -> Sequence[int | MusterError]:
    return items


def fatal(database: DatabaseConnection, items: Sequence[int]) -> Sequence[int | MusterError]:
    raise SystemExit("out of everything")


def writer_of(path: Path, *groups: WriteGroup[int, int], on_commit: Callable[[], None] = lambda: None) -> Writer:
    return Writer(
        partial(SqliteConnection, path, patience=0.05), groups=groups, on_commit=on_commit, reach=lambda point: None
    )


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "home" / "muster.db"
    await open_sqlite(path).maintenance.close()
    return path


async def test_when_the_writing_thread_ends_everybody_who_waits_gets_the_error(path: Path) -> None:
    good, bad = WriteGroup(counted), WriteGroup(fatal)
    writer = writer_of(path, good, bad)
    waiting = [writer.submit(good, 1), writer.submit(bad, 2), writer.submit(good, 3)]
    for future in waiting:
        with pytest.raises(StoreFailed, match=r"thread that writes to the store ended unexpectedly.*out of everything"):
            await asyncio.wait_for(asyncio.shield(future), PATIENCE)


async def test_when_the_writing_thread_has_ended_later_callers_get_the_error_too(path: Path) -> None:
    good, bad = WriteGroup(counted), WriteGroup(fatal)
    writer = writer_of(path, good, bad)
    await asyncio.wait({writer.submit(bad, 1)}, timeout=PATIENCE)
    later = writer.submit(good, 2)
    with pytest.raises(StoreFailed, match="ended unexpectedly"):
        await asyncio.wait_for(asyncio.shield(later), PATIENCE)
    with pytest.raises(StoreFailed, match="ended unexpectedly"):
        await asyncio.wait_for(asyncio.shield(writer.run(lambda database: None)), PATIENCE)
    await asyncio.wait_for(writer.close(), PATIENCE)


async def test_a_writer_that_runs_out_of_memory_says_so_and_goes_on(path: Path) -> None:
    def hungry(database: DatabaseConnection, items: Sequence[int]) -> Sequence[int | MusterError]:
        raise MemoryError

    good, bad = WriteGroup(counted), WriteGroup(hungry)
    writer = writer_of(path, good, bad)
    failing = writer.submit(bad, 1)
    with pytest.raises(StoreFailed, match="MemoryError"):
        await asyncio.wait_for(asyncio.shield(failing), PATIENCE)
    assert await asyncio.wait_for(asyncio.shield(writer.submit(good, 2)), PATIENCE) == 2
    await writer.close()


async def test_a_listener_that_fails_keeps_nobody_waiting(path: Path) -> None:
    heard = asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: heard.set())

    def fail() -> None:
        raise RuntimeError("a listener failed")

    def write(database: DatabaseConnection) -> int:
        return database.execute("put_trait", {"name": "x", "value": "y"})

    writer = writer_of(path, on_commit=fail)
    assert await asyncio.wait_for(asyncio.shield(writer.run(write)), PATIENCE) == 1
    await asyncio.wait_for(heard.wait(), PATIENCE)
    assert await asyncio.wait_for(asyncio.shield(writer.run(lambda database: 7)), PATIENCE) == 7
    await writer.close()


def test_a_loop_that_was_closed_does_not_keep_the_thread(tmp_path: Path) -> None:
    async def leave() -> None:
        store = open_sqlite(tmp_path / "muster.db")
        store.runs.create(new_run("run1"))  # nobody waits for it, and nobody closes the store

    before = set(threading.enumerate())
    asyncio.run(leave())
    assert all(thread.daemon for thread in set(threading.enumerate()) - before)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (shutil.rmtree, "was deleted or moved to another file system while it was in use"),
        (lambda home: home.rename(home.with_name("elsewhere")), "was moved to .*/elsewhere/muster.db while"),
        (lambda home: (home / "muster.db").rename(home / "old.db"), r"was moved to .*/home/old.db while"),
    ],
    ids=["deleted", "folder moved", "file moved"],
)
async def test_a_store_that_is_gone_is_noticed_at_the_next_write(
    path: Path, harm: Callable[[Path], object], words: str
) -> None:
    store = open_sqlite(path)
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    harm(path.parent)
    for work in (store.journal.settle(settling(opened, replied(40))), store.journal.open(opening(run, 1, "later"))):
        with pytest.raises(StoreFailed, match=words):
            await work
    await store.maintenance.close()
    for place in (path.with_name("old.db"), path.parent.with_name("elsewhere") / "muster.db"):
        if place.exists():  # and what was written before is there
            with contextlib.closing(sqlite3.connect(place)) as raw:
                assert raw.execute("SELECT key, state FROM attempts").fetchall() == [("k", "started")]


async def test_a_store_in_whose_place_another_one_stands_is_noticed_at_the_next_write(path: Path) -> None:
    store = open_sqlite(path)
    await driven(store)
    shutil.rmtree(path.parent)
    other = open_sqlite(path)
    with pytest.raises(StoreFailed, match="was replaced by another file"):
        await store.runs.create(new_run("run2"))
    await store.maintenance.close()
    assert await other.runs.select() == []
    await other.runs.create(new_run("run3"))
    await other.maintenance.close()


HOLDER = """
import sqlite3, sys
raw = sqlite3.connect(sys.argv[1], isolation_level=None)
raw.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def locked(path: Path) -> "Iterator[subprocess.Popen[str]]":
    """Let another process hold the write lock."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        try:
            yield holder
        finally:
            holder.kill()


async def test_a_settlement_waits_for_a_lock_and_it_is_said_who_holds_it(path: Path) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    store = open_sqlite(path, on_wait=told.put_nowait)
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    with locked(path) as holder:
        settled = asyncio.ensure_future(store.journal.settle(settling(opened, replied(40))))
        words = await asyncio.wait_for(told.get(), PATIENCE)
        assert f"waiting for the store {path}: process {holder.pid} is writing to it" in words
        assert not settled.done()
    assert (await asyncio.wait_for(settled, PATIENCE)).cost == 40
    assert [str(attempt.state) for attempt in await store.archive.attempts(run)] == ["succeeded"]
    assert told.empty()
    await store.maintenance.close()


async def test_a_settlement_that_waited_while_its_run_was_taken_over_is_a_late_reply(path: Path) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    store, other = open_sqlite(path, on_wait=told.put_nowait), open_sqlite(path, on_wait=told.put_nowait)
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    with locked(path):
        taken = asyncio.ensure_future(other.leases.claim(run, OTHER, claim.epoch, NOW + 20, NOW + 35))
        settled = asyncio.ensure_future(store.journal.settle(settling(opened, replied(40))))
        for _ in range(2):
            await asyncio.wait_for(told.get(), PATIENCE)
    await asyncio.wait_for(asyncio.gather(taken, settled), PATIENCE)
    found, entry = await store.runs.get(run), await store.journal.find(run, "k")
    assert found is not None
    assert entry is not None
    assert (found.spent.billed, found.spent.uncertain, found.spent.reserved, found.calls.uncertain) == (40, 0, 0, 0)
    assert entry.reply == replied(40).reply
    for one in (store, other):
        await one.maintenance.close()


async def test_whoever_gives_up_waits_no_longer_for_a_lock(path: Path) -> None:
    store = open_sqlite(path)
    with locked(path):
        created = asyncio.ensure_future(store.runs.create(new_run("run1")))
        store.maintenance.give_up()
        with pytest.raises(StoreFailed, match="locked by another process"):
            await asyncio.wait_for(asyncio.shield(created), PATIENCE)
    assert (await store.runs.create(new_run("run1"))).id == "run1"
    await store.maintenance.close()
