"""The clock of tests: it stands still until it is told to go on."""

import asyncio

from muster.testing.clock import FakeClock


async def test_whoever_sleeps_wakes_when_the_time_has_come() -> None:
    clock = FakeClock(now=100.0)
    short, long = asyncio.ensure_future(clock.sleep(2.0)), asyncio.ensure_future(clock.sleep(5.0))
    assert await clock.someone_sleeps(at_least=3.0) == 5.0
    clock.advance(2.0)
    await short
    assert (clock.now(), clock.monotonic(), long.done()) == (102.0, 102.0, False)
    clock.advance(3.0)
    await long
    assert clock.slept == [2.0, 5.0]


async def test_a_canceled_sleeper_is_not_waited_for() -> None:
    clock = FakeClock()
    sleeper = asyncio.ensure_future(clock.sleep(9.0))
    await clock.someone_sleeps()
    sleeper.cancel()
    await asyncio.wait({sleeper})
    other = asyncio.ensure_future(clock.sleep(1.0))
    assert await clock.someone_sleeps() == 1.0
    clock.advance(1.0)
    await other
