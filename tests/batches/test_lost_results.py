"""Answers that the provider counts and does not deliver are paid for: they are fetched again, never bought again."""

from collections.abc import AsyncIterator

import pytest

from muster.app import Muster
from muster.domain.batch import BatchState, Tally
from muster.domain.errors import BatchLost
from muster.domain.run import Fallback, RunState
from tests.batches.house import (
    IMPATIENT,
    House,
    ask_all,
    batch,
    batches_of,
    check_answered,
    questions,
    told,
)

ASKED = questions(20)
ONE = "question 7$"
KEY = "question/00007"


@pytest.fixture
async def impatient(house: House) -> AsyncIterator[Muster]:
    async with house.open(patience=IMPATIENT) as opened:
        yield opened


@pytest.mark.parametrize("times", [1, 3, 6])
async def test_results_that_are_cut_are_fetched_again_until_they_are_whole(
    house: House, muster: Muster, agent: str, times: int
) -> None:
    results = "batch_results" if agent.startswith("anthropic") else "file_content"
    house.play({"fault": "truncated", "op": results, "times": times})
    run = await ask_all(muster, agent, ASKED)
    check_answered(run, ASKED)
    await house.check_to_the_cent(muster, run)
    assert house.audit.calls == len(ASKED)
    assert "batch.short" in await told(muster, run)


@pytest.mark.parametrize("kind", ["missing", "truncated"])
@pytest.mark.parametrize("fallback", Fallback)
async def test_an_answer_that_never_comes_stays_parked_and_is_not_asked_again(
    house: House, impatient: Muster, agent: str, kind: str, fallback: Fallback
) -> None:
    house.play({"fault": kind, "op": "member", "text": ONE})
    run = await ask_all(impatient, agent, ASKED, batch(batches=1, fallback=fallback))
    assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_lost")
    assert "batch reconcile --resubmit" in str(run.error)
    [made] = await batches_of(impatient, run)
    assert (made.state, made.tally) == (BatchState.ENDED, Tally(succeeded=19))
    [open_] = await impatient.batches.reconcile(resubmit=False)
    assert isinstance(open_.error, BatchLost)
    assert house.audit.calls == len(ASKED)


async def test_a_batch_that_was_given_up_by_hand_is_not_one_of_the_tries(
    house: House, impatient: Muster, agent: str
) -> None:
    house.play({"fault": "missing", "op": "member", "text": ONE})
    run = await ask_all(impatient, agent, ASKED, batch(batches=1))
    [given_up] = await impatient.batches.reconcile(resubmit=True)
    assert (given_up.batch.state, given_up.batch.tally) == (BatchState.ABANDONED, Tally(succeeded=19, uncertain=1))
    run = await (await impatient.resume(run.id)).wait()
    check_answered(run, ASKED)
    books = await house.check(impatient, run)
    assert [attempt.key for attempt in books.uncertain] == [KEY]
    assert [each.tally for each in books.batches] == [Tally(succeeded=19, uncertain=1), Tally(succeeded=1)]
    assert house.audit.calls == len(ASKED) + 1  # the lost one was paid too, and the books show it


async def test_whoever_comes_back_later_finds_results_that_are_whole_by_then(house: House, agent: str) -> None:
    results = "batch_results" if agent.startswith("anthropic") else "file_content"
    house.play({"fault": "truncated", "op": results, "times": "always"})
    async with house.open(patience=IMPATIENT) as muster:
        run = await ask_all(muster, agent, ASKED)
        assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_lost")
    house.play()
    async with house.open() as muster:
        run = await (await muster.resume(run.id)).wait()
        check_answered(run, ASKED)
        await house.check_to_the_cent(muster, run)
    assert house.audit.calls == len(ASKED)
