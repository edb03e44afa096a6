"""A driver that was replaced writes nothing more, at each write of the store; also when both write at one moment."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from muster.domain.entry import Entry, EntryKind, EntryState
from muster.domain.errors import Conflict, LeaseLost, MusterError
from muster.domain.ids import RunId
from muster.domain.run import RunState
from muster.store.base import AnswerTaking, QuestionOpening, Record, RunRelease, SignalTaking, Store
from muster.store.postgres.store import open_postgres
from muster.store.sqlite.store import open_sqlite
from muster.testing.stores import NOW, OTHER, driven, opening, replied, settling
from muster.testing.stores.batches import planning

Write = Callable[[Store, RunId, int], Awaitable[Any]]


async def plan(store: Store, run: RunId, epoch: int) -> None:
    for decision in await store.batches.plan(planning(run, epoch, 2)):
        if isinstance(decision, MusterError):
            raise decision


def entry(run: RunId) -> Entry:
    return Entry(run=run, key="other", kind=EntryKind.STEP, state=EntryState.DONE, digest="d", value=1, opened_at=NOW)


def step(run: RunId, epoch: int) -> Record:
    return Record(run=run, epoch=epoch, key="step", kind=EntryKind.STEP, digest="d", value=1, at=NOW)


WRITES: dict[str, Write] = {
    "open": lambda store, run, epoch: store.journal.open(opening(run, epoch, "late")),
    "record": lambda store, run, epoch: store.journal.record(step(run, epoch)),
    "reuse": lambda store, run, epoch: store.journal.reuse(run, epoch, entry(run), NOW),
    "append": lambda store, run, epoch: store.events.append(run, epoch, "late", {}, NOW),
    "beat": lambda store, run, epoch: store.leases.beat(run, epoch, NOW + 60, 1.0, RunState.RUNNING),
    "release": lambda store, run, epoch: store.leases.release(
        run, epoch, RunRelease(state=RunState.COMPLETED, reason="late", at=NOW)
    ),
    "take": lambda store, run, epoch: store.signals.take(
        SignalTaking(
            run=run, epoch=epoch, key="s", digest="d", address=f"run:{run}", channel="c", at=NOW, even_none=True
        )
    ),
    "ask": lambda store, run, epoch: store.questions.ask(
        QuestionOpening(run=run, epoch=epoch, key="q", digest="d", agent="human", request="{}", at=NOW)
    ),
    "answer": lambda store, run, epoch: store.questions.settle(
        AnswerTaking(run=run, epoch=epoch, key="q", address=f"run:{run}", at=NOW, failure={"code": "late"})
    ),
    "plan": plan,
    "give_up": lambda store, run, epoch: store.batches.give_up(run, epoch, "k", {"code": "late"}, NOW),
}

# Of several who take or expire a run one wins.
TAKINGS: dict[str, Write] = {
    "claim": lambda store, run, epoch: store.leases.claim(run, OTHER, epoch, NOW, NOW + 15),
    "expire": lambda store, run, epoch: store.leases.expire(run, epoch, NOW, "late"),
}


@contextlib.asynccontextmanager
async def opened(store: Store) -> AsyncIterator[Store]:
    try:
        yield store
    finally:
        await store.maintenance.close()


async def contents(store: Store, run: RunId) -> list[object]:
    """Everything that a late write could have changed."""
    entries = [entry async for entry in store.archive.entries(run)]
    events = [(event.seq, event.kind) for event in await store.events.read(run, 0, 100)]
    return [await store.runs.get(run), entries, list(await store.archive.attempts(run)), events]


@pytest.mark.parametrize("name", [*WRITES, *TAKINGS])
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_a_driver_that_was_replaced_writes_nothing(
    name: str, database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "muster.db"
    made = open_sqlite(path) if database == "sqlite" else open_postgres(request.getfixturevalue("database_url"))
    async with opened(made) as store:
        run, claim = await driven(store)
        await store.leases.claim(run, OTHER, claim.epoch, NOW + 20, NOW + 35)
        before = await contents(store, run)
        with pytest.raises(LeaseLost if name in WRITES else Conflict):
            await {**WRITES, **TAKINGS}[name](store, run, claim.epoch)
        assert await contents(store, run) == before


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_a_driver_that_was_replaced_shows_no_half_written_text(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "muster.db"
    made = open_sqlite(path) if database == "sqlite" else open_postgres(request.getfixturevalue("database_url"))
    async with opened(made) as store:
        run, claim = await driven(store)
        old = opening(run, claim.epoch, "k")
        await store.journal.open(old)
        await store.events.put_partial(old.attempt, "of before", NOW)
        await store.leases.claim(run, OTHER, claim.epoch, NOW + 20, NOW + 35)
        await store.events.put_partial(old.attempt, "too late", NOW + 21)
        assert "too late" not in (await store.events.partials(run)).values()


@pytest.mark.parametrize("name", [*WRITES, *TAKINGS])
async def test_a_write_waits_for_whoever_is_taking_the_run_just_then_and_is_refused(
    name: str, database_url: str
) -> None:
    async with opened(open_postgres(database_url)) as store:
        run, claim = await driven(store)
        with psycopg.connect(database_url) as taking:  # in a transaction that is not committed yet
            taking.execute("UPDATE runs SET epoch = epoch + 1 WHERE id = %s", (run,))
            late = asyncio.ensure_future({**WRITES, **TAKINGS}[name](store, run, claim.epoch))
            await blocked(database_url)
            assert not late.done()
            taking.commit()
        with pytest.raises(LeaseLost if name in WRITES else Conflict):
            await late


async def test_a_late_answer_is_booked_once_while_its_run_is_being_taken(database_url: str) -> None:
    async with opened(open_postgres(database_url)) as old, opened(open_postgres(database_url)) as new:
        run, claim = await driven(old)
        attempts = [opening(run, claim.epoch, f"k{number}") for number in range(20)]
        await asyncio.gather(*(old.journal.open(one) for one in attempts))
        answers = [old.journal.settle(settling(one, replied(40))) for one in attempts]
        taken = asyncio.ensure_future(new.leases.claim(run, OTHER, claim.epoch, NOW + 20, NOW + 35))
        await asyncio.gather(taken, *answers)
        found = await old.runs.get(run)
        assert found is not None
        assert (found.spent.billed, found.spent.uncertain, found.spent.reserved) == (800, 0, 0)
        assert found.calls.done == 20


async def blocked(url: str) -> None:
    """Wait until a writer of this database waits for a lock."""
    query = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as server:
        while True:
            row = await (await server.execute(query)).fetchone()
            if row is not None and row[0]:
                return
            await asyncio.sleep(0.01)
