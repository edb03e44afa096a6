"""Answers that the provider counts and does not deliver are paid for: they are fetched again, never bought again."""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.app import Muster
from muster.domain.agent import Timeouts
from muster.domain.batch import BatchProgress, BatchState, Tally
from muster.domain.dispatch import Fallback
from muster.domain.errors import BatchLost, CallFailed, InvalidRequest, TryLater
from muster.domain.run import RunState
from muster.engine.batches.base import Patience
from muster.engine.context import Context
from muster.testing.batches import MemoryBatches
from tests.engine.batches.house import House, ask_all, batch, batches_of, check_answered, questions, told
from tests.engine.batches.test_batcher import drive
from tests.engine.house import echo
from tests.engine.house import house as engine_house

ASKED = questions(20)
ONE = "question 7$"
KEY = "question/00007"


@pytest.fixture
async def impatient(house: House) -> AsyncIterator[Muster]:
    async with house.open_impatient() as opened:
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


@pytest.mark.parametrize("kind", ["missing", "truncated", "garbage"])
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
    async with house.open_impatient() as muster:
        run = await ask_all(muster, agent, ASKED)
        assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_lost")
    house.play()
    async with house.open() as muster:
        run = await (await muster.resume(run.id)).wait()
        check_answered(run, ASKED)
        await house.check_to_the_cent(muster, run)
    assert house.audit.calls == len(ASKED)


async def test_the_lines_before_a_cut_count_and_a_download_that_always_breaks_can_be_given_up(
    house: House, impatient: Muster, agent: str
) -> None:
    results = "batch_results" if agent.startswith("anthropic") else "file_content"
    house.play({"fault": "cut_stream", "op": results, "times": "always"})
    run = await ask_all(impatient, agent, ASKED)
    assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_lost")
    assert "batch reconcile --resubmit" in str(run.error)
    [made] = await batches_of(impatient, run)
    assert made.state is BatchState.ENDED
    assert 0 < made.tally.succeeded < len(ASKED)
    [given_up] = await impatient.batches.reconcile(resubmit=True)
    assert given_up.batch.state is BatchState.ABANDONED
    assert house.audit.calls == len(ASKED)


@pytest.mark.parametrize("answered", [-5, 10**20])
async def test_counts_that_cannot_be_right_buy_nothing_again(tmp_path: Path, answered: int) -> None:
    batches = Miscounting(answered)
    patience = Patience(settle=0.03, poll_first=0.01, poll_longest=0.02, deadline=3.0)
    async with engine_house(tmp_path, batches=batches, patience=patience, puppet=echo()) as place:
        run = await drive(place, four_questions, batches)
    assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_lost")
    assert [len(taken) for taken in batches.taken] == [4]


class Miscounting(MemoryBatches):
    """Leaves an answer out of its results, and counts what nobody can have answered."""

    def __init__(self, answered: int) -> None:
        super().__init__()
        self.answered = answered

    async def poll(self, provider_id: str, timeouts: Timeouts) -> BatchProgress:
        return replace(await super().poll(provider_id, timeouts), answered=self.answered)

    async def results(self, source: str, timeouts: Timeouts) -> AsyncGenerator[bytes, None]:
        lines = [line async for line in super().results(source, timeouts)]
        for line in lines[1:]:
            yield line


class Breaking(MemoryBatches):
    """Refuses one question, leaves the answer to another out of its results, and breaks off when it is read again."""

    def __init__(self) -> None:
        super().__init__(lambda text: InvalidRequest("no") if text == "question 3" else text)
        self.downloads = 0

    async def results(self, source: str, timeouts: Timeouts) -> AsyncGenerator[bytes, None]:
        self.downloads += 1
        lines = [line async for line in super().results(source, timeouts)]
        for line in lines[:3] if self.downloads == 1 else lines[1:2]:
            yield line
        if self.downloads > 1:
            raise TryLater("cut")


async def test_results_that_break_off_when_they_are_read_again_do_not_lack_more_than_before(tmp_path: Path) -> None:
    async def survey(ctx: Context, spec: Any) -> Any:
        async def one(number: int) -> str:
            try:
                return (await ctx.call("puppet", f"question {number}", key=f"q/{number}")).text
            except CallFailed as error:
                return error.code

        return await ctx.gather(*(one(number) for number in range(4)))

    batches = Breaking()
    patience = Patience(settle=0.03, poll_first=0.01, poll_longest=0.02, deadline=3.0)
    async with engine_house(tmp_path, batches=batches, patience=patience, puppet=echo()) as place:
        run = await drive(place, survey, batches)
    assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_lost")
    assert "its results lack 1 answer" in str(run.error)
    assert batches.downloads > 1


async def four_questions(ctx: Context, spec: Any) -> Any:
    return await ctx.gather(*(ctx.call("puppet", f"question {number}", key=f"q/{number}") for number in range(4)))
