"""A create whose answer was lost holds up only what it could be confused with, not for long, and says so."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from muster.app import Muster
from muster.domain.batch import Batch, BatchState, ways_out, without_past_wait
from muster.domain.ids import BatchId, RunId
from muster.domain.run import Run, RunState
from tests.engine.batches.house import (
    ANTHROPIC,
    OPENAI,
    QUICK,
    House,
    ask_all,
    batch,
    batches_of,
    check_answered,
    questions,
    survey,
    told,
    until,
    wait_for,
)
from tests.engine.batches.test_resolve import BATCH

ASKED = questions(12)
OTHERS = questions(12, "other")
FEWER = questions(5, "fewer")
FOR_EVER = replace(QUICK, grace=3600.0)
LOST = {"fault": "cut_before", "op": "batch_create"}


@pytest.fixture
async def worker(house: House) -> Any:
    """A process that would look for a lost batch for an hour."""
    async with house.open(patience=FOR_EVER) as opened:
        yield opened


async def lose_a_create(house: House, worker: Muster, agent: str = ANTHROPIC) -> tuple[RunId, Batch]:
    """Start a run whose only create is lost, and give its batch as soon as the worker looks for it."""
    house.play(LOST)
    handle = await worker.start("survey", survey(agent, ASKED), dispatch=batch())

    async def is_looked_for() -> bool:
        made = await batches_of(worker, await handle.run())
        return bool(made) and made[0].grace_until is not None and made[0].driver is not None

    await until(is_looked_for)
    [made] = await batches_of(worker, await handle.run())
    return (await handle.run()).id, made


async def finished(muster: Muster, run: RunId) -> Run:
    async def is_over() -> bool:
        return (await muster.runs.get(run)).state is RunState.COMPLETED

    await until(is_over)
    return await muster.runs.get(run)


async def test_after_its_grace_a_lost_create_holds_nothing_up(house: House, muster: Muster) -> None:
    house.play(LOST)
    open_ = await ask_all(muster, ANTHROPIC, ASKED)
    assert (open_.state, open_.ended_reason) == (RunState.WAITING, "batch_open")
    for topic in ("one", "two", "three", "four"):
        asked = questions(12, topic)
        check_answered(await ask_all(muster, ANTHROPIC, asked), asked)
    [made] = await batches_of(muster, open_)
    assert (made.state, made.stalled) == (BatchState.SENT, True)
    assert "the provider's list does not show it" in made.note


async def test_a_batch_of_another_size_does_not_wait_for_a_lost_create(house: House, worker: Muster) -> None:
    await lose_a_create(house, worker)
    check_answered(await asyncio.wait_for(ask_all(worker, ANTHROPIC, FEWER), 60.0), FEWER)


async def test_behind_one_gateway_a_lost_create_of_openai_does_not_hold_up_anthropic(house: House) -> None:
    environment = house.environment | {"OPENAI_API_KEY": "sk-gateway", "ANTHROPIC_API_KEY": "sk-gateway"}
    async with house.open(patience=FOR_EVER, environment=environment) as worker:
        _, lost = await lose_a_create(house, worker, OPENAI)
        run = await asyncio.wait_for(ask_all(worker, ANTHROPIC, OTHERS), 60.0)
        check_answered(run, OTHERS)
        [made] = await batches_of(worker, run)
        assert made.endpoint.account == lost.endpoint.account


async def test_a_batch_that_waits_for_a_lost_create_says_for_which(house: House, worker: Muster) -> None:
    _, lost = await lose_a_create(house, worker)
    handle = await worker.start("survey", survey(ANTHROPIC, OTHERS), dispatch=batch())

    async def waits() -> bool:
        made = await batches_of(worker, await handle.run())
        return bool(made) and made[0].stalled

    await until(waits)
    [made] = await batches_of(worker, await handle.run())
    assert (made.state, made.waits_for) == (BatchState.PLANNED, lost.id)
    assert lost.id in made.note
    assert [one.id for one in await worker.batches.stalled()] == [lost.id, made.id]
    async with house.open() as operator:
        await operator.batches.reconcile(resubmit=True)
    check_answered(await handle.wait(), OTHERS)
    assert await worker.batches.stalled() == []


async def test_what_a_batch_waited_for_is_not_told_any_more_when_nobody_would_send_it(house: House) -> None:
    async with house.open(patience=FOR_EVER) as worker:
        _, lost = await lose_a_create(house, worker)
        handle = await worker.start("survey", survey(ANTHROPIC, OTHERS), dispatch=batch())

        async def waits() -> bool:
            made = await batches_of(worker, await handle.run())
            return bool(made) and made[0].waits_for == lost.id

        await until(waits)
        run = (await handle.run()).id
    async with house.open() as later:
        [kept] = (await later.runs.batches_of(run)).batches
        assert (kept.state, kept.stalled, kept.waits_for) == (BatchState.PLANNED, False, None)
        assert kept.note == "no process executes its runs, so it is not sent"
        assert ways_out(kept) == (f"send it and wait for it: muster batch fetch {kept.id}",)
        assert [each.id for each in await later.batches.stalled()] == [lost.id]
        await later.batches.reconcile(resubmit=True)
        assert await later.batches.stalled() == []
        assert 'muster_batches_stalled{state="planned"} 0' in await later.metrics()
        assert (await later.batches.fetch(kept)).state is BatchState.COLLECTED
        check_answered(await (await later.resume(run)).wait(), OTHERS)


async def test_a_batch_is_not_said_to_wait_for_one_that_is_clear() -> None:
    waiting = replace(BATCH, state=BatchState.PLANNED, stalled=True, waits_for=BatchId("b2"), note="it waits")
    other = replace(BATCH, id=BatchId("b2"), grace_until=10.0)
    assert without_past_wait(waiting, other, 9.0) is waiting
    for gone in (None, replace(other, state=BatchState.RUNNING), replace(other, grace_until=9.0)):
        sent_next = without_past_wait(waiting, gone, 9.0)
        assert (sent_next.stalled, sent_next.waits_for) == (False, None)
        assert sent_next.note == "it waited for batch b2, and is sent next"


async def test_the_grace_is_counted_once_for_all_processes(house: House, muster: Muster) -> None:
    house.play(LOST)
    run = await ask_all(muster, ANTHROPIC, ASKED)
    [made] = await batches_of(muster, run)
    async with house.open(patience=FOR_EVER) as later:
        run = await asyncio.wait_for((await later.resume(run.id)).wait(), 60.0)
    assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_open")
    [after] = await batches_of(muster, run)
    assert after.grace_until == made.grace_until


async def test_whoever_reconciles_takes_a_batch_over_from_the_worker_that_looks_for_it(
    house: House, worker: Muster
) -> None:
    run, lost = await lose_a_create(house, worker)
    async with house.open() as operator:
        [given_up] = await asyncio.wait_for(operator.batches.reconcile(resubmit=True), 60.0)
    assert (given_up.batch.id, given_up.batch.state) == (lost.id, BatchState.ABANDONED)
    check_answered(await finished(worker, run), ASKED)  # the worker goes on by itself
    assert house.audit.calls == len(ASKED)


async def test_two_who_reconcile_at_once_do_not_take_a_batch_from_each_other(house: House, worker: Muster) -> None:
    run, lost = await lose_a_create(house, worker)
    async with house.open() as one, house.open() as other:
        found = await asyncio.wait_for(
            asyncio.gather(one.batches.reconcile(resubmit=True), other.batches.reconcile(resubmit=True)), 120.0
        )
    assert lost.id in {each.batch.id for decided in found for each in decided if each.error is None}
    check_answered(await finished(worker, run), ASKED)
    assert [made.state for made in await batches_of(worker, await worker.runs.get(run))] == [
        BatchState.ABANDONED,
        BatchState.COLLECTED,
    ]


async def test_an_id_that_a_lost_batch_was_taken_for_goes_to_the_batch_that_it_is_given_to(
    house: House, muster: Muster
) -> None:
    """A create under way shows in the list before its answer is here, and then fits a lost one of the same size."""
    house.play(LOST)
    open_ = await ask_all(muster, ANTHROPIC, ASKED)
    house.play({"fault": "slow_stream", "op": "batch_create", "gap_ms": 500})
    handle = await muster.start("survey", survey(ANTHROPIC, OTHERS), dispatch=batch())
    await wait_for(lambda: len(house.batches) == 1)
    taken, *_ = await muster.batches.reconcile()
    assert (taken.batch.provider_id, taken.batch.adopted) == (house.batches[0]["id"], True)
    run = await handle.wait()
    check_answered(run, OTHERS)
    assert house.audit.calls == len(OTHERS)
    [lost] = await batches_of(muster, open_)
    assert (lost.state, lost.provider_id, lost.rejected) == (BatchState.SENT, None, (house.batches[0]["id"],))
    assert len(house.batches) == 1


async def test_an_upload_that_always_fails_ends_and_gives_its_money_back(house: House) -> None:
    house.play({"fault": "500", "op": "file_upload", "times": "always"})
    async with house.open(patience=replace(QUICK, uploads=3)) as muster:
        run = await asyncio.wait_for(ask_all(muster, OPENAI, ASKED, batch(batches=2)), 120.0)
        assert run.state is RunState.COMPLETED
        assert {answer["error"] for answer in run.result.values()} == {"retries_exhausted"}
        assert all("could not be uploaded" in answer["message"] for answer in run.result.values())
        assert (run.spent.reserved, run.spent.settled) == (0, 0)
        made = await batches_of(muster, run)
        assert [(each.state, each.uploads, each.stalled) for each in made] == [(BatchState.REFUSED, 2, False)] * 2
        assert (await told(muster, run)).count("batch.put_back") == 4


async def test_uploads_that_failed_are_counted_over_restarts(house: House) -> None:
    house.play({"fault": "500", "op": "file_upload", "times": "always"})
    patience = replace(QUICK, uploads=4, poll_first=0.01, poll_longest=0.01)
    async with house.open(patience=patience) as muster:
        handle = await muster.start("survey", survey(OPENAI, ASKED), dispatch=batch(batches=1))
        run = (await handle.run()).id

        async def failed_once() -> bool:
            made = await batches_of(muster, await handle.run())
            return bool(made) and made[0].uploads >= 1

        await until(failed_once)
    async with house.open(patience=patience) as muster:
        ended = await (await muster.resume(run)).wait()
        [made] = await batches_of(muster, ended)
        assert (made.state, made.uploads) == (BatchState.REFUSED, 3)
        # One more if the first process ended in the middle of an upload, which then is no failure.
        assert (await told(muster, ended)).count("batch.put_back") in (3, 4)


@pytest.mark.parametrize(
    ("agent", "fault", "words"),
    [
        (OPENAI, {"fault": "500", "op": "file_upload"}, " of 10000) and is tried again"),
        (OPENAI, {"fault": "429", "op": "batch_create"}, "it was not accepted and is tried again"),
        (ANTHROPIC, {"fault": "500", "op": "batch_retrieve"}, "the provider does not say how far it is"),
        (ANTHROPIC, {"fault": "500", "op": "batch_results"}, "its results cannot be read"),
        (ANTHROPIC, {"fault": "missing", "op": "member", "text": "question 7$"}, "its results lack 1 answer"),
    ],
)
async def test_what_keeps_a_batch_from_getting_on_is_stored_the_first_time(
    house: House, agent: str, fault: dict[str, Any], words: str
) -> None:
    house.play(fault | {"times": "always"})
    async with house.open(patience=replace(QUICK, poll_longest=0.2, uploads=10_000)) as muster:
        handle = await muster.start("survey", survey(agent, ASKED), dispatch=batch())

        async def is_stalled() -> bool:
            return bool(await muster.batches.stalled())

        await until(is_stalled)
        [made] = await muster.batches.stalled()
        assert words in made.note
        house.play()
        if fault["fault"] != "missing":
            check_answered(await handle.wait(), ASKED)
            assert await muster.batches.stalled() == []
