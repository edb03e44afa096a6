"""Agents that are processes, as the engine sees them: their time, their places, and what their failures cost."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.domain.agent import PHASE_SECONDS, Pace, Profile, Timeouts
from muster.domain.call import Reply, Request, ask
from muster.domain.canonical import Json
from muster.domain.entry import AttemptId, AttemptState, EntryState
from muster.domain.errors import AgentFailed, BadExit, BudgetExhausted, CallFailed, Paid, Stalled
from muster.domain.money import Lane
from muster.domain.run import RunState
from muster.engine.context import Context
from tests.engine.house import PUPPET, Hanging, Puppet, check_books, failing, house, reply

USUAL = Timeouts()
OWN = Timeouts(call=300.0, idle=300.0)


@pytest.mark.parametrize(
    ("profile", "left", "seconds"),
    [
        (Profile(name="p", limiter="p"), 20.0, 20.0),  # no call outlives its phase
        (Profile(name="p", limiter="p", timeouts=OWN), 900.0, 300.0),  # its own time, where the phase has more
        (Profile(name="p", limiter="p", timeouts=OWN, phased=True), 120.0, 120.0),
        (Profile(name="p", limiter="p", timeouts=OWN, phased=True), 0.3, 1.0),  # rounded up
        (Profile(name="p", limiter="p", timeouts=OWN, phased=True), 1200.5, 1201.0),
        (Profile(name="p", limiter="p", timeouts=OWN, phased=True), 0.0, 300.0),  # nothing is said
        (Profile(name="p", limiter="p", timeouts=OWN, phased=True), None, 300.0),
        (Profile(name="p", limiter="p", timeouts=OWN, phased=True), "soon", 300.0),
        (Profile(name="p", limiter="p", timeouts=OWN, phased=True), float("inf"), 300.0),
    ],
)
def test_a_call_has_its_own_time_or_the_rest_of_its_phase_or_the_usual(
    profile: Profile, left: Json, seconds: float
) -> None:
    request = replace(ask("x"), volatile={} if left is None else {PHASE_SECONDS: left})
    allowed = profile.allow(request, USUAL)
    assert allowed.call == seconds
    assert allowed.idle == (profile.timeouts or USUAL).idle


async def test_an_agent_gets_its_own_time_unless_the_call_names_one(tmp_path: Path) -> None:
    seen: list[float] = []

    class Clocked(Puppet):
        async def call(self, request: Request, timeouts: Timeouts, on_delta: object = None) -> Reply:
            seen.append(timeouts.call)
            return reply()

    async def work(ctx: Context, spec: Any) -> Json:
        await ctx.call("a", "own", key="own")
        await ctx.call("a", "named", key="named", timeout=7.0)
        return None

    async def nothing(request: Request, n: int) -> Reply:
        return reply()

    agent = Clocked(nothing, profile=replace(PUPPET, timeouts=Timeouts(call=1800.0)))
    async with house(tmp_path, a=agent) as h:
        assert (await h.drive(work)).state is RunState.COMPLETED
    assert seen == [1800.0, 7.0]


async def test_what_a_context_says_is_left_of_a_phase_bounds_the_call(tmp_path: Path) -> None:
    seen: list[float] = []

    class Clocked(Puppet):
        async def call(self, request: Request, timeouts: Timeouts, on_delta: object = None) -> Reply:
            seen.append(timeouts.call)
            return reply()

    async def work(ctx: Context, spec: Any) -> Json:
        left = replace(ask("x"), context={PHASE_SECONDS: 12.5})
        await ctx.call("a", left, key="left")
        await ctx.call("a", left, key="named", timeout=7.0)
        await ctx.call("a", left, key="long", timeout=70.0)
        return None

    async def nothing(request: Request, n: int) -> Reply:
        return reply()

    agent = Clocked(nothing, profile=replace(PUPPET, timeouts=OWN, phased=True))
    async with house(tmp_path, a=agent) as h:
        assert (await h.drive(work)).state is RunState.COMPLETED
    assert seen == [13.0, 7.0, 13.0]


@pytest.mark.parametrize(("agents", "runs", "opened"), [(3, 5, 3), (8, 2, 2)])
async def test_no_attempt_is_opened_before_there_is_a_place_for_its_process(
    tmp_path: Path, agents: int, runs: int, opened: int
) -> None:
    hanging = Hanging()
    hanging.puppet.profile = replace(PUPPET, pace=Pace(concurrency=agents, gets_ahead=False))

    async def work(ctx: Context, spec: Any) -> Json:
        async def one(number: int, _: int) -> str:
            return (await ctx.call("a", str(number), key=f"k/{number}")).text

        return [text async for text in ctx.map(one, range(12))]

    async with house(tmp_path, a=hanging.puppet) as h:
        run = await h.create(work, concurrency=runs)
        driving = asyncio.create_task(h.engine.drive(run.id))
        for _ in range(opened):
            await hanging.arrived.get()
        await h.store.events.put_partial(
            AttemptId(run.id, "x", 1, 1), "", 0.0
        )  # written after everything that was asked for by now
        assert len(await h.store.archive.attempts(run.id, (AttemptState.STARTED,))) == opened
        hanging.let_go.set()
        assert (await driving).result == [str(number) for number in range(12)]
        await check_books(h.store, run.id)


async def call_once(ctx: Context, spec: Any) -> Json:
    try:
        return (await ctx.call("a", "hi", key="k")).text
    except CallFailed as error:
        return error.code


async def test_a_failure_that_says_what_it_cost_is_booked_at_that_and_not_tried_again(tmp_path: Path) -> None:
    agent = failing(AgentFailed("it gave up", log="a word", tool="Bash", cost=70))
    async with house(tmp_path, a=agent) as h:
        run = await h.drive(call_once, cap=1000)
        assert (run.state, run.result) == (RunState.COMPLETED, "agent_failed")
        assert (run.spent.billed, run.spent.uncertain, len(agent.asked)) == (70, 0, 1)
        entry = await h.store.journal.find(run.id, "k")
        assert entry is not None
        assert entry.state is EntryState.FAILED
        assert (entry.error or {})["log"] == "a word"
        assert (entry.error or {})["tool"] == "Bash"
        await check_books(h.store, run.id)


async def test_a_subscription_pays_for_a_failure_too(tmp_path: Path) -> None:
    async with house(tmp_path, a=failing(AgentFailed("it gave up", cost=70, imputed=True))) as h:
        run = await h.drive(call_once, cap=1000)
        assert (run.spent.billed, run.spent.imputed) == (0, 70)


async def test_a_killed_process_is_booked_as_uncertain(tmp_path: Path) -> None:
    async with house(tmp_path, a=failing(Stalled("it was silent", paid=Paid.UNKNOWN))) as h:
        run = await h.drive(call_once, cap=1000)
        assert (run.result, run.spent.uncertain, run.calls.uncertain) == ("stalled", 100, 1)
        await check_books(h.store, run.id)


async def test_a_program_that_costs_nothing_fails_for_nothing(tmp_path: Path) -> None:
    async with house(tmp_path, a=failing(BadExit("exited with code 1"))) as h:
        run = await h.drive(call_once, cap=1000)
        assert (run.result, run.spent.billed, run.spent.uncertain) == ("bad_exit", 0, 0)


@pytest.mark.parametrize("fails", [False, True])
async def test_more_than_was_reserved_is_booked_in_full_flagged_and_stops_new_calls(
    tmp_path: Path, fails: bool
) -> None:
    async def answer(request: Request, n: int) -> Reply:
        if fails:
            raise AgentFailed("over its budget", cost=130)
        return reply(cost=130)

    async def work(ctx: Context, spec: Any) -> Json:
        for number in range(3):
            try:
                await ctx.call("a", str(number), key=f"k/{number}")
            except CallFailed:
                continue
        return None

    agent = Puppet(answer)
    async with house(tmp_path, a=agent) as h:
        run = await h.drive(work, cap=1000)
        assert (run.state, run.ended_reason) == (RunState.FAILED, BudgetExhausted.code)
        assert (run.spent.billed, len(agent.asked)) == (130, 1)
        events = {event.kind: event.data for event in await h.store.events.read(run.id, 0, 100)}
        assert events["call.failed" if fails else "call.done"]["budget_exceeded"] is True
        assert (events["overdraft"]["reserved"], events["overdraft"]["cost"]) == (100, 130)
        await check_books(h.store, run.id)


async def test_without_a_cap_more_than_was_reserved_stops_new_calls_too_but_what_nobody_bounded_does_not(
    tmp_path: Path,
) -> None:
    async def answer(request: Request, n: int) -> Reply:
        return reply(cost=130)

    async def work(ctx: Context, spec: Any) -> Json:
        for number in range(3):
            await ctx.call(spec, str(number), key=f"k/{number}")
        return None

    async with house(tmp_path, bounded=Puppet(answer), free=Puppet(answer, most=0)) as h:
        assert (await h.drive(work, spec="bounded")).ended_reason == BudgetExhausted.code
        run = await h.drive(work, spec="free", workload="free")
        assert (run.state, run.spent.billed) == (RunState.COMPLETED, 390)


async def test_a_reply_in_a_lane_of_its_own_is_booked_there(tmp_path: Path) -> None:
    async def answer(request: Request, n: int) -> Reply:
        return replace(reply(cost=60), lane=Lane.IMPUTED if n == 1 else Lane.UNCERTAIN)

    async def work(ctx: Context, spec: Any) -> Json:
        await ctx.call("a", "subscription", key="a")
        await ctx.call("a", "nobody said", key="b")
        return None

    async with house(tmp_path, a=Puppet(answer)) as h:
        run = await h.drive(work, cap=1000)
        assert (run.spent.billed, run.spent.imputed, run.spent.uncertain) == (0, 60, 60)
        await check_books(h.store, run.id)
