"""Usage that lies, in every field of both protocols, live, streamed and in batch: no cap is passed by it."""

import json
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.app import Muster
from muster.domain.dispatch import LIVE, Dispatch
from muster.domain.entry import AttemptState
from muster.domain.money import MAX_COST, Lane
from muster.domain.run import Run, RunState
from muster.store.base import Attempt
from tests.engine.batches.house import ANTHROPIC, OPENAI, batch, survey
from tests.engine.batches.liar import FIELDS, OBJECTS, Lie, before_a_liar

IMPOSSIBLE = (
    "-1",
    "-2996000",
    "9007199254740993",
    "1" + "0" * 30,
    "9" * 5000,
    "1e400",
    "-1e400",
    "NaN",
    "-Infinity",
    "1.5",
    '"12"',
    "true",
    "[]",
)
MODES = {"live": (LIVE, 10), "streamed": (LIVE, 16_385), "batch": (batch(), 10)}


@pytest.fixture(params=(ANTHROPIC, OPENAI))
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> tuple[Dispatch, int]:
    return MODES[request.param]


def lies_of(agent: str) -> list[Lie]:
    lies = [Lie(place, text) for place, text in product(FIELDS[agent], (*IMPOSSIBLE, "{}"))]
    return lies + [Lie(place, text) for place, text in product(OBJECTS[agent], IMPOSSIBLE)]


async def ask(muster: Muster, agent: str, count: int, mode: tuple[Dispatch, int], budget: float | None = None) -> Run:
    dispatch, max_tokens = mode
    asked = {f"k/{number:03d}": f"lie:{number}." for number in range(count)}
    handle = await muster.start("survey", survey(agent, asked, max_tokens), dispatch=dispatch, budget_usd=budget)
    return await handle.wait()


async def attempts_of(muster: Muster, run: Run) -> list[Attempt]:
    return list(await muster._backend.store.archive.attempts(run.id))


async def test_impossible_usage_costs_the_reservation_and_the_reply_stands(
    tmp_path: Path, agent: str, mode: tuple[Dispatch, int]
) -> None:
    lies = lies_of(agent)
    async with before_a_liar(tmp_path, lies) as (muster, liar):
        run = await ask(muster, agent, len(lies), mode)
        attempts = await attempts_of(muster, run)
    assert run.state is RunState.COMPLETED, run.error
    assert run.result == {f"k/{number:03d}": {"text": f"lie:{number}."} for number in range(len(lies))}
    assert liar.audit.calls == len(lies)
    for attempt in attempts:
        lie = lies[int(attempt.key[2:])]
        assert (attempt.n, attempt.state) == (1, AttemptState.SUCCEEDED), lie
        assert (attempt.cost, attempt.lane) == (attempt.reserved, Lane.UNCERTAIN), lie
    assert len(attempts) == len(lies)
    assert run.spent.uncertain == sum(attempt.reserved for attempt in attempts)
    assert (run.spent.billed, run.spent.reserved) == (0, 0)


@pytest.mark.parametrize("text", ["-2996000", "1e400", '"12"'])
async def test_no_cap_is_passed_by_usage_that_lies(
    tmp_path: Path, agent: str, mode: tuple[Dispatch, int], text: str
) -> None:
    lies = [Lie(place, text) for place in FIELDS[agent]] * 10
    async with before_a_liar(tmp_path, lies) as (muster, liar):
        cap = 0.001 if mode[1] == 10 else 0.3
        run = await ask(muster, agent, len(lies), mode, cap)
        attempts = await attempts_of(muster, run)
    assert 0 < run.spent.settled <= cap * 1_000_000
    assert 0 < liar.audit.calls < len(lies)
    assert all(attempt.cost >= 0 for attempt in attempts)


async def test_absurd_usage_within_range_is_an_overdraft_and_no_sum_overflows(
    tmp_path: Path, agent: str, mode: tuple[Dispatch, int]
) -> None:
    lies = [Lie(place, str(2**53)) for place in FIELDS[agent]] * 20
    async with before_a_liar(tmp_path, lies) as (muster, _):
        run = await ask(muster, agent, len(lies), mode)
        attempts = await attempts_of(muster, run)
        saving = await muster._backend.store.batches.saving(run.id)
        batches = await muster._backend.store.batches.of_run(run.id)
    assert run.ended_reason == "budget" or mode[0] != LIVE
    assert all(0 <= attempt.cost <= MAX_COST for attempt in attempts)
    assert run.spent.settled == sum(attempt.cost for attempt in attempts) > MAX_COST
    assert saving.cost == sum(found.cost for found in batches)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    lies=st.lists(
        st.tuples(
            st.sampled_from([*FIELDS[ANTHROPIC], *FIELDS[OPENAI]]),
            st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.text("0159.-"), st.just([])),
        ),
        min_size=5,
        max_size=20,
    ),
    agent=st.sampled_from([ANTHROPIC, OPENAI]),
    mode=st.sampled_from(sorted(MODES)),
)
async def test_whatever_is_reported_no_cost_is_below_zero_and_nothing_is_asked_twice(
    tmp_path_factory: pytest.TempPathFactory, lies: list[tuple[tuple[str, ...], object]], agent: str, mode: str
) -> None:
    told = [Lie(place, json.dumps(value)) for place, value in lies]
    async with before_a_liar(tmp_path_factory.mktemp("liar"), told) as (muster, liar):
        run = await ask(muster, agent, len(told), MODES[mode], 0.001 if MODES[mode][1] == 10 else 0.3)
        attempts = await attempts_of(muster, run)
    assert run.state in (RunState.COMPLETED, RunState.FAILED), run.error
    assert all(attempt.cost >= 0 for attempt in attempts)
    assert liar.audit.calls == len([attempt for attempt in attempts if attempt.state is AttemptState.SUCCEEDED])
    cap = run.cap
    over = [attempt for attempt in attempts if attempt.cost > attempt.reserved]
    assert cap is not None
    assert over or run.spent.settled <= cap
