"""Signals as runs receive them: waited for without a process, seen once and in order, whoever drives."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.domain.canonical import Json
from muster.domain.entry import NewSignal, slot_address
from muster.domain.errors import AwaitsSignal, KeyReused, MusterError
from muster.domain.ids import RunId
from muster.domain.run import Origin, Reuse, Run, RunState
from muster.engine.context import Context
from muster.engine.drive import Leave
from muster.engine.worker import Worker
from muster.testing.clock import FakeClock
from tests.engine.house import House, check_books, echo, house


async def reviewed(ctx: Context, spec: Any) -> Json:
    """Ask until the answer is approved; every round of feedback stands in the next question."""
    feedback: list[str] = []
    while True:
        answer = await ctx.call("a", " | ".join(["write", *feedback]), key=f"write/{len(feedback)}")
        review = await ctx.receive(f"review/{len(feedback)}", "review")
        assert review is not None
        told: Any = review.payload
        if told["approved"]:
            return answer.text
        feedback.append(told["feedback"])


async def send(h: House, run: Run, payload: Json, channel: str = "review", client_id: str | None = None) -> None:
    at = h.clock.now()
    client_id = client_id or f"c{at}{payload}"
    await h.store.signals.send(
        NewSignal(address=run.lineage_level, channel=channel, payload=payload, client_id=client_id, at=at)
    )


async def stored(h: House, run: RunId) -> Run:
    found = await h.store.runs.get(run)
    assert found is not None
    return found


async def pass_time(h: House, clock: FakeClock, seconds: float) -> None:
    """Move the time, and let whoever it wakes write something down."""
    clock.advance(seconds)
    await h.store.changes.wait(0.05, h.store.changes.commits)


def rejected(feedback: str) -> Json:
    return {"approved": False, "feedback": feedback}


async def test_a_run_that_waits_for_signals_needs_no_process_and_hears_every_one(tmp_path: Path) -> None:
    agent = echo()
    async with house(tmp_path, a=agent) as h:
        run = await h.create(reviewed, submitted=True)
    for number, feedback in enumerate(["shorter", "kinder"]):
        async with house(tmp_path, a=agent) as h:
            h.workloads.workload("reviewed")(reviewed)
            left = await h.engine.drive(run.id, leave=Leave.FOR_SIGNALS)
            assert (left.state, left.ended_reason, left.lease.driver) == (RunState.WAITING, AwaitsSignal.code, None)
            assert not await h.store.runs.submitted(10)
            assert len(agent.asked) == number + 1
        async with house(tmp_path) as elsewhere:  # another terminal
            await send(elsewhere, run, rejected(feedback))
            assert [one.id for one in await elsewhere.store.runs.submitted(10)] == [run.id]
    async with house(tmp_path, a=agent) as h:
        h.workloads.workload("reviewed")(reviewed)
        await send(h, run, {"approved": True})
        done = await h.engine.drive(run.id, leave=Leave.FOR_SIGNALS)
        assert (done.state, done.result) == (RunState.COMPLETED, "write | shorter | kinder")
        assert [request.messages[-1].text for request in agent.asked] == [
            "write",
            "write | shorter",
            "write | shorter | kinder",
        ]
        await check_books(h.store, run.id)


async def test_a_worker_lets_go_of_a_run_and_takes_it_up_when_a_signal_arrives(tmp_path: Path) -> None:
    ended: asyncio.Queue[Run] = asyncio.Queue()

    async def on_end(run: Run) -> None:
        ended.put_nowait(run)

    def on_error(run: RunId, error: MusterError) -> None:
        raise error

    async with house(tmp_path, a=echo()) as h:
        run = await h.create(reviewed, submitted=True)
        worker = Worker(h.store, h.engine, h.clock, most=2, on_end=on_end, on_error=on_error)
        serving = asyncio.create_task(worker.serve())
        assert (await ended.get()).state is RunState.WAITING
        await send(h, run, rejected("again"))
        assert (await ended.get()).state is RunState.WAITING
        await send(h, run, {"approved": True})
        assert (await ended.get()).result == "write | again"
        worker.close()
        await serving


async def test_a_driver_that_stays_receives_at_once_and_the_time_of_the_run_stands_still(tmp_path: Path) -> None:
    clock = FakeClock()
    async with house(tmp_path, clock=clock, a=echo()) as h:
        run = await h.create(reviewed, timeout=10.0)
        driving = asyncio.create_task(h.engine.drive(run.id))
        while (await stored(h, run.id)).state is not RunState.WAITING:
            await pass_time(h, clock, 1.0)
        await pass_time(h, clock, 3600.0)
        await send(h, run, {"approved": True})
        assert (await driving).state is RunState.COMPLETED


async def test_waiting_for_a_signal_has_an_end_that_counts_from_its_beginning(tmp_path: Path) -> None:
    async def patient(ctx: Context, spec: Any) -> Json:
        signal = await ctx.receive("answer", "answer", timeout=600.0)
        return None if signal is None else signal.payload

    clock = FakeClock()
    async with house(tmp_path, clock=clock) as h:
        late, early = await h.create(patient), await h.create(patient, workload="patient")
        for run in (late, early):
            driving = asyncio.create_task(h.engine.drive(run.id, leave=Leave.FOR_SIGNALS))
            while not driving.done():
                await pass_time(h, clock, 0.1)
        await pass_time(h, clock, 590.0)
        await send(h, early, "here", "answer")
        assert (await h.engine.drive(early.id)).result == "here"
        assert not await h.store.runs.submitted(10)
        await pass_time(h, clock, 10.0)
        await h.engine.sweep()
        assert [one.id for one in await h.store.runs.submitted(10)] == [late.id]
        done = await h.engine.drive(late.id)
        assert (done.state, done.result) == (RunState.COMPLETED, None)
        await h.store.signals.send(
            NewSignal(address=late.lineage_level, channel="answer", payload="x", client_id="late", at=clock.now())
        )
        assert (await stored(h, late.id)).state is RunState.COMPLETED


async def test_nobody_lets_go_of_a_run_for_a_short_pause(tmp_path: Path) -> None:
    async def pauses(ctx: Context, spec: Any) -> Json:
        await ctx.receive("pause", "pause", timeout=30.0)
        return "went on"

    clock = FakeClock()
    async with house(tmp_path, clock=clock) as h:
        run = await h.create(pauses)
        driving = asyncio.create_task(h.engine.drive(run.id, leave=Leave.FOR_SIGNALS))
        while not driving.done():
            await pass_time(h, clock, 1.0)
        assert (driving.result().state, driving.result().result) == (RunState.COMPLETED, "went on")


async def test_what_is_there_is_collected_once_also_for_a_slot(tmp_path: Path) -> None:
    async def reads_mail(ctx: Context, spec: Any) -> Json:
        first = await ctx.collect("first", "inbox", slot="coder")
        if spec == "stop":
            raise ValueError("stopped")
        second = await ctx.collect("second", "inbox", slot="coder")
        return [[one.payload for one in mail] for mail in (first, second)]

    async with house(tmp_path) as h:
        for number in range(2):
            await h.store.signals.send(
                NewSignal(
                    address=slot_address("coder"), channel="inbox", payload=number, client_id=f"m{number}", at=1.0
                )
            )
        failed = await h.drive(reads_mail, spec="stop")
        assert failed.state is RunState.FAILED
        again = await h.descend(failed, Origin(run=failed.id, reuse=Reuse.REPLIES))
        assert again.spec == "stop"
        entry = await h.store.journal.find(failed.id, "first")
        assert entry is not None
        assert [one["payload"] for one in entry.value] == [0, 1]
        assert (await h.drive(reads_mail, workload="other")).result == [[], []]


async def test_a_fork_inherits_what_was_received_and_hears_nothing_later(tmp_path: Path) -> None:
    async with house(tmp_path, a=echo()) as h:
        run = await h.create(reviewed)
        await send(h, run, rejected("one"))
        await send(h, run, {"approved": True})
        assert (await h.engine.drive(run.id)).result == "write | one"
        fork = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLIES, fork_key="review/1"))
        await send(h, run, rejected("for the old one"))
        left = await h.engine.drive(fork.id, leave=Leave.FOR_SIGNALS)
        assert left.state is RunState.WAITING
        await send(h, fork, rejected("two"))
        await send(h, fork, {"approved": True}, client_id="last")
        assert (await h.engine.drive(fork.id)).result == "write | one | two"


async def test_a_replay_hears_what_was_heard(tmp_path: Path) -> None:
    agent = echo()
    async with house(tmp_path, a=agent) as h:
        run = await h.create(reviewed)
        await send(h, run, rejected("one"))
        await send(h, run, {"approved": True})
        await h.engine.drive(run.id)
        replay = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLAY))
        assert (await h.engine.drive(replay.id)).result == "write | one"
        assert len(agent.asked) == 2


async def test_a_parent_is_taken_up_when_its_child_receives(tmp_path: Path) -> None:
    async def parent(ctx: Context, spec: Any) -> Json:
        return await ctx.child("review", "reviewed", {})

    async with house(tmp_path, a=echo()) as h:
        h.workloads.workload("reviewed")(reviewed)
        run = await h.create(parent)
        left = await h.engine.drive(run.id, leave=Leave.FOR_SIGNALS)
        assert left.state is RunState.WAITING
        (child,) = await h.store.archive.children(run.id)
        await send(h, child, {"approved": True})
        assert (await stored(h, run.id)).state is RunState.QUEUED
        assert (await h.engine.drive(run.id, leave=Leave.FOR_SIGNALS)).result == "write"


async def test_a_run_is_kept_while_anything_else_is_under_way(tmp_path: Path) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def busy(ctx: Context, spec: Any) -> Json:
        async def work() -> Json:
            begun.set()
            await go_on.wait()
            return "worked"

        return await ctx.gather(ctx.step("work", work), ctx.receive("stop", "stop", timeout=3600.0))

    clock = FakeClock()
    async with house(tmp_path, clock=clock) as h:
        run = await h.create(busy)
        driving = asyncio.create_task(h.engine.drive(run.id, leave=Leave.FOR_SIGNALS))
        await begun.wait()
        for _ in range(20):
            await pass_time(h, clock, 1.0)
        assert not driving.done()
        go_on.set()
        while not driving.done():
            await pass_time(h, clock, 0.1)
        assert (await driving).state is RunState.WAITING


async def test_a_key_of_a_signal_is_nothing_else(tmp_path: Path) -> None:
    async def confused(ctx: Context, spec: Any) -> Json:
        await ctx.step("k", lambda: 1)
        await ctx.receive("k", "channel")
        return None

    async with house(tmp_path) as h:
        done = await h.drive(confused)
        assert (done.state, done.ended_reason) == (RunState.FAILED, KeyReused.code)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sends=st.lists(st.integers(0, 5), min_size=1, max_size=8), stops=st.sets(st.integers(0, 6)))
async def test_each_signal_is_seen_once_and_in_order_whenever_the_driver_leaves(
    tmp_path_factory: pytest.TempPathFactory, sends: list[int], stops: set[int]
) -> None:
    distinct = list(dict.fromkeys(sends))

    async def listener(ctx: Context, spec: Any) -> Json:
        heard = []
        for number in range(len(distinct)):
            signal = await ctx.receive(f"in/{number}", "in")
            assert signal is not None
            heard.append(signal.payload)
        return heard

    async with house(tmp_path_factory.mktemp("signals")) as h:
        run = await h.create(listener)
        for place, number in enumerate(sends):  # the same client id twice is one signal
            if (await stored(h, run.id)).state is RunState.COMPLETED:
                break
            if place in stops:
                await h.engine.drive(run.id, leave=Leave.FOR_SIGNALS)
            await send(h, run, number, "in", client_id=f"n{number}")
        while (await stored(h, run.id)).state is not RunState.COMPLETED:
            await h.engine.drive(run.id, leave=Leave.FOR_SIGNALS)
        assert (await stored(h, run.id)).result == distinct
