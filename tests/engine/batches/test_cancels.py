"""Cancel in the middle of a batch: what was produced is kept and paid, the rest is refunded, the provider stops."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from muster.app import Muster
from muster.app.runs.handle import RunHandle
from muster.domain.agent import Timeouts
from muster.domain.batch import Batch, BatchState, Tally
from muster.domain.errors import BatchLost, BatchOpen, Conflict
from muster.domain.run import Run, RunState
from muster.engine.batches.follow import CANCELING
from muster.store.base import Advance
from muster.testing.clock import FakeClock
from tests.chaos.books import books_of
from tests.engine.batches.house import (
    ANTHROPIC,
    NEVER_QUIET,
    PROVIDERS,
    QUICK,
    House,
    batch,
    batches_of,
    check_answered,
    open_house,
    questions,
    survey,
    until,
    wait_for,
)

ASKED = questions(40)
HALF = Tally(succeeded=20, canceled=20)


@pytest.fixture
def clock() -> FakeClock:
    """The provider's clock; ours goes on."""
    return FakeClock(time.time())


@pytest.fixture
async def house(tmp_path: Path, clock: FakeClock) -> AsyncIterator[House]:
    """A folder before a server whose batches take two seconds of its own time."""
    async with open_house(tmp_path / "house", clock.now, batch_ms=2000) as opened:
        yield opened


async def to_the_middle(house: House, clock: FakeClock, handle: RunHandle, muster: Muster) -> Batch:
    """Wait until the provider has everything, and let it do half of it."""

    async def known_here_too() -> bool:
        return [made.state for made in await muster.batches.list()] == [BatchState.RUNNING]

    await wait_for(lambda: len(house.batches) == 1)
    await until(known_here_too)
    clock.advance(1.0)
    [made] = await batches_of(muster, await handle.run())
    return made


def check_stopped(house: House, agent: str) -> None:
    """The provider says that it stopped half-way, and charged for half."""
    [theirs] = house.batches
    assert theirs["status"] == ("ended" if agent == ANTHROPIC else "cancelled")
    assert (theirs["requests"], theirs["succeeded"], theirs["canceled"]) == (40, 20, 20)
    assert house.audit.calls == 20


async def check_half(house: House, muster: Muster, run: Run) -> None:
    """Half is kept and paid, the rest refunded."""
    books = await house.check_to_the_cent(muster, run)
    assert [each.tally for each in books.batches] == [HALF]
    assert len(books.texts) == 20
    assert books.texts.items() <= ASKED.items()


async def finish(house: House, clock: FakeClock, muster: Muster, run: Run) -> None:
    """Go on after all: only what was not produced is asked."""
    handle = await muster.resume(run.id)
    await wait_for(lambda: len(house.batches) == 2)
    clock.advance(2.0)
    run = await handle.wait()
    check_answered(run, ASKED)
    assert (await books_of(muster, run)).texts == ASKED
    assert [theirs["requests"] for theirs in house.batches] == [40, 20]
    assert house.audit.calls == len(ASKED)


async def test_canceling_a_run_that_is_driven_stops_its_batch(
    house: House, clock: FakeClock, muster: Muster, agent: str
) -> None:
    handle = await muster.start("survey", survey(agent, ASKED), dispatch=batch())
    await to_the_middle(house, clock, handle, muster)
    await muster.runs.cancel(handle.id)
    run = await handle.wait()
    assert (run.state, run.ended_reason) == (RunState.CANCELED, "canceled")
    check_stopped(house, agent)
    await check_half(house, muster, run)
    await finish(house, clock, muster, run)


async def test_canceling_a_run_that_was_left_waiting_stops_its_batch(
    house: House, clock: FakeClock, agent: str
) -> None:
    async with house.open() as muster:
        handle = await muster.start("survey", survey(agent, ASKED), dispatch=batch(), detach=True)
        assert (await handle.wait()).state is RunState.WAITING
    clock.advance(1.0)
    async with house.open() as muster:
        run = await muster.runs.cancel(handle.id)
        assert run.state is RunState.CANCELED
        check_stopped(house, agent)
        await check_half(house, muster, run)
        await finish(house, clock, muster, run)


async def test_canceling_a_batch_fails_the_calls_that_it_did_not_come_to(
    house: House, clock: FakeClock, muster: Muster, agent: str
) -> None:
    handle = await muster.start("survey", survey(agent, ASKED), dispatch=batch())
    made = await to_the_middle(house, clock, handle, muster)
    canceled = await muster.batches.cancel(made)
    assert (canceled.state, canceled.tally) == (BatchState.COLLECTED, HALF)
    run = await handle.wait()
    assert run.state is RunState.COMPLETED
    assert [answer.get("error") for answer in run.result.values()].count("batch_canceled") == 20
    check_stopped(house, agent)
    await check_half(house, muster, run)
    with pytest.raises(Conflict, match="there is nothing to cancel"):
        await muster.batches.cancel(canceled)


async def test_canceling_the_batch_of_a_run_that_was_left_lets_it_ask_the_rest_again(
    house: House, clock: FakeClock, agent: str
) -> None:
    async with house.open() as muster:
        handle = await muster.start("survey", survey(agent, ASKED), dispatch=batch(), detach=True)
        await handle.wait()
    clock.advance(1.0)
    async with house.open() as muster:
        canceled = await muster.batches.cancel(await muster.batches.find("last"))
        assert canceled.tally == HALF
        check_stopped(house, agent)
        run = await muster.runs.find(handle.id)
        assert run.state is RunState.WAITING
        await check_half(house, muster, run)
        await finish(house, clock, muster, run)


async def test_a_batch_that_another_run_needs_goes_on(house: House, clock: FakeClock, agent: str) -> None:
    one, two = questions(15, "one"), questions(25, "two")
    async with house.open(patience=replace(NEVER_QUIET, most_requests=len(one) + len(two))) as muster:
        await cancel_one_of_two(house, clock, muster, agent, one, two)


async def cancel_one_of_two(
    house: House, clock: FakeClock, muster: Muster, agent: str, one: dict[str, str], two: dict[str, str]
) -> None:
    first = await muster.start("survey", survey(agent, one), dispatch=batch())
    second = await muster.start("survey", survey(agent, two), dispatch=batch())
    await to_the_middle(house, clock, first, muster)
    await muster.runs.cancel(first.id)
    assert (await first.wait()).state is RunState.CANCELED
    assert house.batches[0]["canceled"] == 0
    clock.advance(1.0)
    check_answered(await second.wait(), two)
    [made] = await muster.batches.list()
    assert (made.state, made.tally) == (BatchState.COLLECTED, Tally(succeeded=40))
    books = [await books_of(muster, await handle.run()) for handle in (first, second)]
    assert [each.texts for each in books] == [one, two]  # what was paid is kept, whoever canceled
    assert all(amount == 0 for amount in books[0].reserved.values())
    assert sum(each.run.spent.billed for each in books) == house.audit.cost


async def test_a_batch_that_was_canceled_before_it_was_sent_costs_nothing(
    house: House, muster: Muster, agent: str
) -> None:
    house.play({"fault": "429", "op": "batch_create" if agent == ANTHROPIC else "file_upload", "times": "always"})
    handle = await muster.start("survey", survey(agent, ASKED), dispatch=batch())
    await wait_for(lambda: house.audit.statuses.get("429", 0) >= 2)
    await muster.runs.cancel(handle.id)
    run = await handle.wait()
    assert run.state is RunState.CANCELED
    books = await house.check_to_the_cent(muster, run)
    assert [each.state for each in books.batches] == [BatchState.REFUSED]
    assert (house.audit.calls, len(house.batches)) == (0, 0)


async def test_canceling_a_run_whose_batch_is_open_says_so_and_guesses_nothing(
    house: House, muster: Muster, agent: str
) -> None:
    house.play({"fault": "cut_before", "op": "batch_create"})
    handle = await muster.start("survey", survey(agent, ASKED), dispatch=batch())
    assert (await handle.wait()).ended_reason == "batch_open"
    with pytest.raises(BatchOpen):
        await muster.runs.cancel(handle.id)
    run = await muster.runs.find(handle.id)
    assert run.state is RunState.CANCELED
    [made] = await batches_of(muster, run)
    assert (made.state, made.tally) == (BatchState.SENT, Tally())
    await muster.batches.reconcile(resubmit=True)
    books = await house.check(muster, run)
    assert [each.state for each in books.batches] == [BatchState.ABANDONED]
    assert len(books.uncertain) == len(ASKED)
    assert house.audit.calls == 0


@pytest.mark.parametrize("kind", ["500", "cut_before", "cut_after", "429"])
async def test_a_cancel_that_does_not_arrive_is_said_again(
    house: House, clock: FakeClock, muster: Muster, agent: str, kind: str
) -> None:
    house.play({"fault": kind, "op": "batch_cancel", "times": 2})
    handle = await muster.start("survey", survey(agent, ASKED), dispatch=batch())
    made = await to_the_middle(house, clock, handle, muster)
    assert (await muster.batches.cancel(made)).tally == HALF
    await handle.wait()
    check_stopped(house, agent)


async def test_the_results_of_a_canceled_batch_may_be_named_late(
    house: House, clock: FakeClock, muster: Muster, agent: str
) -> None:
    house.play({"fault": "no_results_url", "looks": 4})
    handle = await muster.start("survey", survey(agent, ASKED), dispatch=batch())
    made = await to_the_middle(house, clock, handle, muster)
    assert (await muster.batches.cancel(made)).tally == HALF
    await check_half(house, muster, await handle.wait())
    check_stopped(house, agent)


async def test_a_lost_result_of_a_canceled_batch_is_not_refunded_and_not_asked_again_by_itself(
    house: House, clock: FakeClock, agent: str
) -> None:
    house.play({"fault": "missing"})
    async with house.open_impatient(batch_timeouts=Timeouts()) as muster:
        handle = await muster.start("survey", survey(agent, ASKED), dispatch=batch())
        made = await to_the_middle(house, clock, handle, muster)
        with pytest.raises(BatchLost, match="lack 1 answer"):
            await muster.batches.cancel(made)
        run = await handle.wait()
        assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_lost")
        [lost] = await muster.batches.reconcile(resubmit=True)
        assert lost.batch.tally == Tally(succeeded=19, canceled=20, uncertain=1)
        handle = await muster.resume(run.id)
        await wait_for(lambda: len(house.batches) == 2)
        clock.advance(2.0)
        books = await house.check(muster, await handle.wait())  # by audit, nothing was paid that is not booked
        assert house.audit.calls == len(books.texts) + 1 == 41  # canceled ones are asked when the run goes on


async def test_whoever_comes_next_cancels_the_unresolved_batch_of_a_canceled_run(
    house: House, clock: FakeClock, agent: str
) -> None:
    house.play({"fault": "cut_after", "op": "batch_create"}, {"fault": "500", "op": "batch_list", "times": "always"})
    async with house.open(patience=replace(QUICK, deadline=6.0)) as muster:
        run = await (await muster.start("survey", survey(agent, ASKED), dispatch=batch())).wait()
        [made] = await batches_of(muster, run)
        assert (run.state, made.state) == (RunState.WAITING, BatchState.SENT)
        await muster._backend.store.runs.cancel(
            run.id, time.time()
        )  # and whoever did this dies before it tells the provider
    house.play()
    async with house.open() as muster:
        await muster._backend.engine.sweep()
        if (
            agent == ANTHROPIC
        ):  # one that may be a stranger's until it ends is not canceled, and what it brings is booked
            clock.advance(60.0)
        else:
            await wait_for(lambda: house.batches[0]["status"] == "cancelled")
        await wait_for(lambda: not muster._backend.engine.batcher.canceling)
        [made] = await batches_of(muster, run)
        assert made.state is BatchState.COLLECTED


async def test_a_cancel_that_the_provider_accepted_is_not_sent_again_by_every_command(
    house: House, clock: FakeClock, agent: str
) -> None:
    async with house.open() as muster:
        handle = await muster.start("survey", survey(agent, ASKED), dispatch=batch())
        made = await to_the_middle(house, clock, handle, muster)
    house.play({"fault": "500", "op": "batch_cancel", "times": "always"})
    async with house.open() as muster:
        accepted = replace(made, cancel_requested=True, note=CANCELING)
        await muster._backend.store.batches.advance(
            Advance(batch=accepted, was=BatchState.RUNNING, kind="batch.canceling", at=time.time())
        )
        await muster._backend.store.runs.cancel(handle.id, time.time())
        await muster._backend.engine.sweep()
        clock.advance(60.0)
        await wait_for(lambda: not muster._backend.engine.batcher.canceling)
        [over] = await batches_of(muster, await muster.runs.find(handle.id))
        assert (over.state, house.audit.statuses.get("500", 0)) == (BatchState.COLLECTED, 0)


async def cancel_among_turns(folder: Path, agent: str, batch_ms: float) -> None:
    """Cancel a run of many short batches; in which moment of one it is then, nobody knows."""
    async with open_house(folder, batch_ms=batch_ms) as house, house.open() as muster:
        spec = {"agent": agent, "count": 20, "turns": 1000}
        handle = await muster.start("conversations", spec, dispatch=batch())
        await wait_for(lambda: len(house.batches) >= 2)
        await muster.runs.cancel(handle.id)
        run = await handle.wait()
        assert run.state is RunState.CANCELED
        books = await house.check_to_the_cent(muster, run)
        last = books.batches[-1]
        print(f"{agent}, {batch_ms:.0f} ms: {len(books.batches)} batches, the last one {last.state} with {last.tally}")


async def cancel_many(folder: Path, times: int) -> None:
    for number in range(times):
        await asyncio.gather(
            *(
                cancel_among_turns(folder / f"{number}-{agent.partition('/')[0]}", agent, random.uniform(0, 200))
                for agent in PROVIDERS
            )
        )


async def test_a_run_canceled_in_any_moment_leaves_its_books_in_order(tmp_path: Path) -> None:
    await cancel_many(tmp_path, 2)


@pytest.mark.chaos
async def test_a_run_canceled_in_any_of_20_moments_leaves_its_books_in_order(tmp_path: Path) -> None:
    await cancel_many(tmp_path, 20)
