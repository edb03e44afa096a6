"""How what is told ends when work is canceled, refused or never sent."""

import asyncio
from pathlib import Path

from muster.domain.agent import COMMAND_LIMITER, Profile
from muster.domain.call import ask
from muster.domain.entry import AttemptId, Failed, Unsent
from muster.domain.ids import RunId
from muster.domain.observation import AttemptBegan, AttemptEnded, CallBegan, CallEnded, Observation, RunEnded
from muster.domain.run import RunState
from muster.observability.call_totals import CallTotals
from tests.engine.batches.house import ANTHROPIC, open_house, wait_for


async def test_a_run_whose_waiter_is_canceled_is_told_as_it_was_let_go_of(tmp_path: Path) -> None:
    told: list[Observation] = []
    slow = open_house(tmp_path / "house", latency_ms=60_000.0)
    async with slow as house, house.open(observers=[told.append]) as muster:
        asking = asyncio.create_task(muster.ask(ANTHROPIC, "hello"))
        await wait_for(lambda: house.audit.requests > 0)
        asking.cancel()
        await asyncio.wait({asking})
    (ended,) = [one for one in told if isinstance(one, RunEnded)]
    assert (ended.run.state, ended.error) == (RunState.INTERRUPTED, None)
    (attempt,) = [one for one in told if isinstance(one, AttemptEnded)]
    assert isinstance(attempt.outcome, Failed)
    assert attempt.outcome.uncertain
    (call,) = [one for one in told if isinstance(one, CallEnded)]
    assert call.outcome is None


def test_what_was_refused_before_it_began_is_no_attempt() -> None:
    totals, attempt = CallTotals(), AttemptId(run=RunId("r1"), key="k", n=1, epoch=1)
    refused = AttemptEnded(attempt, Failed(error={"code": "invalid_request"}, uncertain=False))
    totals(CallBegan(RunId("r1"), "k", Profile(name="a", limiter="a"), ask("hello")))
    totals(refused)
    assert not totals.attempts
    totals(AttemptBegan(attempt))
    totals(refused)
    totals(refused)
    assert totals.attempts == {("a", "failed"): 1}


def test_commands_share_one_name_in_metrics() -> None:
    totals = CallTotals()
    for number in range(3):
        run, attempt = RunId("r1"), AttemptId(run=RunId("r1"), key=str(number), n=1, epoch=1)
        totals(CallBegan(run, str(number), Profile(name=f"check {number}", limiter=COMMAND_LIMITER), ask("hello")))
        totals(AttemptBegan(attempt))
        totals(AttemptEnded(attempt, Unsent()))
        totals(CallEnded(run, str(number), None))
    assert totals.attempts == {("command", "unsent"): 3}
