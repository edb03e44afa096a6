"""What can become of single members: each ends in one way, is paid once, and a failure is the provider's own word."""

from typing import Any

import pytest

from muster.app import Muster
from muster.domain.batch import BatchState, Tally
from muster.domain.dispatch import Fallback
from muster.domain.run import RunState
from tests.engine.batches.house import (
    House,
    ask_all,
    batch,
    batches_of,
    check_answered,
    give_up_and_go_on,
    questions,
)

ASKED = questions(20)
ONE = "question 7$"
KEY = "question/00007"


@pytest.mark.parametrize("kind", ["duplicate", "unknown_id"])
async def test_lines_that_are_too_many_change_nothing_and_are_told(
    house: House, muster: Muster, agent: str, kind: str
) -> None:
    house.play({"fault": kind, "op": "member", "times": 5})
    run = await ask_all(muster, agent, ASKED)
    check_answered(run, ASKED)
    books = await house.check_to_the_cent(muster, run)
    assert [each.tally for each in books.batches] == [Tally(succeeded=20)]
    [odd] = [event for event in books.events if event.kind == "batch.odd"]
    why = "5 are duplicates" if kind == "duplicate" else "5 have unknown ids (nobody-sent-this"
    assert why in str(odd.data["why"])


@pytest.mark.parametrize("kind", ["500", "529", "429"])
async def test_a_member_that_failed_for_now_is_in_the_next_batch(
    house: House, muster: Muster, agent: str, kind: str
) -> None:
    house.play({"fault": kind, "op": "member", "text": ONE})
    run = await ask_all(muster, agent, ASKED)
    check_answered(run, ASKED)
    books = await house.check_to_the_cent(muster, run)
    assert [each.tally for each in books.batches] == [Tally(succeeded=19, errored=1), Tally(succeeded=1)]


async def test_a_member_that_the_provider_refuses_fails_at_once_with_its_message(
    house: House, muster: Muster, agent: str
) -> None:
    house.play({"fault": "400", "op": "member", "text": ONE, "times": "always"})
    run = await ask_all(muster, agent, ASKED)
    assert run.state is RunState.COMPLETED
    assert run.result[KEY]["error"] == "invalid_request"
    assert "by the fault plan" in run.result[KEY]["message"]
    assert sum("text" in answer for answer in run.result.values()) == 19
    books = await house.check_to_the_cent(muster, run)
    assert [each.tally for each in books.batches] == [Tally(succeeded=19, errored=1)]
    assert run.calls.failed == 1


EXPIRED = {"fault": "expired", "text": ONE, "times": "always"}


async def test_a_member_that_expired_is_in_the_next_batch(house: House, muster: Muster, agent: str) -> None:
    house.play({**EXPIRED, "times": 2})
    run = await ask_all(muster, agent, ASKED)
    check_answered(run, ASKED)
    books = await house.check_to_the_cent(muster, run)
    assert [each.tally for each in books.batches] == [
        Tally(succeeded=19, expired=1),
        Tally(expired=1),
        Tally(succeeded=1),
    ]


@pytest.mark.parametrize("batches", [1, 2, 3])
async def test_a_member_that_expires_again_and_again_is_given_up(
    house: House, muster: Muster, agent: str, batches: int
) -> None:
    house.play(EXPIRED)
    run = await ask_all(muster, agent, ASKED, batch(batches=batches))
    assert run.state is RunState.COMPLETED
    assert run.result[KEY]["error"] == "retries_exhausted"
    assert f"failed in {batches} batches" in run.result[KEY]["message"]
    assert "expired before" in run.result[KEY]["message"]
    books = await house.check_to_the_cent(muster, run)
    assert len(books.batches) == len(house.batches) == batches
    assert run.calls.failed == 1


async def test_a_member_that_was_in_enough_batches_is_sent_live_if_the_run_says_so(
    house: House, muster: Muster, agent: str
) -> None:
    house.play(EXPIRED)
    run = await ask_all(muster, agent, ASKED, batch(fallback=Fallback.LIVE, batches=2))
    check_answered(run, ASKED)
    books = await house.check_to_the_cent(muster, run)
    assert len(books.batches) == 2
    [live] = [attempt for attempt in books.attempts if attempt.batch is None]
    assert (live.key, live.n) == (KEY, 3)


async def test_what_a_batch_did_not_come_to_before_it_expired_is_in_the_next(
    house: House, muster: Muster, agent: str
) -> None:
    house.play({"fault": "expiry"})
    run = await ask_all(muster, agent, ASKED)
    check_answered(run, ASKED)
    books = await house.check_to_the_cent(muster, run)
    assert [each.tally for each in books.batches] == [Tally(succeeded=10, expired=10), Tally(succeeded=10)]


async def test_what_was_given_up_is_asked_again_when_the_run_is_resumed(
    house: House, muster: Muster, agent: str
) -> None:
    spec = {"agent": agent, "count": 10, "turns": 1}
    house.play({**EXPIRED, "text": " 7, turn 0$"})
    failed = await (await muster.start("conversations", spec, dispatch=batch(batches=2))).wait()
    assert (failed.state, failed.ended_reason) == (RunState.FAILED, "retries_exhausted")
    house.play()
    run = await (await muster.resume(failed.id)).wait()
    assert run.state is RunState.COMPLETED, run.error
    assert (run.calls.total, run.calls.reused) == (10, 9)
    assert house.audit.calls == 10
    assert house.audit.cost == failed.spent.billed + run.spent.billed


def of_all() -> list[dict[str, Any]]:
    """Every fault of members once, each with another member."""
    kinds = ("400", "404", "413", "429", "500", "529", "duplicate", "expired", "missing", "truncated", "unknown_id")
    return [{"fault": kind, "op": "member", "text": f"question {number}$"} for number, kind in enumerate(kinds)]


async def test_all_faults_of_members_at_once_end_each_in_one_way(house: House, agent: str) -> None:
    house.play(*of_all())
    async with house.open_impatient() as muster:
        run = await ask_all(muster, agent, ASKED)
        [first, *_] = await batches_of(muster, run)
        assert (first.state, first.tally) == (BatchState.ENDED, Tally(succeeded=11, errored=6, expired=1))
        run, rounds = await give_up_and_go_on(muster, run)
        check_answered(run, ASKED)  # what failed is tried again when the run goes on
        books = await house.check(muster, run)
        assert (rounds, books.batches[0].tally) == (1, Tally(succeeded=11, errored=6, expired=1, uncertain=2))
    assert house.audit.calls == 11 + 2 + 9  # what was lost on the way was paid too
