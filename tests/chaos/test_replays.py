"""What is known costs nothing: replay asks nobody, a fork pays from its key on, an exported run replays elsewhere."""

from collections import Counter
from pathlib import Path

import pytest

from muster.domain.agent import Timeouts
from muster.domain.call import Reply
from muster.domain.run import RunState
from tests.chaos import work  # registers the workload in this process
from tests.chaos.books import Books, books_of, check_books, check_whole, read_books
from tests.chaos.stage import FAULTS, Stage
from tests.rehearsal import ForkedRehearsal

NO_KEYS = {"LANG": "C.UTF-8"}


def replies(books: Books) -> dict[str, Reply | None]:
    return {entry.key: entry.reply for entry in books.entries}


async def make_run(stage: Stage, calls: int) -> Books:
    """Make a run with a past: faults, and a driver that died."""
    stage.sim.faults(FAULTS)
    order = stage.order(calls, concurrency=10)
    assert (await stage.drive(order, crash_at=f"call.settled:{calls // 2}")).killed
    assert (await stage.drive(order)).run["state"] == "completed"
    stage.sim.faults({})
    books = await read_books(stage)
    check_whole(books, calls)
    return books


async def check_replay(stage: Stage, books: Books, environment: dict[str, str] | None = None) -> None:
    """Replay a run and look whether anybody was asked and anything is different."""
    before = stage.sim.audit()
    async with stage.open(environment) as muster:
        made = await muster.runs.replay(books.run.id)
        run = await muster.runs.drive(made).wait()
        assert run.state is RunState.COMPLETED, run.error
        again = await books_of(muster, run)
    check_books(again)
    assert replies(again) == replies(books)
    assert again.run.result == books.run.result
    assert again.run.spent.settled == 0
    assert not again.attempts
    assert again.run.calls.reused == len(books.entries)
    assert stage.sim.audit() == before


async def check_fork(stage: Stage, books: Books, key: str) -> None:
    """Fork a run from a key and compare what is paid with what stands in the journal from there on."""
    keys = [entry.key for entry in books.entries]  # in the order in which they were opened
    anew = keys[keys.index(key) :]
    names = books.on_the_wire()
    before = stage.sim.audit()
    # No faults are played: a server that is only slow must not be asked twice.
    async with stage.open(timeouts=Timeouts()) as muster:
        made = await muster.runs.fork(books.run.id, key)
        run = await muster.runs.drive(made).wait()
        forked = await books_of(muster, run)
    after = stage.sim.audit()
    check_whole(forked, len(keys))
    check_books(forked)
    assert Counter(after.by_digest) - Counter(before.by_digest) == Counter(names[each] for each in anew)
    assert after.requests - before.requests == len(anew)
    assert {attempt.key for attempt in forked.attempts} == set(anew)
    assert {entry.key for entry in forked.entries if entry.reused_from == books.run.id} == set(keys) - set(anew)
    print(f"fork from {key}: {len(anew)} of {len(keys)} calls paid")


async def check_elsewhere(stage: Stage, books: Books, file: Path) -> None:
    """Export a run, import it into another store, and replay it there without any key."""
    other = Stage(file.parent / f"elsewhere-{file.suffix[1:]}", stage.sim)
    async with stage.open() as muster:
        assert (await muster.runs.export(books.run.id, file))[1] == len(books.entries)
    async with other.open(NO_KEYS) as muster:
        assert (await muster.runs.import_(file)).id == books.run.id
        assert replies(await books_of(muster, await muster.runs.find("fleet"))) == replies(books)
    await check_replay(other, books, NO_KEYS)


async def prove(stage: Stage, tmp_path: Path, calls: int) -> None:
    books = await make_run(stage, calls)
    await check_replay(stage, books)
    await check_elsewhere(stage, books, tmp_path / "run.jsonl")
    await check_elsewhere(stage, books, tmp_path / "run.gz")
    for number in (calls - 1, calls * 2 // 3, 0):
        await check_fork(stage, books, work.key_of(number))


async def test_a_run_replays_forks_and_travels(stage: Stage, tmp_path: Path) -> None:
    await prove(stage, tmp_path, 60)


async def test_a_replay_needs_no_server(tmp_path: Path) -> None:
    with ForkedRehearsal() as sim:
        stage = Stage(tmp_path / "stage", sim)
        await stage.drive(stage.order(20))
        books = await read_books(stage)
    async with stage.open() as muster:
        run = await muster.runs.drive(await muster.runs.replay(books.run.id)).wait()
        assert run.state is RunState.COMPLETED, run.error
        assert replies(await books_of(muster, run)) == replies(books)


@pytest.mark.chaos
async def test_a_run_of_500_replays_forks_and_travels(stage: Stage, tmp_path: Path) -> None:
    await prove(stage, tmp_path, 500)
