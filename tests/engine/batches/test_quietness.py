"""When the batcher flushes: the decision as a table, and what the watch counts."""

import asyncio
import math

import pytest

from muster.engine.batches.base import Patience
from muster.engine.batches.parked_calls import Waiters
from muster.engine.batches.quietness import Quietness, QuietWatch, let_ready_tasks_run
from muster.testing.clock import FakeClock

PATIENCE = Patience(settle=2.0, linger=60.0)


def at(
    now: float, *, changed: float = 0.0, busy: bool = False, oldest: float | None = 0.0, full: bool = False
) -> float:
    """Return the seconds left at a moment."""
    return Quietness(now=now, changed_at=changed, busy=busy, oldest=oldest, full=full).seconds_left(PATIENCE)


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        pytest.param(at(0.5), 1.5, id="the settle time has to pass"),
        pytest.param(at(2.0), 0.0, id="nothing new for the settle time"),
        pytest.param(at(5.0, changed=4.0), 1.0, id="something new begins it anew"),
        pytest.param(at(5.0, busy=True), 55.0, id="while calls move only the linger time counts"),
        pytest.param(at(60.0, busy=True), 0.0, id="nobody lingers for ever"),
        pytest.param(at(59.0, changed=58.5), 1.0, id="the linger time may end first"),
        pytest.param(at(99.0, changed=98.9), 0.0, id="a linger time that is long over"),
        pytest.param(at(0.0, full=True), 0.0, id="a full batch does not wait"),
        pytest.param(at(0.0, busy=True, full=True), 0.0, id="a full batch does not wait for calls that move"),
        pytest.param(at(99.0, oldest=None), math.inf, id="nothing is parked"),
    ],
)
def test_when_it_is_time_to_flush(left: float, expected: float) -> None:
    assert left == expected


@pytest.mark.parametrize(("now", "busy", "settled"), [(1.9, False, False), (2.0, False, True), (2.0, True, False)])
def test_settled_is_quiet_for_the_settle_time(now: float, busy: bool, settled: bool) -> None:
    assert Quietness(now=now, changed_at=0.0, busy=busy).settled(PATIENCE) is settled


async def test_a_call_that_moves_and_results_that_are_read_make_it_busy() -> None:
    waiters = Waiters()
    watch = QuietWatch(waiters, FakeClock())
    with watch.moving():
        assert watch.look().busy
    with waiters.answering():
        assert watch.look().busy
    assert not watch.look().busy


async def test_the_end_of_a_move_is_a_change() -> None:
    clock = FakeClock()
    watch = QuietWatch(Waiters(), clock)
    with watch.moving():
        clock.advance(3.0)
    assert watch.look().changed_at == clock.monotonic()


async def test_a_call_that_takes_a_freed_place_is_seen_before_a_timer_that_is_due() -> None:
    """After a pause of the whole process the settle time is over before anything that was ready could run."""
    clock = FakeClock(0.0)
    watch = QuietWatch(Waiters(), clock)
    watch.change()

    async def take_the_freed_place() -> None:
        for _ in range(4):  # the map wakes, starts the item, the item calls, the call looks into the journal
            await asyncio.sleep(0)
        with watch.moving():
            await asyncio.Event().wait()

    task = asyncio.create_task(take_the_freed_place())
    clock.advance(60.0)
    assert watch.look(oldest=0.0).seconds_left(PATIENCE) == 0.0
    await let_ready_tasks_run()
    assert watch.look(oldest=59.0).busy
    task.cancel()
