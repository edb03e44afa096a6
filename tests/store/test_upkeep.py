"""Deleting and vacuuming beside others: they can write meanwhile, and what is interrupted is finished later."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from muster.domain.entry import Entry, EntryKind, EntryState
from muster.domain.errors import Conflict, NotFound
from muster.domain.ids import RunId
from muster.domain.run import RunState, StartRequest
from muster.store.base import RunRelease
from muster.store.claims import CLAIM_SECONDS, claim_store, unclaim_store
from muster.store.database.deletions import MAX_ROWS
from muster.store.sqlite.connection import SqliteConnection
from muster.store.sqlite.store import SqliteStore, open_sqlite
from muster.testing.stores import NOW, driven, new_run, opening, replied, settling
from muster.testing.stores.values import DRIVER, OTHER

PATIENCE = 120.0
TABLES = ("journal", "requests", "outcomes", "attempts", "events", "traits")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "muster.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = open_sqlite(path)
    yield store
    await store.maintenance.close()


async def full_run(store: SqliteStore, name: str, steps: int = 0) -> RunId:
    """Store a completed run with one call, and as many steps."""
    run, claim = await driven(store, name)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await store.journal.settle(settling(opened, replied(40, text="a private answer")))
    entries = [
        Entry(run=run, key=f"s/{i}", kind=EntryKind.STEP, state=EntryState.DONE, digest="d", value=i, opened_at=NOW)
        for i in range(steps)
    ]
    await store.archive.restore_entries(entries)
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.COMPLETED, reason="done", at=NOW))
    return run


def rows(path: Path) -> dict[str, int]:
    with contextlib.closing(sqlite3.connect(path)) as raw:
        return {table: raw.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in TABLES}


async def test_others_can_write_while_a_large_run_is_deleted(store: SqliteStore, path: Path) -> None:
    run = await full_run(store, "run1", steps=8 * MAX_ROWS)
    other = open_sqlite(path)
    deleting = asyncio.ensure_future(store.runs.delete(run, NOW))
    written = 0
    while not deleting.done():
        await other.runs.create(new_run(f"other{written}"))
        written += 1
    await deleting
    assert written > 2
    assert await other.runs.get(run) is None
    for number in range(written):
        await other.runs.delete(RunId(f"other{number}"), NOW)
    assert rows(path) == dict.fromkeys(TABLES, 0)
    await other.maintenance.close()


async def test_a_run_that_is_half_deleted_is_not_there_and_its_rest_goes_with_the_next(
    store: SqliteStore, path: Path
) -> None:
    run, second = await full_run(store, "run1", steps=3 * MAX_ROWS), await full_run(store, "run2")
    deleting = asyncio.ensure_future(store.runs.delete(run, NOW))
    while await store.runs.get(run) is not None:
        await store.changes.wait(1, store.changes.commits)
    deleting.cancel()
    await asyncio.wait({deleting})
    assert (await store.maintenance.info())["unfinished_deletions"] == 1
    assert [one.id for one in await store.runs.select()] == [second]
    with pytest.raises(NotFound):
        await store.runs.delete(run, NOW)
    late = opening(run, 1, "k")
    assert (await store.journal.settle(settling(late, replied(40)))).kept is False
    await store.runs.delete(second, NOW)
    assert rows(path) == dict.fromkeys(TABLES, 0)


async def test_a_run_that_is_being_deleted_cannot_be_stored_again_until_it_is_gone(store: SqliteStore) -> None:
    run = await full_run(store, "run1", steps=3 * MAX_ROWS)
    whole = await store.runs.get(run)
    assert whole is not None
    deleting = asyncio.ensure_future(store.runs.delete(run, NOW))
    while await store.runs.get(run) is not None:
        await store.changes.wait(1, store.changes.commits)
    with pytest.raises(Conflict, match="is being deleted"):
        await store.archive.restore(whole)
    chosen = replace(new_run("run1"), request=StartRequest(client="127.0.0.1"))
    with pytest.raises(Conflict, match="is being deleted"):
        await store.runs.create(chosen)
    await deleting
    await store.archive.restore(whole)


async def test_a_vacuum_is_refused_while_a_run_is_driven(store: SqliteStore) -> None:
    run, claim = await driven(store)
    with pytest.raises(Conflict, match=f"{run} by process {DRIVER.pid} on {DRIVER.host}"):
        await store.maintenance.vacuum(OTHER, NOW + 1)
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.INTERRUPTED, reason="stopped", at=NOW))
    await store.maintenance.vacuum(OTHER, NOW + 1)


async def test_a_vacuum_leaves_no_claim_and_an_empty_log_though_others_have_the_store_open(
    store: SqliteStore, path: Path
) -> None:
    other = open_sqlite(path)
    await store.runs.delete(await full_run(other, "run1", steps=2 * MAX_ROWS), NOW)
    await store.maintenance.vacuum(DRIVER, NOW + 1)
    assert rows(path)["traits"] == 0
    await other.runs.get(RunId("run1"))
    info = await store.maintenance.info()
    assert info["free_bytes"] == 0
    assert int(str(info["wal_bytes"])) < 65_536  # only that the claim ended
    await other.maintenance.close()


async def test_a_run_starts_only_when_a_vacuum_is_done(store: SqliteStore, path: Path) -> None:
    run = await store.runs.create(new_run("run1"))
    connection = SqliteConnection(path)
    with connection.transaction():
        claim = claim_store(connection, OTHER, NOW)
    starting = asyncio.ensure_future(store.leases.claim(run.id, DRIVER, 0, NOW + 1, NOW + 16))
    with pytest.raises(Conflict, match=f"process {OTHER.pid} on {OTHER.host} is vacuuming the store"):
        await store.maintenance.vacuum(DRIVER, NOW + 1)
    assert not starting.done()
    with connection.transaction():
        unclaim_store(connection, claim)
    connection.close()
    assert (await asyncio.wait_for(starting, PATIENCE)).epoch == 1


async def test_the_claim_of_a_vacuum_that_died_ends_by_itself(store: SqliteStore, path: Path) -> None:
    run = await store.runs.create(new_run("run1"))
    connection = SqliteConnection(path)
    with connection.transaction():
        claim_store(connection, OTHER, NOW)
    connection.close()
    later = NOW + CLAIM_SECONDS
    claim = await asyncio.wait_for(store.leases.claim(run.id, DRIVER, 0, later, later + 15), PATIENCE)
    assert claim.epoch == 1
