"""What can go wrong while a batch is waited for: what passes is outlived, and nothing is taken for failed."""

from dataclasses import replace
from typing import Any

import pytest

from muster.app import Muster
from muster.domain.batch import BatchState
from muster.domain.run import RunState
from tests.engine.batches.house import ANTHROPIC, QUICK, House, ask_all, batches_of, check_answered, questions

ASKED = questions(12)


@pytest.mark.parametrize("kind", ["500", "529", "429", "timeout", "cut_before", "cut_after", "garbage", "truncated"])
async def test_polls_that_fail_are_outlived(house: House, muster: Muster, agent: str, kind: str) -> None:
    house.play({"fault": kind, "op": "batch_retrieve", "times": 1 if kind == "timeout" else 4})
    run = await ask_all(muster, agent, ASKED)
    check_answered(run, ASKED)
    await house.check_to_the_cent(muster, run)
    assert len(house.batches) == 1


@pytest.mark.parametrize("kind", ["late_404", "unknown_status", "no_results_url"])
async def test_what_a_provider_says_for_a_while_only_is_outlived(house: House, agent: str, kind: str) -> None:
    house.play({"fault": kind, "looks": 4})
    async with house.open(patience=replace(QUICK, grace=60.0)) as muster:
        run = await ask_all(muster, agent, ASKED)
        check_answered(run, ASKED)
        await house.check_to_the_cent(muster, run)
    assert len(house.batches) == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"fault": "no_results_url", "looks": 1000}, "has ended without results"),
        ({"fault": "404", "op": "batch_retrieve", "times": "always"}, "no longer exists at the provider"),
    ],
)
async def test_results_that_are_never_to_be_had_stop_the_run_and_lose_nothing(
    house: House, muster: Muster, agent: str, fault: dict[str, Any], words: str
) -> None:
    house.play(fault)
    run = await ask_all(muster, agent, ASKED)
    assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_lost")
    assert run.error is not None
    [made] = await batches_of(muster, run)
    assert words in str(run.error["message"])
    assert str(made.provider_id) in str(run.error["message"])
    assert made.tally.over == 0
    assert (await muster._backend.store.batches.saving(run.id)).parked == len(ASKED)
    assert run.spent.reserved == made.reserved > 0

    if fault["fault"] == "404":
        house.play()
        check_answered(await (await muster.resume(run.id)).wait(), ASKED)
        await house.check_to_the_cent(muster, run)


async def test_results_at_another_address_are_refused_and_the_key_is_not_sent_there(
    house: House, muster: Muster
) -> None:
    house.play({"fault": "foreign_results_url", "looks": 1000})
    run = await ask_all(muster, ANTHROPIC, ASKED)
    assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_lost")
    assert run.error is not None
    assert "so the key is not sent there" in str(run.error["message"])
    [made] = await batches_of(muster, run)
    assert (made.state, made.tally.over) == (BatchState.ENDED, 0)
    assert (await muster._backend.store.batches.saving(run.id)).parked == len(ASKED)


@pytest.mark.parametrize(
    "kind", ["cut_stream", "truncated", "stalled_stream", "garbage", "500", "cut_before", "slow_stream"]
)
async def test_results_that_break_off_are_read_again(house: House, muster: Muster, agent: str, kind: str) -> None:
    op = "batch_results" if agent == ANTHROPIC else "file_content"
    house.play({"fault": kind, "op": op, "times": 1 if kind == "stalled_stream" else 2, "gap_ms": 5})
    run = await ask_all(muster, agent, ASKED)
    check_answered(run, ASKED)
    await house.check_to_the_cent(muster, run)
    assert len(house.batches) == 1
