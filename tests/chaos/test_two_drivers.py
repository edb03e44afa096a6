"""Two processes that resume the same run: one drives it, the other is told who does."""

import asyncio
from dataclasses import replace

import pytest

from tests.chaos.books import check_books, check_paid_once, check_whole, read_books
from tests.chaos.stage import HASTY, Stage

BUSY = {"script": [{"fault": "429", "times": "always"}], "retry_after": 0.1}


async def race(stage: Stage, name: str, calls: int) -> None:
    """Interrupt a run, let two processes resume it at the same moment, and look at what they say."""
    stage.sim.reset()
    order = stage.order(calls, name=name, waits=True, policy=replace(HASTY, attempts_when_limited=1_000_000))
    first = await stage.start(order, crash_at=f"call.settled:{calls // 3}")
    await first.ready()
    first.go()
    assert (await first.end()).killed

    stage.sim.faults(BUSY)  # so that the one which drives is not done before the other looks
    drivers = [await stage.start(order), await stage.start(order)]
    await asyncio.gather(*(driver.ready() for driver in drivers))
    for driver in drivers:
        driver.go()
    ends = [asyncio.ensure_future(driver.end()) for driver in drivers]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    stage.sim.faults({})
    ended = await asyncio.gather(*ends)

    winners = [driver for driver, end in zip(drivers, ended, strict=True) if "run" in end.said]
    losers = [end for end in ended if "error" in end.said]
    assert (len(winners), len(losers)) == (1, 1), ended
    assert losers[0].code == 4
    assert losers[0].said["error"]["code"] == "conflict"
    assert f"process {winners[0].pid} " in losers[0].said["error"]["message"]

    books = await read_books(stage, name)
    check_whole(books, calls)
    check_books(books)
    check_paid_once(books, stage.sim.audit())
    assert books.run.lease.epoch == 2
    assert [event.kind for event in books.events].count("run.resumed") == 1


async def test_one_drives_and_the_other_is_told_who(stage: Stage) -> None:
    for number in range(2):
        await race(stage, f"race-{number}", 60)


@pytest.mark.chaos
async def test_one_drives_and_the_other_is_told_who_every_time(stage: Stage) -> None:
    for number in range(10):
        await race(stage, f"race-{number}", 200)
