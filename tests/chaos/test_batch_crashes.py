"""Killed anywhere between the plan of a batch and its last result, a run comes to its end: every reply, paid once."""

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from muster.domain.batch import BatchState
from muster.engine.base.killpoints import POINTS
from tests.chaos import work
from tests.chaos.books import Books, check_books, check_judged, check_paid_once, read_books
from tests.chaos.fleet import Order
from tests.chaos.stage import BRISK, Stage
from tests.rehearsal import ForkedRehearsal

BATCH_POINTS = tuple(point for point in POINTS if point.startswith("batch."))
PROVIDERS = (work.ANTHROPIC, work.OPENAI)
FIRST_OVER = "batch.collected:1"  # a process that dies here leaves everything before the verdicts behind it

# How often a point is passed before the process dies there, one process after the other, in each of the two batches.
NTH = dict.fromkeys(BATCH_POINTS, (1,)) | {"batch.downloading": (1, 9), "batch.page": (1, 2)}
LATEST = 0.6  # seconds after which a random kill comes at the latest


@pytest.fixture
def sim() -> Iterator[ForkedRehearsal]:
    """A rehearsal server whose batches take a moment."""
    with ForkedRehearsal(batch_ms=300) as running:
        yield running


@pytest.fixture(params=PROVIDERS)
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def order_of(stage: Stage, calls: int, agent: str) -> Order:
    return stage.order(calls, workload="judged", agent=agent, dispatch="batch")


async def kill_at(stage: Stage, order: Order, *places: str) -> None:
    """Let one process after the other die; what one that died before it sent leaves open is given up."""
    for place in places:
        ended = await stage.drive(order, crash_at=place)
        assert ended.killed, (place, ended)
        if place.startswith("batch.claimed") and order.agent == work.ANTHROPIC:
            await give_up_what_is_open(stage, order)


async def give_up_what_is_open(stage: Stage, order: Order) -> None:
    """Go on with a run of whose batch nobody can say whether it was created: it stops, and is told to resubmit."""
    ended = await stage.drive(order)
    assert (ended.run["state"], ended.run["ended_reason"]) == ("waiting", "batch_open"), ended
    killed = await stage.drive(replace(order, resubmit=True), crash_at="batch.planned:1")
    assert killed.killed, killed


async def finish(stage: Stage, order: Order) -> None:
    ended = await stage.drive(order)
    assert ended.run["state"] == "completed", ended


async def check(stage: Stage, order: Order, uncertain: int = 0) -> Books:
    """Everything that must hold after the last resume."""
    books = await read_books(stage, order.name)
    audit = stage.sim.audit()
    check_judged(books, order.calls, order.topic)
    check_books(books)
    check_paid_once(books, audit)
    assert audit.calls == 2 * order.calls
    assert len(books.uncertain) == uncertain
    assert not list((stage.folder / ".muster" / "spool").glob("*/*"))
    print(
        f"{order.agent}: 2 × {order.calls} calls, {books.run.lease.epoch} drivers, {len(books.batches)} batches, "
        f"{audit.requests} requests, {audit.calls} paid, {len(books.uncertain)} uncertain"
    )
    return books


async def kill_in_both_batches(stage: Stage, order: Order, point: str) -> None:
    """Kill at a point in the batch of the answers, and then in that of the verdicts."""
    places = [f"{point}:{nth}" for nth in NTH[point]]
    await kill_at(stage, order, *places)
    if point != "batch.collected":
        await kill_at(stage, order, FIRST_OVER)
    await kill_at(stage, order, *places)


async def kill_at_random(stage: Stage, order: Order, kills: int) -> None:
    """Kill a run at random instants, so often; one that is done too soon is followed by another."""
    done = 0
    for number in count():
        this = replace(order, name=f"fleet-{number}", topic=f"{number}: ")
        stage.sim.reset()
        uncertain = 0
        while done < kills and (await stage.drive_for(this, random.uniform(0, LATEST))).killed:
            done += 1
        ended = await stage.drive(this)
        if ended.run["ended_reason"] == "batch_open":  # it died between the right to send and the create
            uncertain = order.calls
            ended = await stage.drive(replace(this, resubmit=True))
        assert ended.run["state"] == "completed", ended
        await check(stage, this, uncertain)
        if done == kills:
            return


def test_every_point_has_its_turn() -> None:
    assert tuple(NTH) == BATCH_POINTS


async def test_a_batch_killed_at_one_point_after_the_other_is_collected_and_paid_once(stage: Stage, agent: str) -> None:
    order = order_of(stage, 60, agent)
    await kill_at(stage, order, "batch.planned:1", "batch.created:1", FIRST_OVER)
    await kill_at(stage, order, "batch.confirmed:1", "batch.downloading:1", "batch.page:1")
    await finish(stage, order)
    books = await check(stage, order)
    assert (len(books.batches), books.run.lease.epoch) == (2, 7)


async def test_a_batch_killed_before_it_left_is_sent_again_only_when_that_is_safe_or_allowed(
    stage: Stage, agent: str
) -> None:
    order = order_of(stage, 40, agent)
    await kill_at(stage, order, "batch.claimed:1")
    await finish(stage, order)
    # Without an input file nothing can have been created at OpenAI; at Anthropic nobody knows until somebody decides.
    await check(stage, order, uncertain=40 if agent == work.ANTHROPIC else 0)


async def test_many_batches_killed_while_they_are_handed_in_and_read_are_collected_and_paid_once(
    stage: Stage, agent: str
) -> None:
    patience = replace(BRISK, most_requests=13)
    order = replace(order_of(stage, 60, agent), patience=patience, resubmit=True)
    for place in ("batch.planned:2", "batch.created:2", "batch.confirmed:2", "batch.page:3"):
        ended = await stage.drive(order, crash_at=place)
        assert ended.killed, (place, ended)
    await finish(stage, order)
    books = await read_books(stage)
    check_judged(books, order.calls)
    check_books(books)
    check_paid_once(books, stage.sim.audit())
    # Another batch than the one that the process died over may have been on its way.
    given_up = [batch for batch in books.batches if batch.state is BatchState.ABANDONED]
    assert len(books.uncertain) == sum(batch.requests for batch in given_up)
    assert len(books.batches) == 10 + len(given_up)


@pytest.mark.chaos
async def test_a_batch_killed_at_random_instants_is_collected_and_paid_once(stage: Stage, agent: str) -> None:
    await kill_at_random(stage, order_of(stage, 80, agent), 4)


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("point", BATCH_POINTS)
async def test_batches_of_3000_killed_at_a_point_are_collected_and_paid_once(
    stage: Stage, agent: str, point: str
) -> None:
    order, began = order_of(stage, 3000, agent), time.monotonic()
    await kill_in_both_batches(stage, order, point)
    await finish(stage, order)
    unclear = point == "batch.claimed" and agent == work.ANTHROPIC
    await check(stage, order, uncertain=2 * order.calls if unclear else 0)
    print(f"{point}: {time.monotonic() - began:.1f} s")


@pytest.mark.chaos
@pytest.mark.timeout(900)
async def test_batches_of_3000_killed_at_20_random_instants_are_collected_and_paid_once(
    stage: Stage, agent: str
) -> None:
    await kill_at_random(stage, order_of(stage, 3000, agent), 20)
