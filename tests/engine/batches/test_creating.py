"""What can go wrong while a batch is handed in: it is created once, or shown as open, and never guessed."""

from pathlib import Path

import pytest

from muster.app import Muster
from muster.domain.batch import BatchState
from muster.domain.errors import BatchOpen
from muster.domain.run import RunState
from tests.engine.batches.house import (
    ANTHROPIC,
    OPENAI,
    House,
    ask_all,
    batches_of,
    check_answered,
    open_house,
    questions,
    told,
    wait_for,
)

ASKED = questions(12)


async def test_a_batch_whose_create_was_cut_after_it_arrived_is_adopted(
    house: House, muster: Muster, agent: str
) -> None:
    house.play({"fault": "cut_after", "op": "batch_create"})
    run = await ask_all(muster, agent, ASKED)
    check_answered(run, ASKED)
    books = await house.check_to_the_cent(muster, run)
    assert len(house.batches) == len(books.batches) == 1
    assert "batch.adopted" in await told(muster, run)
    assert ("batch.confirmed" in await told(muster, run)) == (agent == ANTHROPIC)  # the label says it at OpenAI


@pytest.mark.parametrize("kind", ["truncated", "garbage", "cut_stream", "timeout"])
async def test_a_batch_whose_id_never_arrived_is_adopted(house: House, muster: Muster, agent: str, kind: str) -> None:
    house.play({"fault": kind, "op": "batch_create"})
    run = await ask_all(muster, agent, ASKED)
    check_answered(run, ASKED)
    await house.check_to_the_cent(muster, run)
    assert len(house.batches) == 1


async def test_a_batch_whose_create_never_arrived_is_open_until_somebody_decides(
    house: House, muster: Muster, agent: str
) -> None:
    house.play({"fault": "cut_before", "op": "batch_create"})
    run = await ask_all(muster, agent, ASKED)
    assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_open")
    [reconciled] = await muster.batches.reconcile(resubmit=False)
    assert isinstance(reconciled.error, BatchOpen)
    assert reconciled.batch.state is BatchState.SENT
    run = await (await muster.resume(run.id)).wait()
    assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_open")
    assert not house.batches

    [given_up] = await muster.batches.reconcile(resubmit=True)
    assert given_up.batch.state is BatchState.ABANDONED
    run = await (await muster.resume(run.id)).wait()
    check_answered(run, ASKED)
    books = await house.check(muster, run)
    assert len(books.uncertain) == house.audit.calls == len(ASKED)
    assert [each.state for each in books.batches] == [BatchState.ABANDONED, BatchState.COLLECTED]


@pytest.mark.parametrize("kind", ["429", "529"])
async def test_a_refusal_that_passes_is_waited_out_and_one_batch_is_made(
    house: House, muster: Muster, agent: str, kind: str
) -> None:
    house.play({"fault": kind, "op": "batch_create", "times": 3})
    run = await ask_all(muster, agent, ASKED)
    check_answered(run, ASKED)
    books = await house.check_to_the_cent(muster, run)
    assert len(house.batches) == len(books.batches) == 1
    assert (await told(muster, run)).count("batch.put_back") == 3


async def test_a_provider_that_broke_may_have_created_it_and_is_looked_through(
    house: House, muster: Muster, agent: str
) -> None:
    house.play({"fault": "500", "op": "batch_create"})
    run = await ask_all(muster, agent, ASKED)
    assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_open")
    await muster.batches.reconcile(resubmit=True)
    check_answered(await (await muster.resume(run.id)).wait(), ASKED)
    assert house.audit.calls == len(ASKED)


@pytest.mark.parametrize("kind", ["cut_before", "cut_after", "500", "429", "garbage", "timeout"])
async def test_an_upload_that_failed_is_tried_again_and_one_batch_is_made(
    house: House, muster: Muster, kind: str
) -> None:
    house.play({"fault": kind, "op": "file_upload", "times": 2})
    run = await ask_all(muster, OPENAI, ASKED)
    check_answered(run, ASKED)
    books = await house.check_to_the_cent(muster, run)
    assert len(house.batches) == len(books.batches) == 1


async def test_every_member_of_a_batch_that_is_not_valid_gets_the_providers_message(
    house: House, muster: Muster, agent: str
) -> None:
    house.play({"fault": "validation_failure"})
    run = await ask_all(muster, agent, ASKED)
    assert run.state is RunState.COMPLETED
    assert {answer["error"] for answer in run.result.values()} == {"invalid_request"}
    assert all("is not valid, by the fault plan" in answer["message"] for answer in run.result.values())
    books = await house.check_to_the_cent(muster, run)
    assert [each.state for each in books.batches] == [BatchState.REFUSED]
    assert house.audit.calls == run.spent.settled == 0


async def test_one_like_batch_of_another_store_is_rejected_before_our_own_is_adopted(tmp_path: Path) -> None:
    async with open_house(tmp_path / "ours") as ours:
        theirs = House(tmp_path / "theirs", ours.server)
        theirs.declare()
        asked = questions(12, "theirs")
        ours.play({"fault": "cut_after", "op": "batch_create"}, {"fault": "500", "op": "batch_list", "times": "always"})
        async with ours.open() as muster, theirs.open() as other:
            handle = await muster.start(
                "survey", {"agent": ANTHROPIC, "questions": ASKED, "max_tokens": None}, dispatch="batch"
            )
            await wait_for(lambda: len(ours.batches) == 1)
            check_answered(await ask_all(other, ANTHROPIC, asked), asked)
            ours.play()  # the list can be read again: the newest is theirs
            run = await handle.wait()
            check_answered(run, ASKED)
            [made] = await batches_of(muster, run)
            assert (made.provider_id, made.rejected) == (ours.batches[0]["id"], (ours.batches[1]["id"],))
            assert "batch.undecided" in await told(muster, run)
    assert ours.audit.calls == len(ASKED) + len(asked)
