"""Parts of a run: what some of its calls may spend together, what is left, and signals that are waited for aside."""

import asyncio
from pathlib import Path
from typing import Any

from muster.domain.agent import PHASE_SECONDS, Profile, Timeouts
from muster.domain.budget import Allowance
from muster.domain.call import Message, Request, Role
from muster.domain.canonical import Json
from muster.domain.entry import NewSignal
from muster.domain.errors import BudgetExhausted
from muster.domain.money import Microdollars
from muster.domain.run import RunState
from muster.engine.base.killpoints import KillPoints
from muster.engine.context import Context
from muster.engine.drive import Leave
from muster.testing.clock import FakeClock
from tests.engine.house import Hanging, echo, house

SMALL = Allowance(name="a part", cap=Microdollars(25))


async def in_parts(ctx: Context, spec: Any) -> Json:
    """Make calls of one part until it may spend no more, then one outside of it."""
    done = 0
    try:
        for number in range(5):
            await ctx.call("a", "hi", key=f"part/{number}", allowance=SMALL)
            done += 1
    except BudgetExhausted as error:
        words = error.message
    await ctx.call("a", "hi", key="outside")
    found = await ctx.funds("funds")
    return {"done": done, "words": words, "spent": found.spent, "left": found.left}


async def test_calls_of_a_part_spend_no_more_than_its_allowance(tmp_path: Path) -> None:
    async with house(tmp_path, a=echo(cost=10, most=10)) as h:
        run = await h.drive(in_parts, cap=Microdollars(100))
        assert run.result["done"] == 2
        assert run.result["words"].startswith("budget of a part does not cover this call: $0.000020 of $0.000025")
        assert (run.result["spent"], run.result["left"]) == (30, 70)


async def test_a_run_without_a_cap_has_no_end_of_its_funds(tmp_path: Path) -> None:
    async with house(tmp_path, a=echo(cost=10, most=10)) as h:
        assert (await h.drive(in_parts)).result["left"] is None


async def beside(ctx: Context, spec: Any) -> Json:
    """Wait for a call that hangs, until a signal says to stop."""
    call = asyncio.ensure_future(ctx.call("a", "hi", key="call"))
    stop = asyncio.ensure_future(ctx.receive("stop", "stop", aside=True))
    await asyncio.wait({call, stop}, return_when=asyncio.FIRST_COMPLETED)
    on_wire = ctx.on_wire("call")
    call.cancel()
    await asyncio.wait({call})
    return {"stopped": stop.done(), "on_wire": on_wire, "after": ctx.on_wire("call")}


async def test_a_run_that_listens_aside_is_not_let_go_of_while_it_works(tmp_path: Path) -> None:
    agent = Hanging()
    async with house(tmp_path, a=agent.puppet) as h:
        run = await h.create(beside)
        driving = asyncio.ensure_future(h.engine.drive(run.id, leave=Leave.FOR_SIGNALS))
        await asyncio.wait_for(agent.arrived.get(), 30)
        run = await h.store.runs.get(run.id) or run
        assert run.state is RunState.RUNNING
        signal = NewSignal(address=run.lineage_level, channel="stop", payload=True, client_id="1", at=h.clock.now())
        await h.store.signals.send(signal)
        assert (await asyncio.wait_for(driving, 30)).result == {"stopped": True, "on_wire": True, "after": False}


class LookingAtOnce(KillPoints):
    """Lets the driver look whether its run only waits, at the very moments at which a signal is taken."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock

    def reach(self, point: str) -> None:
        if point in ("signal.before_take", "signal.taken"):
            self._clock.advance(1.0)


async def until_stopped(ctx: Context, spec: Any) -> Json:
    """Wait for an answer, until a signal says to stop."""
    answer = asyncio.ensure_future(ctx.receive("answer", "answer"))
    stop = asyncio.ensure_future(ctx.receive("stop", "stop", aside=True))
    await asyncio.wait({answer, stop}, return_when=asyncio.FIRST_COMPLETED)
    answer.cancel()
    await asyncio.wait({answer})
    return {"stopped": stop.done()}


async def test_a_run_is_not_let_go_of_with_a_signal_in_its_hand(tmp_path: Path) -> None:
    clock = FakeClock()
    async with house(tmp_path, clock=clock, kill=LookingAtOnce(clock)) as h:
        run = await h.create(until_stopped)
        signal = NewSignal(address=run.lineage_level, channel="stop", payload=True, client_id="1", at=clock.now())
        await h.store.signals.send(signal)
        driving = asyncio.ensure_future(h.engine.drive(run.id, leave=Leave.FOR_SIGNALS))
        found = await asyncio.wait_for(driving, 30)
        assert (found.state, found.result) == (RunState.COMPLETED, {"stopped": True})


def test_no_call_takes_longer_than_what_is_left_of_its_phase() -> None:
    request = Request(messages=(Message(role=Role.USER, text="hi"),), volatile={PHASE_SECONDS: 5})
    usual = Timeouts(call=60)
    model, program = Profile(name="m", limiter="m"), Profile(name="p", limiter="p", phased=True)
    assert model.allow(request, usual).call == 5
    assert model.allow(request, Timeouts(call=3)).call == 3
    assert program.allow(request, Timeouts(call=3)).call == 5
    assert model.allow(Request(messages=()), usual).call == 60
