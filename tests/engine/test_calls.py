"""The call path, step by step."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.agents.base import OnDelta
from muster.domain.agent import Timeouts
from muster.domain.call import Reply, Request, ask
from muster.domain.canonical import Json
from muster.domain.entry import AttemptState, EntryState
from muster.domain.errors import (
    AuthRefused,
    BadArgument,
    Interrupted,
    InvalidRequest,
    KeyReused,
    MusterError,
    OutcomeUnknown,
    Overloaded,
    ProviderFault,
    RateLimited,
    RetriesExhausted,
    Undecodable,
    Unreachable,
    Untrusted,
    WireError,
)
from muster.domain.run import RunState
from muster.engine.calls.retry import RetryPolicy
from muster.engine.context import Context
from muster.testing.clock import FakeClock
from tests.engine.house import Hanging, Puppet, check_books, echo, failing, house, reply


async def test_a_call_is_answered_once_and_then_remembered(tmp_path: Path) -> None:
    agent = echo()

    async def twice(ctx: Context, spec: Any) -> Json:
        first = await ctx.call("a", "hello", key="k")
        second = await ctx.call("a", "hello", key="k")
        assert first == second
        return first.text

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(twice)
        assert (run.state, run.result, len(agent.asked)) == (RunState.COMPLETED, "hello", 1)
        assert (run.spent.billed, run.calls.total, run.calls.done) == (10, 1, 1)
        await check_books(h.store, run.id)


async def test_the_attempt_is_durable_before_the_agent_is_asked(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        seen: list[tuple[str, int]] = []

        async def answer(request: Request, n: int) -> Reply:
            run = (await h.store.runs.select())[0]
            seen.extend((str(a.state), a.reserved) for a in await h.store.archive.attempts(run.id))
            return reply()

        agent = Puppet(answer)
        h.engine._with.directory._agents["a"] = agent  # type: ignore[attr-defined]  # the agent needs the store

        async def one(ctx: Context, spec: Any) -> Json:
            return (await ctx.call("a", "hello", key="k")).text

        await h.drive(one)
        assert seen == [("started", 100)]


async def test_one_key_for_two_requests_is_an_error_that_names_it(tmp_path: Path) -> None:
    async def reuse(ctx: Context, spec: Any) -> Json:
        await ctx.call("a", "one", key="case/1")
        await ctx.call("a", "two", key="case/1")
        return None

    async with house(tmp_path, a=echo()) as h:
        run = await h.drive(reuse)
        assert (run.state, run.ended_reason) == (RunState.FAILED, KeyReused.code)
        assert "'case/1'" in (run.error or {})["message"]


async def test_another_agent_under_the_same_key_is_another_request(tmp_path: Path) -> None:
    second = echo()
    second.profile = replace(second.profile, name="other")

    async def reuse(ctx: Context, spec: Any) -> Json:
        await ctx.call("a", "one", key="k")
        await ctx.call("b", "one", key="k")
        return None

    async with house(tmp_path, a=echo(), b=second) as h:
        assert (await h.drive(reuse)).ended_reason == KeyReused.code


async def test_what_is_volatile_does_not_change_what_a_call_is(tmp_path: Path) -> None:
    agent = echo()

    async def twice(ctx: Context, spec: Any) -> Json:
        for seconds in (10, 9):
            await ctx.call("a", replace(ask("hi"), volatile={"seconds_left": seconds}), key="k")
        return None

    async with house(tmp_path, a=agent) as h:
        assert (await h.drive(twice)).state is RunState.COMPLETED
        assert len(agent.asked) == 1
        assert agent.asked[0].volatile == {"seconds_left": 10}


async def test_a_second_call_with_the_same_key_waits_for_the_first(tmp_path: Path) -> None:
    hanging = Hanging()

    async def twins(ctx: Context, spec: Any) -> Json:
        async def let_go() -> None:
            await hanging.arrived.get()
            hanging.let_go.set()

        calls = [ctx.call("a", "hi", key="k") for _ in range(5)]
        replies = await ctx.gather(*calls, let_go())
        return [each.text for each in replies if isinstance(each, Reply)]

    async with house(tmp_path, a=hanging.puppet) as h:
        run = await h.drive(twins)
        assert run.result == ["hi"] * 5
        assert len(hanging.puppet.asked) == 1


async def test_a_twin_takes_the_turn_of_one_that_was_canceled(tmp_path: Path) -> None:
    hanging = Hanging()

    async def twins(ctx: Context, spec: Any) -> Json:
        first = asyncio.create_task(ctx.call("a", "hi", key="k"))
        await hanging.arrived.get()
        second = asyncio.create_task(ctx.call("a", "hi", key="k"))
        await asyncio.sleep(0)
        first.cancel()
        await hanging.arrived.get()
        hanging.let_go.set()
        return (await second).text

    async with house(tmp_path, a=hanging.puppet) as h:
        run = await h.drive(twins)
        assert run.result == "hi"
        states = [attempt.state for attempt in await h.store.archive.attempts(run.id)]
        assert states == [AttemptState.UNCERTAIN, AttemptState.SUCCEEDED]
        await check_books(h.store, run.id)


@pytest.mark.parametrize(
    "error",
    [RateLimited("slow down"), Overloaded("full"), ProviderFault("broken"), Unreachable("refused")],
    ids=lambda error: type(error).__name__,
)
async def test_what_may_pass_is_tried_again_and_costs_nothing(tmp_path: Path, error: MusterError) -> None:
    agent = failing(error, error)

    async def one(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", "hi", key="k")).attempt

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(one)
        assert run.result == 3
        assert (run.spent.billed, run.spent.uncertain) == (10, 0)
        assert (await h.kinds(run.id)).count("call.retry") == 2
        await check_books(h.store, run.id)


async def test_an_unknown_outcome_is_booked_in_full_and_tried_again(tmp_path: Path) -> None:
    agent = failing(OutcomeUnknown("cut"))

    async def one(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", "hi", key="k")).text

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(one)
        assert run.state is RunState.COMPLETED
        assert (run.spent.billed, run.spent.uncertain, run.calls.uncertain) == (10, 100, 1)
        await check_books(h.store, run.id)


async def test_an_invalid_request_fails_at_once_with_the_providers_words(tmp_path: Path) -> None:
    agent = failing(InvalidRequest("max_tokens: too large", status=400), InvalidRequest("again"))

    async def one(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", "hi", key="k")).text

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(one)
        assert (run.state, run.ended_reason, len(agent.asked)) == (RunState.FAILED, "invalid_request", 1)
        assert (run.error or {})["message"] == "max_tokens: too large"
        entry = await h.store.journal.find(run.id, "k")
        assert entry is not None
        assert (entry.state, (entry.error or {})["status"]) == (EntryState.FAILED, 400)


async def test_trying_ends_and_tells_the_last_error(tmp_path: Path) -> None:
    agent = failing(*[ProviderFault("broken")] * 9)

    async def one(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", "hi", key="k")).text

    async with house(tmp_path, a=agent, policy=RetryPolicy(attempts=4, first_delay=0.0001)) as h:
        run = await h.drive(one)
        assert (run.ended_reason, len(agent.asked)) == (RetriesExhausted.code, 4)
        assert "failed after 4 attempts: broken" in (run.error or {})["message"]


@pytest.mark.parametrize(
    ("error", "uncertain"),
    [(Undecodable("answered 200 encoded as 'gzip'"), 100), (Untrusted("the certificate is not valid"), 0)],
)
async def test_what_would_fail_again_in_the_same_way_is_not_tried_again(
    tmp_path: Path, error: WireError, uncertain: int
) -> None:
    agent = failing(error, error)

    async def work(ctx: Context, spec: Any) -> Json:
        with pytest.raises(type(error), match=error.message):
            await ctx.call("a", "hi", key="k")
        return None

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(work, cap=1000)
    assert (len(agent.asked), run.spent.uncertain, run.spent.billed) == (1, uncertain, 0)


async def test_a_retry_after_of_a_week_is_capped(tmp_path: Path) -> None:
    clock = FakeClock()
    agent = failing(RateLimited("later", retry_after=604_800.0))

    async def one(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", "hi", key="k")).text

    async with house(tmp_path, a=agent, clock=clock, policy=RetryPolicy(longest_delay=60.0)) as h:
        run = await h.create(one)
        driving = asyncio.create_task(h.engine.drive(run.id))
        waits = await clock.someone_sleeps(at_least=30)
        assert 54 <= waits <= 60
        while not driving.done():
            clock.advance(60)
            await asyncio.sleep(0.001)
        assert (await driving).result == "ok"


async def test_a_refused_key_stops_the_run_before_other_calls_are_made(tmp_path: Path) -> None:
    agent = failing(AuthRefused("wrong key", status=401))

    async def many(ctx: Context, spec: Any) -> Json:
        for i in range(10):
            try:
                await ctx.call("a", "hi", key=f"k{i}")
            except AuthRefused:
                continue
        return "went on"

    async with house(tmp_path, a=agent) as h:
        await h.drive(many)
        assert len(agent.asked) == 1


async def test_an_agent_that_breaks_fails_its_call_and_may_have_cost_money(tmp_path: Path) -> None:
    agent = failing(KeyError("oops"))

    async def one(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", "hi", key="k")).text

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(one)
        assert run.ended_reason == "call_failed"
        assert "puppet failed unexpectedly: KeyError('oops')" in (run.error or {})["message"]
        assert run.spent.uncertain == 100


async def test_an_agent_that_minds_no_time_is_cut_off(tmp_path: Path) -> None:
    hanging = Hanging()

    async def one(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", "hi", key="k", timeout=0.02)).text

    async with house(tmp_path, a=hanging.puppet) as h:
        run = await h.drive(one)
        assert (run.ended_reason, run.calls.uncertain) == (RetriesExhausted.code, 1)
        assert "cut off" in (run.error or {})["message"]
        await check_books(h.store, run.id)


async def test_an_agent_that_ignores_cancellation_does_not_hold_the_run(tmp_path: Path) -> None:
    stubborn = asyncio.Event()

    class Stubborn(Puppet):
        async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
            while not stubborn.is_set():
                try:
                    await stubborn.wait()
                except asyncio.CancelledError:
                    continue
            return reply()

    async def one(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", "hi", key="k", timeout=0.02)).text

    async with house(tmp_path, a=Stubborn(echo().answer)) as h:
        run = await h.drive(one)
        assert run.calls.uncertain == 1
        await check_books(h.store, run.id)
        stubborn.set()


async def test_a_call_may_have_only_so_much_time_over_all_its_attempts(tmp_path: Path) -> None:
    seen: list[float] = []
    clock = FakeClock()

    class Slow(Puppet):
        async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
            seen.append(timeouts.call)
            clock.advance(4.0)
            raise ProviderFault("slow and broken")

    async def one(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", "hi", key="k", timeout=10.0)).text

    async with house(tmp_path, a=Slow(echo().answer), clock=clock, policy=RetryPolicy(first_delay=0.0)) as h:
        run = await h.create(one)
        driving = asyncio.create_task(h.engine.drive(run.id))
        while not driving.done():
            clock.advance(0.0)  # wakes who waits for no time; how long the store takes must not count
            await asyncio.sleep(0.001)
        assert (await driving).ended_reason == RetriesExhausted.code
        assert [round(each) for each in seen] == [10, 6, 2]


@pytest.mark.parametrize("key", ["", "x" * 513, "with\nnewline", "nul\x00"])
async def test_a_key_must_be_short_and_printable(tmp_path: Path, key: str) -> None:
    async def one(ctx: Context, spec: Any) -> Json:
        await ctx.call("a", "hi", key=key)
        return None

    async with house(tmp_path, a=echo()) as h:
        assert (await h.drive(one)).ended_reason == BadArgument.code


async def test_text_is_handed_over_while_it_is_written_and_kept_once_a_second(tmp_path: Path) -> None:
    clock = FakeClock()
    deltas: list[str] = []
    partials: list[dict[str, str]] = []

    class Talker(Puppet):
        async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
            assert on_delta is not None
            for word in ("one ", "two ", "three "):
                on_delta(word)
            async with asyncio.timeout(60):
                while not (stored := dict(await h.store.events.partials(run.id))):
                    clock.advance(0.6)
                    await asyncio.sleep(0)
            partials.append(stored)
            return reply("one two three ")

    async def one(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", "hi", key="k", on_delta=deltas.append)).text

    async with house(tmp_path, a=Talker(echo().answer), clock=clock) as h:
        run = await h.create(one)
        assert (await h.engine.drive(run.id)).result == "one two three "
        assert deltas == ["one ", "two ", "three "]
        assert partials == [{"k": "one two three "}]
        assert await h.store.events.partials(run.id) == {}


async def test_a_key_that_a_step_has_cannot_be_a_call(tmp_path: Path) -> None:
    async def both(ctx: Context, spec: Any) -> Json:
        await ctx.step("k", lambda: 1)
        await ctx.call("a", "hi", key="k")
        return None

    async with house(tmp_path, a=echo()) as h:
        run = await h.drive(both)
        assert run.ended_reason == KeyReused.code
        assert run.spent.reserved == 0


async def test_calls_with_keys_of_their_own_are_not_disturbed_by_one_that_comes_back(tmp_path: Path) -> None:
    agent = echo()

    async def many(ctx: Context, spec: Any) -> Json:
        await ctx.call("a", "first", key="first")
        calls = [ctx.call("a", f"hi {i}", key=f"k{i}") for i in range(20)]
        again = [ctx.call("a", "first", key="first") for _ in range(3)]
        return [each.text for each in await ctx.gather(*calls, *again)]

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(many)
        assert run.result == [f"hi {i}" for i in range(20)] + ["first"] * 3
        assert (len(agent.asked), run.spent.billed) == (21, 210)
        await check_books(h.store, run.id)


async def test_no_more_calls_are_on_the_wire_than_the_run_may_have(tmp_path: Path) -> None:
    on_wire, most = 0, 0

    async def answer(request: Request, n: int) -> Reply:
        nonlocal on_wire, most
        on_wire += 1
        most = max(most, on_wire)
        await asyncio.sleep(0.001)
        on_wire -= 1
        return reply()

    async def many(ctx: Context, spec: Any) -> Json:
        async def one(i: int, item: int) -> int:
            return (await ctx.call("a", f"hi {item}", key=f"k{i}")).attempt

        return sum([attempt async for attempt in ctx.map(one, range(60))])

    async with house(tmp_path, a=Puppet(answer)) as h:
        run = await h.drive(many, concurrency=5)
        assert (run.result, most) == (60, 5)


async def test_the_engine_knows_how_many_calls_of_all_its_runs_are_on_the_wire(tmp_path: Path) -> None:
    hanging = Hanging()

    async def two(ctx: Context, spec: Any) -> Json:
        return [each.text for each in await ctx.gather(*(ctx.call("a", f"hi {i}", key=f"k{i}") for i in range(2)))]

    async with house(tmp_path, a=hanging.puppet) as h:
        driving = asyncio.gather(h.drive(two), h.drive(two))
        for _ in range(4):
            await hanging.arrived.get()
        assert h.engine.on_wire == 4
        hanging.let_go.set()
        await driving
        assert h.engine.on_wire == 0


async def test_what_was_ready_but_not_sent_when_the_run_stops_costs_nothing(tmp_path: Path) -> None:
    hanging = Hanging()

    async def three(ctx: Context, spec: Any) -> Json:
        return [each.text for each in await ctx.gather(*(ctx.call("a", f"hi {i}", key=f"k{i}") for i in range(3)))]

    async with house(tmp_path, a=hanging.puppet) as h:
        run = await h.create(three, concurrency=2)
        driving = asyncio.create_task(h.engine.drive(run.id))
        for _ in range(2):
            await hanging.arrived.get()
        while len(await h.store.archive.attempts(run.id)) < 3:
            await h.store.changes.wait(1, h.store.changes.commits)
        h.engine.stop_all(Interrupted("stop"), now=False)
        hanging.let_go.set()
        stopped = await driving
        assert (stopped.calls.done, stopped.spent.uncertain, len(hanging.puppet.asked)) == (2, 0, 2)
        states = sorted(attempt.state for attempt in await h.store.archive.attempts(run.id))
        assert states == [AttemptState.SUCCEEDED, AttemptState.SUCCEEDED, AttemptState.UNSENT]
        await check_books(h.store, run.id)


async def test_one_call_at_a_time_leaves_one_open_attempt_to_a_crash(tmp_path: Path) -> None:
    opened: list[list[AttemptState]] = []

    async def answer(request: Request, n: int) -> Reply:
        opened.append([attempt.state for attempt in await h.store.archive.attempts(run.id)])
        return reply("ok")

    async def three(ctx: Context, spec: Any) -> Json:
        return [each.text for each in await ctx.gather(*(ctx.call("a", f"hi {i}", key=f"k{i}") for i in range(3)))]

    async with house(tmp_path, a=Puppet(answer)) as h:
        run = await h.create(three, concurrency=1)
        await h.engine.drive(run.id)
    started = [states.count(AttemptState.STARTED) for states in opened]
    assert started == [1, 1, 1]
