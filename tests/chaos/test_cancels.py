"""Cancel from another process: at any instant the run ends canceled, the books are in order, the wire is closed."""

import asyncio
import os
import random
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from muster.domain.agent import Timeouts
from muster.domain.batch import BatchState
from muster.domain.entry import AttemptState
from muster.domain.errors import NotFound
from muster.domain.run import RunState
from tests.chaos import work
from tests.chaos.books import Books, check_books, check_paid_once, read_books
from tests.chaos.stage import Stage, until
from tests.rehearsal import ForkedRehearsal
from tests.variants import first_of

LATEST = 2.0  # seconds after its beginning in which a run is canceled at the latest


async def cancel_at(stage: Stage, instant: float) -> Books:
    """Cancel a run that another process drives, so many seconds after it exists."""
    driver = await stage.start(stage.order(20_000, concurrency=10))  # more than it comes to
    async with stage.open() as muster:

        async def exists() -> bool:
            try:
                return (await muster.runs.find("fleet")).state is RunState.RUNNING
            except NotFound:
                return False

        await until(exists)
        await asyncio.sleep(instant)
        await muster.runs.cancel("fleet")
    ended = await driver.end()
    assert (ended.run["state"], ended.run["ended_reason"]) == ("canceled", "canceled"), ended
    books = await read_books(stage)
    check_books(books)
    return books


async def cancel_at_random(folder: Path) -> Books:
    with ForkedRehearsal(latency_ms=40) as sim:
        stage = Stage(folder, sim)
        books = await cancel_at(stage, random.uniform(0, LATEST))
        check_paid_once(books, sim.audit())
        assert {attempt.error["code"] for attempt in books.uncertain if attempt.error} <= {"outcome_unknown"}
        await until(stage.wire_is_closed)
        return books


async def cancel_many(folder: Path, times: int, at_once: int) -> None:
    done: list[Books] = []
    for first in range(0, times, at_once):
        numbers = range(first, min(first + at_once, times))
        done += await asyncio.gather(*(cancel_at_random(folder / str(number)) for number in numbers))
    print(
        f"{len(done)} cancels: {sum(len(books.texts) for books in done)} replies, "
        f"{sum(len(books.uncertain) for books in done)} uncertain, "
        f"{sum(len(books.attempts) for books in done)} attempts"
    )


async def test_what_is_on_the_wire_is_closed_and_uncertain(tmp_path: Path) -> None:
    with ForkedRehearsal(latency_ms=600_000) as sim:
        stage = Stage(tmp_path / "stage", sim)
        order = stage.order(100, concurrency=20, timeouts=Timeouts())
        driver = await stage.start(order)

        async def all_on_the_wire() -> bool:
            return (await asyncio.to_thread(sim.audit)).calls == 20

        await until(all_on_the_wire)
        async with stage.open() as muster:
            await muster.runs.cancel("fleet")
        ended = await driver.end()
        assert ended.run["state"] == "canceled"
        books = await read_books(stage)
        check_books(books)
        check_paid_once(books, sim.audit())
        unsent = [attempt for attempt in books.attempts if attempt.state is AttemptState.UNSENT]
        assert len(books.uncertain) == 20
        assert len(books.attempts) == 20 + len(unsent)  # what was ready but not sent costs nothing
        assert {attempt.error["code"] for attempt in books.attempts if attempt.error} == {"outcome_unknown"}
        await until(stage.wire_is_closed)


async def test_a_run_canceled_at_random_instants_leaves_its_books_in_order(tmp_path: Path) -> None:
    await cancel_many(tmp_path, times=4, at_once=2)


@pytest.mark.chaos
async def test_a_run_canceled_at_24_random_instants_leaves_its_books_in_order(tmp_path: Path) -> None:
    await cancel_many(tmp_path, times=24, at_once=3)


async def stop_between_writes(pid: int, store: Path) -> None:
    """Stop a process at a moment in which it does not hold the lock of the store."""

    async def stands_still() -> bool:
        stats = [file.read_text(encoding="utf-8") for file in Path(f"/proc/{pid}/task").glob("*/stat")]
        return all(stat.rpartition(")")[2].split()[0] == "T" for stat in stats)

    while True:
        os.kill(pid, signal.SIGSTOP)
        await until(stands_still)  # the signal is only on its way yet, and each thread stops for itself
        with closing(sqlite3.connect(store, timeout=0.0, isolation_level=None)) as database:
            try:
                database.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError:
                os.kill(pid, signal.SIGCONT)
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("agent", [work.ANTHROPIC, work.OPENAI])
@pytest.mark.parametrize("workload", first_of(["judged", "parent"]))
async def test_whoever_buries_a_canceled_run_cancels_its_batch_and_its_children(
    tmp_path: Path, agent: str, workload: str
) -> None:
    with ForkedRehearsal(batch_ms=600_000) as sim:
        stage = Stage(tmp_path / "stage", sim)
        driver = await stage.start(stage.order(20, workload=workload, agent=agent, dispatch="batch"))
        async with stage.open() as muster:

            async def handed_in() -> bool:
                return bool(await muster.batches.list((BatchState.RUNNING,)))

            try:
                await until(handed_in)
                await stop_between_writes(driver.pid, stage.folder / ".muster" / "muster.db")
                await muster.runs.cancel("fleet")  # its driver does not live to see it
            finally:
                await driver.kill()  # nobody could close a store whose lock it held
        [before] = (await asyncio.to_thread(sim.audit)).batches
        async with stage.open() as muster:
            await muster._backend.engine.sweep()
            runs = await muster._backend.store.runs.select()
        [after] = (await asyncio.to_thread(sim.audit)).batches
    assert [run.state for run in runs] == [RunState.CANCELED] * (2 if workload == "parent" else 1)
    assert before["status"] in ("validating", "in_progress")
    assert after["status"] in ("cancelled", "ended"), after
