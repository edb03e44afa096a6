"""Runs from claim to release: resumed, forked, replayed, canceled, timed out, taken over."""

import asyncio
import random
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.agents.processes.system import namespace, start_of, started, this_process
from muster.app.runs.handle import follow
from muster.domain.call import Reply, Request
from muster.domain.canonical import Json
from muster.domain.entry import AttemptState
from muster.domain.errors import (
    CallFailed,
    ChildFailed,
    Conflict,
    Interrupted,
    InvalidRequest,
    LeaseLost,
    MusterError,
    NotFound,
    Overloaded,
    ReplayMiss,
)
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import Driver, Origin, Reuse, Run, RunState
from muster.engine.calls.retry import RetryPolicy
from muster.engine.context import Context
from muster.engine.worker import Worker
from muster.testing.clock import FakeClock
from muster.testing.stores import new_run
from tests.engine.house import Hanging, House, Puppet, check_books, dead_driver, echo, failing, house, reply


async def chain(ctx: Context, spec: Any) -> Json:
    """Four calls, each made from the answer before."""
    text = "start"
    for i in range(4):
        text = (await ctx.call("a", f"{text}/{i}", key=f"step/{i}")).text
    return text


async def interrupt_when(h: House, run: Run, hanging: Hanging, *, now: bool) -> Run:
    driving = asyncio.create_task(h.engine.drive(run.id))
    await hanging.arrived.get()
    h.engine.stop_all(Interrupted("stop"), now=now)
    if not now:
        hanging.let_go.set()
    return await driving


async def test_a_run_told_to_stop_waits_for_its_calls_and_is_resumed_without_paying_again(tmp_path: Path) -> None:
    hanging = Hanging()
    async with house(tmp_path, a=hanging.puppet) as h:
        run = await h.create(chain)
        stopped = await interrupt_when(h, run, hanging, now=False)
        assert (stopped.state, stopped.calls.done, stopped.calls.uncertain) == (RunState.INTERRUPTED, 1, 0)
        again = await h.engine.drive(run.id)
        assert (again.id, again.state, again.result) == (run.id, RunState.COMPLETED, "start/0/1/2/3")
        assert len(hanging.puppet.asked) == 4
        kinds = await h.kinds(run.id)
        assert kinds.count("run.started") == kinds.count("run.resumed") == 1
        await check_books(h.store, run.id)


async def test_a_run_cut_off_books_its_open_calls_as_uncertain_and_asks_them_again(tmp_path: Path) -> None:
    hanging = Hanging()
    async with house(tmp_path, a=hanging.puppet) as h:
        run = await h.create(chain)
        stopped = await interrupt_when(h, run, hanging, now=True)
        assert (stopped.state, stopped.spent.uncertain) == (RunState.INTERRUPTED, 100)
        hanging.let_go.set()
        again = await h.engine.drive(run.id)
        assert (again.state, again.spent.uncertain, again.spent.billed) == (RunState.COMPLETED, 100, 40)
        assert len(hanging.puppet.asked) == 5
        await check_books(h.store, run.id)


async def test_failures_are_tried_again_on_resume_of_a_failed_run_and_replies_are_reused(tmp_path: Path) -> None:
    async def answer(request: Request, n: int) -> Reply:
        if n == 3:
            raise InvalidRequest("not today")
        return reply(request.messages[-1].text)

    agent = Puppet(answer)
    async with house(tmp_path, a=agent) as h:
        failed = await h.drive(chain)
        assert (failed.state, failed.calls.done, failed.calls.failed) == (RunState.FAILED, 2, 1)
        with pytest.raises(Conflict, match="terminal states are final"):
            await h.engine.drive(failed.id)
        heir = await h.descend(failed, Origin(run=failed.id, reuse=Reuse.REPLIES))
        done = await h.engine.drive(heir.id)
        assert (done.result, done.calls.reused, done.spent.billed) == ("start/0/1/2/3", 2, 20)
        assert len(agent.asked) == 5


async def test_a_chain_of_resumed_runs_still_knows_the_first(tmp_path: Path) -> None:
    async def answer(request: Request, n: int) -> Reply:
        if n in (4, 5):
            raise InvalidRequest("not today")
        return reply(request.messages[-1].text)

    agent = Puppet(answer)
    async with house(tmp_path, a=agent) as h:
        run = await h.drive(chain)
        for _ in range(2):
            heir = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLIES))
            run = await h.engine.drive(heir.id)
        assert run.result == "start/0/1/2/3"
        assert len(agent.asked) == 6


async def test_a_replay_asks_nobody_and_gives_the_same(tmp_path: Path) -> None:
    agent = echo()
    async with house(tmp_path, a=agent) as h:
        run = await h.drive(chain)
        again = await h.engine.drive((await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLAY))).id)
        assert (again.result, again.spent.settled, len(agent.asked)) == (run.result, 0, 4)
        first = [entry.reply async for entry in h.store.archive.entries(run.id)]
        second = [entry.reply async for entry in h.store.archive.entries(again.id)]
        assert first == second


async def test_a_replay_repeats_failures_too(tmp_path: Path) -> None:
    agent = failing(InvalidRequest("not today", status=400))

    async def careful(ctx: Context, spec: Any) -> Any:
        try:
            return (await ctx.call("a", "hi", key="k")).text
        except CallFailed as error:
            return error.record()["code"]

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(careful)
        again = await h.engine.drive((await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLAY))).id)
        assert run.result == again.result == "invalid_request"
        assert len(agent.asked) == 1


@pytest.mark.parametrize("change", ["another request", "another key"])
async def test_a_replay_that_misses_names_the_key(tmp_path: Path, change: str) -> None:
    agent = echo()
    text = "hi"
    key = "k"

    async def one(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", text, key=key)).text

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(one)
        if change == "another request":
            text = "ho"
        else:
            key = "other"
        again = await h.engine.drive((await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLAY))).id)
        assert again.ended_reason == ReplayMiss.code
        assert repr(key) in (again.error or {})["message"]
        assert len(agent.asked) == 1


async def test_a_fork_pays_only_for_its_key_and_what_came_later(tmp_path: Path) -> None:
    agent = echo()
    async with house(tmp_path, a=agent) as h:
        run = await h.drive(chain)
        fork = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLIES, fork_key="step/2"))
        done = await h.engine.drive(fork.id)
        assert (done.result, done.calls.reused, len(agent.asked) - 4) == (run.result, 2, 2)


async def test_a_fork_from_an_unknown_key_is_an_error(tmp_path: Path) -> None:
    async with house(tmp_path, a=echo()) as h:
        run = await h.drive(chain)
        fork = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLIES, fork_key="nothing"))
        with pytest.raises(NotFound, match="nothing"):
            await h.engine.drive(fork.id)
        assert (await h.store.runs.get(fork.id)).state is RunState.QUEUED  # type: ignore[union-attr]


async def test_a_reused_reply_of_another_request_is_not_taken(tmp_path: Path) -> None:
    agent = echo()
    word = "hi"

    async def one(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", word, key="k")).text

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(one)
        word = "ho"
        heir = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLIES))
        assert (await h.engine.drive(heir.id)).result == "ho"
        assert len(agent.asked) == 2


async def test_steps_happen_once_and_time_and_chance_stay_the_same(tmp_path: Path) -> None:
    done: list[str] = []
    hanging = Hanging()

    async def work(ctx: Context, spec: Any) -> Json:
        async def effect() -> Json:
            done.append("effect")
            return {"made": 1}

        made = await ctx.step("effect", effect)
        plain = await ctx.step("plain", lambda: 5)
        now = await ctx.now("now")
        dice = ctx.random("dice").random()
        await ctx.emit("told", "progress", {"at": 1})
        await ctx.call("a", "hi", key="k")
        return [made, plain, now, dice]

    async with house(tmp_path, a=hanging.puppet) as h:
        run = await h.create(work, seed=11)
        await interrupt_when(h, run, hanging, now=True)
        hanging.let_go.set()
        first = await h.engine.drive(run.id)
        replayed = await h.engine.drive((await h.descend(first, Origin(run=run.id, reuse=Reuse.REPLAY))).id)
        assert done == ["effect"]
        assert first.result == replayed.result
        assert first.result[:2] == [{"made": 1}, 5]
        assert (await h.kinds(run.id)).count("progress") == 1


async def test_canceling_reaches_the_wire(tmp_path: Path) -> None:
    hanging = Hanging()
    clock = FakeClock()
    async with house(tmp_path, a=hanging.puppet, clock=clock) as h:
        run = await h.create(chain)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await hanging.arrived.get()
        await h.store.runs.cancel(run.id, clock.now())
        clock.advance(1.0)
        canceled = await driving
        assert (canceled.state, canceled.ended_reason) == (RunState.CANCELED, "canceled")
        assert canceled.spent.uncertain == 100
        assert [a.state for a in await h.store.archive.attempts(run.id)] == [AttemptState.UNCERTAIN]


async def test_a_run_out_of_time_ends_as_timeout(tmp_path: Path) -> None:
    hanging = Hanging()
    clock = FakeClock()
    async with house(tmp_path, a=hanging.puppet, clock=clock) as h:
        run = await h.create(chain, timeout=5.0)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await hanging.arrived.get()
        await clock.someone_sleeps(at_least=2)
        clock.advance(5.1)
        ended = await driving
        assert (ended.state, ended.ended_reason) == (RunState.TIMEOUT, "timeout")


async def test_the_clock_of_a_run_stops_while_all_its_calls_wait(tmp_path: Path) -> None:
    clock = FakeClock()
    agent = failing(Overloaded("full", retry_after=50.0))
    async with house(tmp_path, a=agent, clock=clock) as h:
        h.engine._with = replace(h.engine._with, policy=RetryPolicy(longest_delay=60.0))

        async def one(ctx: Context, spec: Any) -> Json:
            return (await ctx.call("a", "hi", key="k")).text

        run = await h.create(one, timeout=10.0)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await clock.someone_sleeps(at_least=40)
        for _ in range(56):  # it waits 50 to 55 s; what is left is less than its time, however slow the store is
            clock.advance(1.0)
            await asyncio.sleep(0.001)
        ended = await driving
        assert (ended.state, ended.result) == (RunState.COMPLETED, "ok")
        assert ended.active < 10


async def test_the_time_used_up_is_kept_when_a_run_is_resumed(tmp_path: Path) -> None:
    hanging = Hanging()
    clock = FakeClock()
    async with house(tmp_path, a=hanging.puppet, clock=clock) as h:
        run = await h.create(chain, timeout=10.0)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await hanging.arrived.get()
        clock.advance(7.0)
        h.engine.stop_all(Interrupted("stop"), now=True)
        stopped = await driving
        assert (stopped.state, stopped.active) == (RunState.INTERRUPTED, 7.0)
        again = asyncio.create_task(h.engine.drive(run.id))
        await hanging.arrived.get()
        await clock.someone_sleeps(at_least=2.9)
        clock.advance(3.5)
        assert (await again).state is RunState.TIMEOUT


async def test_a_living_driver_is_named_to_a_second_one(tmp_path: Path) -> None:
    hanging = Hanging()
    async with house(tmp_path, a=hanging.puppet) as h, house(tmp_path, a=hanging.puppet) as other:
        run = await h.create(chain)
        other.workloads.workload("chain")(chain)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await hanging.arrived.get()
        with pytest.raises(Conflict, match=f"executed by process {this_process().pid}"):
            await other.engine.drive(run.id)
        hanging.let_go.set()
        assert (await driving).state is RunState.COMPLETED


async def test_a_driver_that_was_replaced_stops_and_writes_nothing_more(tmp_path: Path) -> None:
    hanging = Hanging()
    clock = FakeClock()
    async with house(tmp_path, a=hanging.puppet, clock=clock) as h:
        run = await h.create(chain)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await hanging.arrived.get()
        lease = (await h.store.runs.select())[0].lease
        usurper = replace(this_process(), host="elsewhere")
        await h.store.leases.claim(run.id, usurper, lease.epoch, clock.now(), clock.now() + 15)
        clock.advance(1.0)
        with pytest.raises(LeaseLost):
            await driving
        after = await h.store.runs.get(run.id)
        assert after is not None
        assert (after.state, after.lease.driver) == (RunState.RUNNING, usurper)


BIRTH = start_of(this_process().started)


@pytest.mark.parametrize(
    "elsewhere",
    [
        replace(this_process(), host="elsewhere"),
        replace(this_process(), pid=1, started=f"{BIRTH.boot}/1/1"),
        replace(this_process(), pid=1, started=f"another/1/{BIRTH.namespace}"),
        replace(this_process(), pid=1, started=f"{BIRTH.boot}/1"),
    ],
    ids=["another host", "another namespace", "another boot", "an older version"],
)
async def test_a_driver_that_cannot_be_seen_is_replaced_when_its_lease_is_over(
    tmp_path: Path, elsewhere: Driver
) -> None:
    clock = FakeClock()
    async with house(tmp_path, a=echo(), clock=clock) as h:
        run = await h.create(chain)
        await h.store.leases.claim(run.id, elsewhere, 0, clock.now(), clock.now() + 15)
        assert await h.engine.sweep() == []
        with pytest.raises(Conflict, match=f"executed by process {elsewhere.pid} on {elsewhere.host}"):
            await h.engine.drive(run.id)
        clock.advance(15.1)
        assert (await h.engine.drive(run.id)).state is RunState.COMPLETED


async def test_an_unknown_workload_is_told_with_the_way_out(tmp_path: Path) -> None:
    async with house(tmp_path) as h, house(tmp_path) as other:
        run = await h.create(chain, workload="mine")
        with pytest.raises(Exception, match="unknown workload 'mine'") as caught:
            await other.engine.drive(run.id)
        assert "[workloads] import" in caught.value.suggestions[0]  # type: ignore[attr-defined]
        assert (await h.store.runs.get(run.id)).state is RunState.QUEUED  # type: ignore[union-attr]


async def test_a_workload_that_raises_fails_its_run_with_the_trace(tmp_path: Path) -> None:
    async def broken(ctx: Context, spec: Any) -> Json:
        raise ZeroDivisionError("oh")

    async with house(tmp_path) as h:
        run = await h.drive(broken)
        assert (run.state, run.ended_reason) == (RunState.FAILED, "workload_error")
        assert "ZeroDivisionError('oh')" in (run.error or {})["message"]
        assert "broken" in (run.error or {})["traceback"]


async def test_a_result_that_is_no_json_fails_the_run(tmp_path: Path) -> None:
    async def odd(ctx: Context, spec: Any) -> Any:
        return {1, 2}

    async with house(tmp_path) as h:
        assert (await h.drive(odd)).state is RunState.FAILED


async def test_calls_left_behind_by_a_workload_are_closed_and_settled(tmp_path: Path) -> None:
    hanging = Hanging()
    left: list[asyncio.Task[Reply]] = []

    async def careless(ctx: Context, spec: Any) -> Json:
        left.append(asyncio.create_task(ctx.call("a", "hi", key="k")))
        await hanging.arrived.get()
        return "done"

    async with house(tmp_path, a=hanging.puppet) as h:
        run = await h.drive(careless)
        assert run.state is RunState.COMPLETED
        await check_books(h.store, run.id)
        await asyncio.gather(*left, return_exceptions=True)


async def nested(ctx: Context, spec: Any) -> Json:
    return [await ctx.child(f"part/{i}", "chain", None) for i in range(2)]


async def test_children_run_under_their_parents_budget_and_are_started_once(tmp_path: Path) -> None:
    agent = echo(cost=10, most=20)
    async with house(tmp_path, a=agent) as h:
        h.workloads.workload("chain")(chain)
        run = await h.drive(nested, cap=Microdollars(90))
        assert run.result == ["start/0/1/2/3"] * 2
        assert run.spent.settled == 80
        again = await h.engine.drive((await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLAY))).id)
        assert (again.result, len(agent.asked)) == (run.result, 8)


async def test_a_child_that_exceeds_its_parents_budget_fails_there_and_stops_its_parent(tmp_path: Path) -> None:
    async with house(tmp_path, a=echo(cost=10, most=20)) as h:
        h.workloads.workload("chain")(chain)
        run = await h.drive(nested, cap=Microdollars(65))
        assert (run.state, run.ended_reason) == (RunState.FAILED, "budget")
        assert run.spent.settled == 50
        children = await h.store.archive.children(run.id)
        assert [child.state for child in children] == [RunState.COMPLETED, RunState.FAILED]


async def test_a_child_is_interrupted_with_its_parent_and_goes_on_with_it(tmp_path: Path) -> None:
    hanging = Hanging()
    async with house(tmp_path, a=hanging.puppet) as h:
        h.workloads.workload("chain")(chain)
        run = await h.create(nested)
        stopped = await interrupt_when(h, run, hanging, now=False)
        assert stopped.state is RunState.INTERRUPTED
        assert [child.state for child in await h.store.archive.children(run.id)] == [RunState.INTERRUPTED]
        done = await h.engine.drive(run.id)
        assert done.result == ["start/0/1/2/3"] * 2
        assert len(hanging.puppet.asked) == 8


def unexpected(run: str, error: Exception) -> None:
    raise AssertionError(f"{run}: {error}")


def crew(
    h: House, on_end: Callable[[Run], None], on_error: Callable[[RunId, MusterError], None] = unexpected
) -> Worker:
    async def ended(run: Run) -> None:
        on_end(run)

    return Worker(h.store, h.engine, h.clock, most=2, on_end=ended, on_error=on_error)


async def test_a_worker_drives_what_was_submitted_and_nothing_else(tmp_path: Path) -> None:
    ended: list[str] = []
    async with house(tmp_path, a=echo()) as h:
        wanted = [await h.create(chain, submitted=True) for _ in range(3)]
        unknown = await h.create(chain, submitted=True, workload="gone")
        del h.workloads._found["gone"]
        private = await h.create(chain)
        await crew(h, lambda run: ended.append(run.id)).serve(until_idle=True)
        assert sorted(ended) == sorted(run.id for run in wanted)
        for run in (unknown, private):
            assert (await h.store.runs.get(run.id)).state is RunState.QUEUED  # type: ignore[union-attr]


async def test_a_worker_goes_on_with_the_run_of_a_dead_one(tmp_path: Path) -> None:
    ended: list[Run] = []
    async with house(tmp_path, a=echo()) as h:
        run = await h.create(chain, submitted=True)
        dead = dead_driver()
        await h.store.leases.claim(run.id, dead, 0, h.clock.now(), h.clock.now() + 15)
        await crew(h, ended.append).serve(until_idle=True)
        assert [(each.id, each.state) for each in ended] == [(run.id, RunState.COMPLETED)]


async def test_followers_get_every_event_once_in_order(tmp_path: Path) -> None:
    async with house(tmp_path, a=echo()) as h:
        run = await h.create(chain)

        async def watch() -> list[int]:
            return [event.seq async for event in follow(h.store, run.id, 0, h.engine.sweep)]

        watching = [asyncio.create_task(watch()) for _ in range(3)]
        done = await h.engine.drive(run.id)
        for each in watching:
            assert await each == list(range(1, done.last_seq + 1))


async def test_a_call_that_ends_by_itself_while_another_is_being_closed_holds_nothing_up(tmp_path: Path) -> None:
    begun, closing, over = asyncio.Barrier(3), asyncio.Event(), asyncio.Event()

    async def slow(request: Request, n: int) -> Reply:
        await begun.wait()
        try:
            await asyncio.Event().wait()
        finally:
            closing.set()
            await over.wait()
        raise AssertionError

    async def quick(request: Request, n: int) -> Reply:
        await begun.wait()
        await closing.wait()
        return reply("just in time")

    async def leaves_both(ctx: Context, spec: Any) -> Json:
        calls = [asyncio.create_task(ctx.call(name, "hi", key=name)) for name in ("slow", "quick")]
        calls[1].add_done_callback(lambda _: over.set())
        await begun.wait()
        return None

    async with house(tmp_path, slow=Puppet(slow), quick=Puppet(quick)) as h:
        run = await h.create(leaves_both)
        done = await asyncio.wait_for(h.engine.drive(run.id), 120)
        assert done.state is RunState.COMPLETED
        await check_books(h.store, run.id)


def stop_somehow(h: House, driving: "asyncio.Task[Run]", way: int) -> None:
    if way:
        h.engine.stop_all(Interrupted("stop"), now=way == 1)
    else:
        driving.cancel()


@pytest.mark.parametrize("block", range(6))
async def test_canceling_at_any_instant_leaves_the_books_in_order(tmp_path: Path, block: int) -> None:
    """Fifty runs each stopped at another instant: nothing reserved, nothing unsettled, no answer lost."""
    dice = random.Random(block)

    async def answer(request: Request, n: int) -> Reply:
        for _ in range(dice.randrange(6)):
            await asyncio.sleep(0)
        if dice.random() < 0.1:
            raise Overloaded("full")
        return reply(f"{request.messages[-1].text} {n}")

    async def many(ctx: Context, spec: Any) -> Json:
        async def one(i: int, item: int) -> str:
            return (await ctx.call("a", f"hi {item}", key=f"k{i}")).text

        return [text async for text in ctx.map(one, range(12))]

    agent = Puppet(answer)
    async with house(tmp_path, a=agent) as h:
        for instant in range(50):
            agent.answered.clear()
            run = await h.create(many, concurrency=3, cap=Microdollars(2000))
            driving = asyncio.create_task(h.engine.drive(run.id))
            await asyncio.sleep(dice.uniform(0.002, 0.03))  # any instant will do: it is the chance that counts
            stop_somehow(h, driving, instant % 3)
            await asyncio.gather(driving, return_exceptions=True)
            await h.store.runs.create(new_run(f"flush{instant}"))  # what was queued before it is written by now
            await check_books(h.store, run.id)
            after = await h.store.runs.get(run.id)
            assert after is not None
            assert after.state in {RunState.QUEUED, RunState.INTERRUPTED, RunState.COMPLETED}
            kept = {entry.reply.text async for entry in h.store.archive.entries(run.id) if entry.reply}
            assert kept == {answered.text for answered in agent.answered}


async def test_a_run_told_to_stop_while_it_is_claimed_does_not_begin(tmp_path: Path) -> None:
    agent = echo()
    async with house(tmp_path, a=agent) as h:
        run = await h.create(chain)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await asyncio.sleep(0)
        h.engine.stop_all(Interrupted("stop"), now=False)
        stopped = await driving
        assert (stopped.state, len(agent.asked)) == (RunState.INTERRUPTED, 0)
        assert (await h.engine.drive(run.id)).state is RunState.COMPLETED


async def test_whoever_follows_a_run_learns_that_its_driver_died(tmp_path: Path) -> None:
    async with house(tmp_path, a=echo()) as h:
        run = await h.create(chain)
        dead = dead_driver()
        await h.store.leases.claim(run.id, dead, 0, h.clock.now(), h.clock.now() + 15)
        kinds = [event.kind async for event in follow(h.store, run.id, 0, h.engine.sweep)]
        assert kinds[-1] == "run.interrupted"


async def test_a_worker_tells_of_a_run_it_could_not_drive_and_goes_on(tmp_path: Path) -> None:
    told: list[str] = []
    ended: list[Run] = []
    async with house(tmp_path, a=echo()) as h:
        good = await h.create(chain, submitted=True)
        origin = Origin(run=good.id, reuse=Reuse.REPLIES, fork_key="never")
        bad = await h.create(chain, submitted=True, origin=origin)
        worker = crew(h, ended.append, lambda run, error: told.append(run))
        await worker.serve(until_idle=True)
        assert ([run.id for run in ended], told) == ([good.id], [bad.id])


async def test_a_step_under_one_key_happens_once_even_side_by_side(tmp_path: Path) -> None:
    done: list[int] = []

    async def work(ctx: Context, spec: Any) -> Json:
        async def effect() -> Json:
            await asyncio.sleep(0)
            done.append(1)
            return len(done)

        found = await asyncio.gather(*(ctx.step("s", effect) for _ in range(5)), return_exceptions=True)
        return [value if isinstance(value, int) else type(value).__name__ for value in found]

    async with house(tmp_path, a=echo()) as h:
        run = await h.drive(work)
        assert (run.result, done) == ([1, *["KeyReused"] * 4], [1])


async def test_a_child_under_one_key_is_driven_once_even_side_by_side(tmp_path: Path) -> None:
    agent = echo()

    async def work(ctx: Context, spec: Any) -> Json:
        return await ctx.gather(*(ctx.child("c", "chain", None) for _ in range(3)))

    async with house(tmp_path, a=agent) as h:
        h.workloads.workload("chain")(chain)
        run = await h.drive(work)
        assert run.result == ["start/0/1/2/3"] * 3
        assert len(agent.asked) == 4


async def test_one_that_is_canceled_in_a_race_for_a_run_leaves_the_other_alone(tmp_path: Path) -> None:
    """Two engines claim a run at once and one of them is canceled: whoever won, the run is not left to nobody."""
    outcomes: set[RunState] = set()
    async with house(tmp_path, a=echo()) as h, house(tmp_path, a=echo()) as other:
        other.workloads.workload("chain")(chain)
        for _ in range(12):
            run = await h.create(chain)
            staying = asyncio.create_task(h.engine.drive(run.id))
            canceled = asyncio.create_task(other.engine.drive(run.id))
            await asyncio.sleep(0)
            canceled.cancel()
            (stayed, _) = await asyncio.gather(staying, canceled, return_exceptions=True)
            await other.store.runs.create(new_run(f"flush{run.id}"))  # what the other had queued is written by now
            after = await h.store.runs.get(run.id)
            assert after is not None
            won = isinstance(stayed, Run)
            assert after.state is (RunState.COMPLETED if won else RunState.INTERRUPTED)
            outcomes.add(after.state)
    assert RunState.COMPLETED in outcomes


async def test_told_to_stop_a_parent_waits_for_the_calls_of_its_children(tmp_path: Path) -> None:
    hanging = Hanging()
    async with house(tmp_path, a=hanging.puppet) as h:
        h.workloads.workload("chain")(chain)
        run = await h.create(nested)
        stopped = await interrupt_when(h, run, hanging, now=False)
        (child,) = await h.store.archive.children(run.id)
        assert stopped.state is RunState.INTERRUPTED
        assert (child.calls.done, child.spent.uncertain) == (1, 0)


async def test_one_key_for_two_children_or_for_an_event_and_a_call_is_an_error(tmp_path: Path) -> None:
    async def two_children(ctx: Context, spec: Any) -> Json:
        return [await ctx.child("c", "chain", {"n": n}) for n in range(2)]

    async def event_and_call(ctx: Context, spec: Any) -> Json:
        await ctx.call("a", "hi", key="k")
        await ctx.emit("k", "told", {})
        return None

    async def step_and_child(ctx: Context, spec: Any) -> Json:
        await ctx.step("k", lambda: 1)
        return await ctx.child("k", "chain", None)

    async with house(tmp_path, a=echo()) as h:
        h.workloads.workload("chain")(chain)
        assert (await h.drive(step_and_child)).ended_reason == "key_reused"
        assert (await h.drive(two_children)).ended_reason == "key_reused"
        assert (await h.drive(event_and_call)).ended_reason == "key_reused"


async def test_a_child_has_a_time_limit_of_its_own_and_its_failure_names_it(tmp_path: Path) -> None:
    async def endless(ctx: Context, spec: Any) -> None:
        await asyncio.Event().wait()

    async def parent(ctx: Context, spec: Any) -> Json:
        try:
            return await ctx.child("c", "endless", None, timeout=0.05)
        except ChildFailed as error:
            return error.run

    async with house(tmp_path) as h:
        h.workloads.workload("endless")(endless)
        run = await h.drive(parent)
        (child,) = await h.store.archive.children(run.id)
        assert (run.state, run.result) == (RunState.COMPLETED, child.id)
        assert (child.state, child.timeout) == (RunState.TIMEOUT, 0.05)


async def test_a_step_gives_the_same_value_at_once_and_on_resume_and_refuses_what_is_no_json(tmp_path: Path) -> None:
    async def normal(ctx: Context, spec: Any) -> Any:
        return await ctx.step("s", lambda: {"pair": (1, 2), 3: "x"})

    async def odd(ctx: Context, spec: Any) -> Json:
        return await ctx.step("s", lambda: float("nan"))

    async with house(tmp_path) as h:
        assert (await h.drive(normal)).result == {"pair": [1, 2], "3": "x"}
        assert (await h.drive(odd)).ended_reason == "bad_argument"


async def test_a_workload_that_exits_fails_its_run_and_not_the_process(tmp_path: Path) -> None:
    async def leaving(ctx: Context, spec: Any) -> Json:
        raise SystemExit(7)

    async with house(tmp_path) as h:
        run = await h.drive(leaving)
        assert (run.state, run.ended_reason) == (RunState.FAILED, "workload_error")
        assert "tried to exit the process with 7" in (run.error or {})["message"]


async def test_a_workload_that_ignores_cancellation_is_not_waited_for_without_end(tmp_path: Path) -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    async def stubborn(ctx: Context, spec: Any) -> Json:
        begun.set()
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue
        return None

    async with house(tmp_path) as h:
        run = await h.create(stubborn)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await begun.wait()
        h.engine.stop_all(Interrupted("stop"), now=True)
        assert (await driving).state is RunState.INTERRUPTED
        end.set()


async def test_a_cancel_that_a_dead_driver_never_saw_is_carried_out(tmp_path: Path) -> None:
    agent = echo()
    async with house(tmp_path, a=agent) as h:
        run = await h.create(chain)
        dead = dead_driver()
        await h.store.leases.claim(run.id, dead, 0, h.clock.now(), h.clock.now() + 15)
        await h.store.runs.cancel(run.id, h.clock.now())
        with pytest.raises(Conflict, match="canceled"):
            await h.engine.drive(run.id)
        assert (await h.store.runs.get(run.id)).state is RunState.CANCELED  # type: ignore[union-attr]
        assert agent.asked == []


async def test_a_run_of_this_process_that_was_not_let_go_of_can_be_taken_up_again(tmp_path: Path) -> None:
    async with house(tmp_path, a=echo()) as h:
        run = await h.create(chain)
        await h.store.leases.claim(run.id, this_process(), 0, h.clock.now(), h.clock.now() + 15)
        assert (await h.engine.drive(run.id)).state is RunState.COMPLETED


class Seam:
    """A part of a store in which some things are different."""

    def __init__(self, part: object, **differences: object) -> None:
        self._part = part
        self.__dict__.update(differences)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)


async def test_a_sweep_that_read_a_run_long_ago_leaves_it_to_a_driver_that_lives(tmp_path: Path) -> None:
    clock, elsewhere = FakeClock(), replace(this_process(), host="elsewhere")
    async with house(tmp_path, a=echo(), clock=clock) as h:
        run, store = await h.create(chain), h.store
        claim = await store.leases.claim(run.id, elsewhere, 0, clock.now(), clock.now() + 15)

        async def left_behind(at: float) -> Any:
            found = await store.queue.left_behind(at)
            clock.advance(16.0)
            await store.leases.beat(run.id, claim.epoch, clock.now() + 15, 1.0, RunState.RUNNING)
            return found

        late: Any = Seam(store, queue=Seam(store.queue, left_behind=left_behind))
        h.engine._with = replace(h.engine._with, store=late)
        assert await h.engine.sweep() == []
        after = await store.runs.get(run.id)
        assert after is not None
        assert (after.state, after.lease.epoch) == (RunState.RUNNING, claim.epoch)


@pytest.fixture
def living() -> Iterator[Driver]:
    """Another process of this machine."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        birth = "/".join(part for part in (started(process.pid), namespace()) if part)
        yield replace(this_process(), pid=process.pid, started=birth)


@pytest.mark.parametrize("stops", [False, True])
async def test_an_ended_lease_counts_more_than_a_living_process_where_drivers_stop_by_themselves(
    tmp_path: Path, living: Driver, stops: bool
) -> None:
    clock = FakeClock()
    async with house(tmp_path, a=echo(), clock=clock) as h:
        run, store = await h.create(chain), h.store
        await store.leases.claim(run.id, living, 0, clock.now(), clock.now() + 15)
        other: Any = Seam(store, leases=Seam(store.leases, stops_drivers=stops))
        h.engine._with = replace(h.engine._with, store=other)
        assert await h.engine.sweep() == []
        clock.advance(15.1)
        assert [found.id for found, _ in await h.engine.sweep()] == ([run.id] if stops else [])


async def test_a_call_left_behind_that_only_waits_does_not_hold_the_run(tmp_path: Path) -> None:
    clock = FakeClock()
    left: list[asyncio.Task[Reply]] = []

    async def careless(ctx: Context, spec: Any) -> Json:
        left.append(asyncio.create_task(ctx.call("a", "hi", key="k")))
        await clock.someone_sleeps(at_least=30)
        return "done"

    async with house(tmp_path, a=failing(Overloaded("full", retry_after=50.0)), clock=clock) as h:
        h.engine._with = replace(h.engine._with, policy=RetryPolicy(longest_delay=60.0))
        run = await h.drive(careless)
        assert (run.state, run.result) == (RunState.COMPLETED, "done")
        await asyncio.gather(*left, return_exceptions=True)
        assert left[0].cancelled()


async def test_a_child_whose_key_was_not_noted_before_a_crash_is_noted_on_resume(tmp_path: Path) -> None:
    """The child run was made, then the process died: the next driver drives that very child and notes its key."""
    async with house(tmp_path, a=echo()) as h:
        h.workloads.workload("chain")(chain)
        parent = await h.create(nested)
        made = await h.create(chain, parent=parent.id, parent_key="part/0")
        done = await h.engine.drive(parent.id)
        entry = await h.store.journal.find(parent.id, "part/0")
        assert done.state is RunState.COMPLETED
        assert entry is not None
        assert entry.value == made.id


async def test_children_share_the_places_of_the_run_above_them(tmp_path: Path) -> None:
    at_once: list[int] = []
    open_calls = 0

    async def answer(request: Request, n: int) -> Reply:
        nonlocal open_calls
        open_calls += 1
        at_once.append(open_calls)
        for _ in range(20):
            await asyncio.sleep(0)
        open_calls -= 1
        return reply()

    async def one_call(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", f"hi {spec}", key="k")).text

    async def many(ctx: Context, spec: Any) -> Json:
        return await ctx.gather(*(ctx.child(f"part/{number}", "one_call", number) for number in range(8)))

    async with house(tmp_path, a=Puppet(answer)) as h:
        h.workloads.workload("one_call")(one_call)
        run = await h.drive(many, concurrency=2)
        assert run.result == ["ok"] * 8
        assert max(at_once) == 2


async def test_the_calls_of_a_child_are_sent_as_its_run_above_says(tmp_path: Path) -> None:
    async def mode(ctx: Context, spec: Any) -> Json:
        return str(ctx.mode)

    async def above(ctx: Context, spec: Any) -> Json:
        return [await ctx.child(f"part/{sent}", "mode", None, dispatch=sent) for sent in (None, "live", "batch")]

    async with house(tmp_path) as h:
        h.workloads.workload("mode")(mode)
        assert (await h.drive(above)).result == ["live", "live", "batch"]
