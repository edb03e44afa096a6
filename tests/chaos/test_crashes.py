"""Killed at every point and at any instant, a run comes to its end: every reply, paid once or told as uncertain."""

import random
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from muster.domain.money import show_usd
from muster.engine.base.killpoints import POINTS
from tests.chaos import work
from tests.chaos.books import Books, check_books, check_paid_once, check_whole, read_books
from tests.chaos.fleet import Order
from tests.chaos.stage import Stage

# How often a point is passed before the process dies there, one process after the other.
NTH = {
    "call.before_open": (1, 57, 211),
    "call.opened": (1, 57, 211),
    "call.answered": (1, 57, 211),
    "call.settled": (1, 57, 211),
    "store.before_commit": (1, 2, 3, 10, 25),
    "store.after_commit": (1, 2, 3, 10, 25),
    "run.claimed": (1, 1, 1),
    "run.before_release": (1, 1),
}
LIVE = tuple(
    point for point in POINTS if not point.startswith(("batch.", "signal.", "question.", "audit."))
)  # those have their own proofs
LATEST = 0.3  # seconds after which a random kill comes at the latest


async def check(stage: Stage, calls: int, name: str = "fleet") -> Books:
    """Everything that must hold after the last resume."""
    books = await read_books(stage, name)
    audit = stage.sim.audit()
    check_whole(books, calls)
    check_books(books)
    check_paid_once(books, audit)
    print(
        f"{calls} calls, {books.run.lease.epoch} drivers: {audit.requests} requests, {audit.calls} paid, "
        f"{len(books.uncertain)} uncertain ({show_usd(books.run.spent.uncertain)})"
    )
    return books


async def kill_at(stage: Stage, order: Order, *places: str) -> None:
    for place in places:
        ended = await stage.drive(order, crash_at=place)
        assert ended.killed, (place, ended)


async def finish(stage: Stage, order: Order) -> None:
    ended = await stage.drive(order)
    assert ended.run["state"] == "completed", ended


async def kill_at_random(stage: Stage, order: Order, kills: int) -> None:
    """Kill a run at random instants, so often; one that is done too soon is followed by another."""
    done = 0
    for number in count():
        this = replace(order, name=f"fleet-{number}")
        stage.sim.reset()
        while done < kills and (await stage.drive_for(this, random.uniform(0, LATEST))).killed:
            done += 1
        await finish(stage, this)
        await check(stage, this.calls, this.name)
        if done == kills:
            return


def test_every_point_has_its_turn() -> None:
    assert tuple(NTH) == LIVE


async def test_a_run_killed_once_at_every_point_is_finished_and_paid_once(stage: Stage) -> None:
    order = stage.order(60, concurrency=5)
    await kill_at(stage, order, *(f"{point}:{1 if point.startswith('run.') else 4}" for point in LIVE))
    before = stage.sim.audit()
    await finish(stage, order)
    assert stage.sim.audit() == before  # the last kill came when everything was answered
    books = await check(stage, 60)
    assert books.run.lease.epoch == len(LIVE) + 1
    assert books.uncertain


async def test_a_run_killed_at_random_instants_is_finished_and_paid_once(stage: Stage) -> None:
    order = stage.order(150, concurrency=5)
    await kill_at_random(stage, order, 4)


@pytest.mark.chaos
async def test_a_run_killed_among_faults_is_finished_and_paid_once(rough_stage: Stage) -> None:
    order = rough_stage.order(60, concurrency=20)
    await kill_at(rough_stage, order, "call.answered:25", "call.opened:30", "store.before_commit:9")
    await finish(rough_stage, order)
    await check(rough_stage, 60)


async def test_resuming_prints_what_was_uncertain_with_its_money(stage: Stage) -> None:
    await kill_at(stage, stage.order(30), "call.answered:7")
    source = Path(work.__file__).read_text(encoding="utf-8")
    (stage.folder / "work.py").write_text(source, encoding="utf-8")
    (stage.folder / "muster.toml").write_text('[workloads]\nimport = ["work"]\n', encoding="utf-8")
    code, out, err = await stage.muster("runs", "resume", "fleet")
    assert code == 0, err
    books = await check(stage, 30)
    money = show_usd(books.run.spent.uncertain)
    assert books.uncertain
    assert f"{len(books.uncertain)} calls were uncertain ({money})" in err
    assert f"{money} uncertain" in out


@pytest.mark.chaos
@pytest.mark.parametrize("point", LIVE)
async def test_a_run_of_500_killed_at_a_point_is_finished_and_paid_once(stage: Stage, point: str) -> None:
    order = stage.order(500, concurrency=25)
    await kill_at(stage, order, *(f"{point}:{nth}" for nth in NTH[point]))
    await finish(stage, order)
    await check(stage, 500)


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_a_run_of_500_killed_at_30_random_instants_is_finished_and_paid_once(stage: Stage) -> None:
    order = stage.order(500, concurrency=5)
    await kill_at_random(stage, order, 30)


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_a_run_of_500_killed_at_every_point_among_faults_is_finished_and_paid_once(rough_stage: Stage) -> None:
    order = rough_stage.order(500, concurrency=25)
    await kill_at(rough_stage, order, *(f"{point}:{NTH[point][-1] // 4 or 1}" for point in LIVE))
    await finish(rough_stage, order)
    await check(rough_stage, 500)


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_a_run_of_500_killed_at_30_random_instants_among_faults_is_finished_and_paid_once(
    rough_stage: Stage,
) -> None:
    order = rough_stage.order(500, concurrency=25)
    await kill_at_random(rough_stage, order, 30)
