"""Who may create a batch: one process at a time, whose claim ends when it dies, freezes or gives up."""

import asyncio
from dataclasses import replace

from muster.app.runs.batches import BatchLook
from muster.domain.batch import BatchState
from muster.domain.run import RunState
from tests.engine.batches.house import QUICK, House, ask_all, batch, batches_of, questions, survey, told

ASKED = questions(12)
FOR_EVER = replace(QUICK, grace=3600.0)


async def test_a_process_that_gave_up_looking_leaves_the_batch_to_others(house: House, agent: str) -> None:
    house.play({"fault": "cut_before", "op": "batch_create"})
    async with house.open() as worker, house.open() as person:
        run = await ask_all(worker, agent, ASKED)
        assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_open")
        [made] = await batches_of(worker, run)
        assert (made.driver, made.lease_until) == (None, 0.0)
        looks: list[BatchLook] = []
        [given_up] = await asyncio.wait_for(person.batches.reconcile(resubmit=True, on_look=looks.append), 120.0)
        assert (given_up.batch.state, [look.holder for look in looks]) == (BatchState.ABANDONED, [None])


async def test_whoever_reconciles_is_told_who_is_at_a_batch_and_since_when(house: House, agent: str) -> None:
    house.play({"fault": "cut_before", "op": "batch_create"})
    async with house.open(patience=FOR_EVER) as worker, house.open() as person:
        handle = await worker.start("survey", survey(agent, ASKED), dispatch=batch())

        async def made_unclear() -> bool:
            return "batch.unclear" in await told(worker, await handle.run())

        while not await made_unclear():
            await worker._backend.store.changes.wait(1.0, worker._backend.store.changes.commits)
        [made] = await batches_of(worker, await handle.run())
        while made.driver is None or made.claimed_at is None or made.epoch < 2:  # until the worker looks for it
            await worker._backend.store.changes.wait(1.0, worker._backend.store.changes.commits)
            [made] = await batches_of(worker, await handle.run())
        looks: list[BatchLook] = []
        [given_up] = await asyncio.wait_for(person.batches.reconcile(resubmit=True, on_look=looks.append), 120.0)
        assert (looks[0].batch.id, looks[0].holder) == (made.id, worker._backend.engine.driver)
        assert looks[0].batch.claimed_at == made.claimed_at
        assert given_up.batch.state is BatchState.ABANDONED
