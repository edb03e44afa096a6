"""The limiter: places in order, rates, pauses, and learning from refusals."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.agent import Pace
from muster.domain.errors import InvalidRequest, OutcomeUnknown, Overloaded, ProviderFault, RateLimited, WireError
from muster.engine.calls.limiter import Limiter, Limiters, Place, Window, share_of
from muster.engine.calls.retry import Again, GiveUp, RetryPolicy, decide
from muster.testing.clock import FakeClock
from tests.engine.house import reply


async def take(limiter: Limiter, tokens: int = 1) -> Place:
    place = await limiter.enter(tokens)
    try:
        await limiter.acquire_wire(place)
    except asyncio.CancelledError:
        limiter.leave(place)
        raise
    return place


async def enter(limiter: Limiter, tokens: int = 1) -> Place:
    return await asyncio.wait_for(take(limiter, tokens), 60)


def leave(limiter: Limiter, place: Place, outcome: object = None) -> None:
    place.outcome = reply() if outcome is None else outcome
    limiter.leave(place)


async def test_a_call_that_never_went_on_the_wire_uses_up_nothing_of_the_rate() -> None:
    limiter = Limiter(Pace(requests_per_minute=60, tokens_per_minute=60), FakeClock())
    for _ in range(1000):
        limiter.leave(await asyncio.wait_for(limiter.enter(50), 60))
    assert limiter._clock.monotonic() == FakeClock().monotonic()


async def test_no_more_than_the_limit_are_let_in_and_the_others_come_in_order() -> None:
    limiter = Limiter(Pace(concurrency=2), FakeClock())
    first, second = await enter(limiter), await enter(limiter)
    order: list[int] = []

    async def late(number: int) -> None:
        place = await take(limiter)
        order.append(number)
        leave(limiter, place)

    waiting = [asyncio.create_task(late(i)) for i in range(5)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (limiter.in_flight, order) == (2, [])
    leave(limiter, first)
    leave(limiter, second)
    await asyncio.gather(*waiting)
    assert (limiter.in_flight, order) == (0, [0, 1, 2, 3, 4])


async def test_one_that_gives_up_in_the_line_leaves_no_hole() -> None:
    limiter = Limiter(Pace(concurrency=1), FakeClock())
    first = await enter(limiter)
    quitters = [asyncio.create_task(take(limiter)) for _ in range(3)]
    patient = asyncio.create_task(take(limiter))
    await asyncio.sleep(0)
    leave(limiter, first)
    for quitter in quitters:
        quitter.cancel()  # at the very moment one was let on, one in, and one still stands in the line
    place = await asyncio.wait_for(patient, 60)
    assert limiter.in_flight == 1
    leave(limiter, place)
    assert (limiter.in_flight, limiter._inside) == (0, 0)


async def test_a_few_get_ready_while_all_places_are_taken() -> None:
    limiter = Limiter(Pace(concurrency=16), FakeClock())
    for _ in range(16):
        await enter(limiter)
    ready = [asyncio.create_task(limiter.enter(1)) for _ in range(7)]
    await asyncio.sleep(0)
    assert [each.done() for each in ready] == [True] * 6 + [False]
    boarding = asyncio.create_task(limiter.acquire_wire(ready[0].result()))
    await asyncio.sleep(0)
    assert not boarding.done()
    assert limiter.in_flight == 16
    for each in ready:
        each.cancel()


async def test_requests_a_minute_are_kept() -> None:
    clock = FakeClock()
    limiter = Limiter(Pace(requests_per_minute=60), clock)
    burst = 0
    while True:
        waiting = asyncio.create_task(take(limiter))
        await asyncio.sleep(0)
        if not waiting.done():
            break
        leave(limiter, waiting.result())
        burst += 1
    assert burst == 7  # a tenth of the minute's allowance at once, and one
    assert 0 < await clock.someone_sleeps() <= 1
    clock.advance(1.0)
    leave(limiter, await asyncio.wait_for(waiting, 60))


async def test_tokens_a_minute_are_kept() -> None:
    clock = FakeClock()
    limiter = Limiter(Pace(tokens_per_minute=6000), clock)
    leave(limiter, await enter(limiter, 5000))
    waiting = asyncio.create_task(take(limiter, 10))
    assert await clock.someone_sleeps() == pytest.approx(44.0)
    clock.advance(44.1)
    await asyncio.wait_for(waiting, 60)


async def test_a_retry_after_pauses_the_whole_lane_up_to_a_cap() -> None:
    clock = FakeClock()
    limiter = Limiter(Pace(), clock)
    leave(limiter, await enter(limiter), RateLimited("later", retry_after=604_800))
    waiting = asyncio.create_task(take(limiter))
    assert await clock.someone_sleeps() == 60.0
    clock.advance(60.0)
    await asyncio.wait_for(waiting, 60)


def test_a_wave_of_refusals_shrinks_the_window_once() -> None:
    window = Window(100)
    for _ in range(80):
        window.refuse(0, 100)
    assert window.limit == 50
    window.refuse(1, 50)
    assert window.limit == 25


def test_the_window_grows_back_and_never_leaves_its_bounds() -> None:
    window = Window(10)
    for generation in range(20):
        window.refuse(generation, 10)
    assert window.limit == 1
    for _ in range(1000):
        window.succeed()
    assert window.limit == 10


@given(st.lists(st.booleans(), max_size=300), st.integers(1, 200))
def test_whatever_happens_one_place_is_left_and_no_more_than_allowed(outcomes: list[bool], most: int) -> None:
    window = Window(most)
    for good in outcomes:
        if good:
            window.succeed()
        else:
            window.refuse(window.generation, int(window.limit))
        assert 1 <= window.limit <= most


@pytest.mark.parametrize("room", [1, 5, 20, 60])
def test_against_a_server_with_so_much_room_the_window_settles_near_it(room: int) -> None:
    """Play rounds against a server that refuses what is too much; count what was refused."""
    window, refused, served, levels = Window(100), 0, 0, []
    for _ in range(400):
        places = int(window.limit)
        generation = window.generation
        for i in range(places):
            if i < room:
                window.succeed()
                served += 1
            else:
                window.refuse(generation, places)
                refused += 1
        levels.append(places)
    tail = levels[200:]
    assert room * 0.7 <= sum(tail) / len(tail) <= room * 1.1 + 1
    assert refused <= 0.2 * served + 250


@given(st.integers(1, 40), st.floats(0, 10**7) | st.none())
def test_a_delay_is_never_longer_than_the_cap_nor_shorter_than_asked(attempt: int, asked: float | None) -> None:
    policy = RetryPolicy(attempts=100, attempts_when_limited=100)
    decision = decide(RateLimited("x", retry_after=asked), attempt, policy, random.Random(attempt))
    assert isinstance(decision, Again)
    assert 0 <= decision.delay <= policy.longest_delay
    assert decision.delay >= min(asked or 0.0, policy.longest_delay * 0.9)


@pytest.mark.parametrize("error", [ProviderFault("x"), OutcomeUnknown("x"), Overloaded("x"), RateLimited("x")])
def test_trying_has_an_end(error: WireError) -> None:
    policy = RetryPolicy()
    last = policy.attempts_when_limited if isinstance(error, Overloaded | RateLimited) else policy.attempts
    assert isinstance(decide(error, last - 1, policy, random.Random(1)), Again)
    assert decide(error, last, policy, random.Random(1)) == GiveUp(exhausted=True)


def test_what_cannot_pass_is_not_tried_again() -> None:
    assert decide(InvalidRequest("x"), 1, RetryPolicy(), random.Random(1)) == GiveUp(exhausted=False)


def test_delays_of_many_calls_are_spread_out() -> None:
    dice = random.Random(5)
    delays = {decide(Overloaded("x"), 3, RetryPolicy(), dice) for _ in range(100)}
    assert len(delays) == 100


def test_workers_together_stay_within_a_pace() -> None:
    pace = Pace(concurrency=10, requests_per_minute=60, tokens_per_minute=None)
    for workers, places, requests in ((1, 10, 60.0), (3, 3, 20.0), (4, 2, 15.0), (20, 1, 3.0)):
        share = share_of(pace, workers)
        assert (share.concurrency, share.requests_per_minute, share.tokens_per_minute) == (places, requests, None)


def test_processes_are_limited_by_the_machine_that_starts_them() -> None:
    assert share_of(Pace(concurrency=4, gets_ahead=False), 4).concurrency == 4


async def test_limiters_are_divided_among_the_workers_that_come_and_go() -> None:
    limiters = Limiters(FakeClock())
    early = limiters.get("a", Pace(concurrency=10))
    limiters.divide(5)
    late = limiters.get("b", Pace(concurrency=10))
    assert [one.status.limit for one in (early, late)] == [2, 2]
    places = [await early.enter(0) for _ in range(2)]
    for place in places:
        await early.acquire_wire(place)
    third = asyncio.ensure_future(early.enter(0))
    await asyncio.sleep(0)
    limiters.divide(1)
    place = await third
    await early.acquire_wire(place)
    assert (early.status.in_flight, early.status.limit) == (3, 10)
