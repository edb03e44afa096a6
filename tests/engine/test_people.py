"""Calls to people: asked without an attempt or money, waited for without a process, answered once."""

import asyncio
from math import inf
from pathlib import Path
from typing import Any

import pytest

from muster.agents.human import HumanAgent
from muster.domain.agent import Profile, Timeouts
from muster.domain.call import Request, Tool, ask
from muster.domain.canonical import Json
from muster.domain.entry import EntryKind, EntryState, NewSignal, answer_channel
from muster.domain.errors import AwaitsSignal, Conflict, InvalidRequest, MusterError, ReplayMiss, TimedOut
from muster.domain.ids import RunId
from muster.domain.run import Origin, Reuse, Run, RunState
from muster.engine.context import Context
from muster.engine.drive import Leave
from muster.engine.worker import Worker
from muster.testing.clock import FakeClock
from tests.engine.house import House, check_books, echo, house


def person(name: str = "me", seconds: float = inf) -> HumanAgent:
    return HumanAgent(Profile(name=name, limiter=f"human:{name}", timeouts=Timeouts(call=seconds), person=True))


async def twice(ctx: Context, spec: Any) -> Json:
    """Ask a model, then a person about it, then the model again."""
    first = await ctx.call("a", "draft", key="draft")
    said = await ctx.call("me", f"what of {first.text}?", key="ask")
    return (await ctx.call("a", f"improve: {said.text}", key="improve")).text


async def alone(ctx: Context, spec: Any) -> Json:
    return (await ctx.call("me", "well?", key="ask")).text


async def answer(h: House, run: Run, text: str, key: str = "ask", client_id: str | None = None) -> None:
    await h.store.questions.answer(
        run.id,
        key,
        NewSignal(
            address=run.lineage_level,
            channel=answer_channel(key),
            payload={"text": text},
            client_id=client_id or f"{key}/{text}",
            at=h.clock.now(),
        ),
    )


async def open_keys(h: House, run: RunId) -> list[str]:
    return [entry.key for entry in await h.store.questions.unanswered(run)]


async def asked(h: House, run: RunId, *keys: str) -> None:
    """Wait until these questions are open."""
    while set(keys) - set(await open_keys(h, run)):
        await h.store.changes.wait(1.0, h.store.changes.commits)


async def pass_time(h: House, clock: FakeClock, seconds: float) -> None:
    """Move the time, and let whoever it wakes write something down."""
    clock.advance(seconds)
    await h.store.changes.wait(0.05, h.store.changes.commits)


async def test_a_run_that_waits_for_a_person_needs_no_process_and_no_money(tmp_path: Path) -> None:
    agent = echo()
    async with house(tmp_path, a=agent, me=person()) as h:
        run = await h.create(twice, submitted=True)
        left = await h.engine.drive(run.id, leave=Leave.FOR_SIGNALS)
        assert (left.state, left.ended_reason, left.lease.driver) == (RunState.WAITING, AwaitsSignal.code, None)
        assert (left.calls.total, left.calls.done) == (2, 1)
        assert not await h.store.runs.submitted(10)
    async with house(tmp_path) as elsewhere:  # another terminal
        (question,) = await elsewhere.store.questions.unanswered(run.id)
        assert (question.key, question.agent, question.attempts) == ("ask", "me", 0)
        assert question.request["messages"] == [{"role": "user", "text": "what of draft?"}]
        await answer(elsewhere, run, "more colour")
        assert [one.id for one in await elsewhere.store.runs.submitted(10)] == [run.id]
    async with house(tmp_path, a=agent, me=person()) as h:
        h.workloads.workload("twice")(twice)
        done = await h.engine.drive(run.id, leave=Leave.FOR_SIGNALS)
        assert (done.state, done.result) == (RunState.COMPLETED, "improve: more colour")
        assert len(agent.asked) == 2, "a reply was paid for twice"
        assert (done.calls.total, done.calls.done, done.calls.failed) == (3, 3, 0)
        assert not await h.store.archive.attempts_of(run.id, "ask")
        entry = await h.store.journal.find(run.id, "ask")
        assert entry is not None
        assert (entry.kind, entry.state, entry.attempts) == (EntryKind.CALL, EntryState.DONE, 0)
        assert entry.reply is not None
        assert (entry.reply.text, entry.reply.cost, entry.reply.attempt) == ("more colour", 0, 0)
        events = {event.kind: event.data for event in await h.store.events.read(run.id, 0, 100)}
        assert events["call.asked"] == {
            "key": "ask",
            "agent": "me",
            "channel": "answer/ask",
            "read_with": f"muster runs show {run.id} --call ask",
        }
        await check_books(h.store, run.id)


async def test_a_worker_lets_go_of_the_run_and_takes_it_up_when_the_person_answers(tmp_path: Path) -> None:
    ended: asyncio.Queue[Run] = asyncio.Queue()

    async def on_end(run: Run) -> None:
        ended.put_nowait(run)

    def on_error(run: RunId, error: MusterError) -> None:
        raise error

    async with house(tmp_path, a=echo(), me=person()) as h:
        run = await h.create(twice, submitted=True)
        worker = Worker(h.store, h.engine, h.clock, most=2, on_end=on_end, on_error=on_error)
        serving = asyncio.create_task(worker.serve())
        assert (await ended.get()).state is RunState.WAITING
        await answer(h, run, "fine")
        assert (await ended.get()).result == "improve: fine"
        worker.close()
        await serving


async def test_several_people_are_asked_at_once_beside_other_calls(tmp_path: Path) -> None:
    async def crowd(ctx: Context, spec: Any) -> Json:
        calls = [ctx.call("me", "one?", key="one"), ctx.call("you", "two?", key="two"), ctx.call("a", "x", key="model")]
        return [reply.text for reply in await ctx.gather(*calls)]

    agent = echo()
    async with house(tmp_path, a=agent, me=person(), you=person("you")) as h:
        run = await h.create(crowd)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await asked(h, run.id, "one", "two")
        await answer(h, run, "second", "two")
        await answer(h, run, "first", "one")
        assert (await driving).result == ["first", "second", "x"]
        assert len(agent.asked) == 1


async def test_an_item_of_a_map_that_waits_for_a_person_leaves_its_place_to_others(tmp_path: Path) -> None:
    async def judged(ctx: Context, spec: Any) -> Json:
        async def one(number: int, _: int) -> str:
            drafted = await ctx.call("a", f"draft {number}", key=f"draft/{number}")
            return (await ctx.call("me", drafted.text, key=f"ask/{number}")).text

        return [text async for text in ctx.map(one, range(6), limit=2)]

    agent = echo()
    async with house(tmp_path, a=agent, me=person()) as h:
        run = await h.create(judged)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await asked(h, run.id, *(f"ask/{number}" for number in range(6)))
        assert len(agent.asked) == 6
        for number in reversed(range(6)):
            await answer(h, run, f"good {number}", f"ask/{number}")
        assert (await driving).result == [f"good {number}" for number in range(6)]


async def test_of_two_who_answer_at_once_one_is_told_that_the_other_was_faster(tmp_path: Path) -> None:
    async with house(tmp_path, me=person()) as h:
        run = await h.create(alone)
        await h.engine.drive(run.id, leave=Leave.FOR_SIGNALS)
        results = await asyncio.gather(answer(h, run, "yes"), answer(h, run, "no"), return_exceptions=True)
        (refused,) = [result for result in results if result is not None]
        assert isinstance(refused, Conflict)
        assert "is answered already" in str(refused)
        await answer(h, run, "yes")  # the same client id again
        assert (await h.engine.drive(run.id)).result == "yes"
        await answer(h, run, "yes")
        with pytest.raises(Conflict, match="completed; it no longer waits"):
            await answer(h, run, "too late")


async def test_a_question_that_is_not_open_cannot_be_answered(tmp_path: Path) -> None:
    async def goes_on(ctx: Context, spec: Any) -> Json:
        await ctx.call("a", "x", key="model")
        await ctx.call("me", "first?", key="ask")
        return (await ctx.call("me", "second?", key="then")).text

    async with house(tmp_path, a=echo(), me=person()) as h:
        run = await h.create(goes_on)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await asked(h, run.id, "ask")
        with pytest.raises(MusterError, match="no call under the key 'then'"):
            await answer(h, run, "early", "then")
        with pytest.raises(Conflict, match=r"'model' of run .* is done"):
            await answer(h, run, "me too", "model")
        await answer(h, run, "one")
        await asked(h, run.id, "then")
        with pytest.raises(Conflict, match=r"'ask' of run .* is done: it has an answer"):
            await answer(h, run, "again")
        await answer(h, run, "two", "then")
        assert (await driving).result == "two"


async def test_the_time_to_answer_passes_without_a_process_and_names_the_person(tmp_path: Path) -> None:
    async def patient(ctx: Context, spec: Any) -> Json:
        try:
            return (await ctx.call("me", "well?", key="ask")).text
        except TimedOut as error:
            return error.message

    clock = FakeClock()
    async with house(tmp_path, clock=clock, me=person(seconds=600.0)) as h:
        late, early = await h.create(patient), await h.create(patient, workload="patient")
        for run in (late, early):
            driving = asyncio.create_task(h.engine.drive(run.id, leave=Leave.FOR_SIGNALS))
            while not driving.done():
                await pass_time(h, clock, 0.1)
        await pass_time(h, clock, 590.0)
        await answer(h, early, "just in time")
        assert (await h.engine.drive(early.id)).result == "just in time"
        assert not await h.store.runs.submitted(10)
        await pass_time(h, clock, 10.0)
        await h.engine.sweep()
        assert [one.id for one in await h.store.runs.submitted(10)] == [late.id]
        done = await h.engine.drive(late.id)
        assert done.result == "call 'ask': agent 'me', a person, did not answer within 600 s"
        assert (done.calls.failed, done.calls.done) == (1, 0)
        with pytest.raises(Conflict):
            await answer(h, late, "sorry")


async def test_the_timeout_of_a_call_bounds_the_waiting(tmp_path: Path) -> None:
    async def hurried(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("me", "well?", key="ask", timeout=5.0)).text

    clock = FakeClock()
    async with house(tmp_path, clock=clock, me=person(seconds=600.0)) as h:
        run = await h.create(hurried)
        driving = asyncio.create_task(h.engine.drive(run.id))
        while not driving.done():
            await pass_time(h, clock, 0.5)
        ended = await driving
        assert (ended.state, ended.ended_reason) == (RunState.FAILED, TimedOut.code)
        assert ended.error is not None
        assert "within 5 s" in ended.error["message"]


async def test_an_answer_that_arrived_before_the_end_of_its_time_counts(tmp_path: Path) -> None:
    clock = FakeClock()
    async with house(tmp_path, clock=clock, me=person(seconds=600.0)) as h:
        run = await h.create(alone)
        driving = asyncio.create_task(h.engine.drive(run.id, leave=Leave.FOR_SIGNALS))
        while not driving.done():
            await pass_time(h, clock, 0.1)
        await answer(h, run, "in time")
        await pass_time(h, clock, 6000.0)  # nobody drives it for a long time
        assert (await h.engine.drive(run.id)).result == "in time"


async def test_a_run_that_is_resumed_after_the_time_was_over_asks_again(tmp_path: Path) -> None:
    clock = FakeClock()
    async with house(tmp_path, clock=clock, me=person(seconds=60.0)) as h:
        run = await h.create(alone)
        driving = asyncio.create_task(h.engine.drive(run.id))
        while not driving.done():
            await pass_time(h, clock, 10.0)
        again = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLIES))
        driving = asyncio.create_task(h.engine.drive(again.id))
        await asked(h, again.id, "ask")
        await answer(h, again, "now")
        while not driving.done():
            await pass_time(h, clock, 0.1)
        assert (await driving).result == "now"


async def test_a_replay_takes_the_answer_and_asks_nobody(tmp_path: Path) -> None:
    async with house(tmp_path, a=echo(), me=person()) as h:
        run = await h.create(twice)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await asked(h, run.id, "ask")
        await answer(h, run, "said once")
        await driving
        again = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLAY))
        replayed = await h.engine.drive(again.id)
        assert (replayed.state, replayed.result) == (RunState.COMPLETED, "improve: said once")
        assert "call.asked" not in await h.kinds(again.id)
        assert replayed.calls.reused == 3


async def test_a_replay_of_a_question_without_an_answer_is_a_miss(tmp_path: Path) -> None:
    async with house(tmp_path, me=person()) as h:
        run = await h.create(alone)
        await h.engine.drive(run.id, leave=Leave.FOR_SIGNALS)
        again = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLAY))
        missed = await h.engine.drive(again.id)
        assert (missed.state, missed.ended_reason) == (RunState.FAILED, ReplayMiss.code)


async def test_a_fork_inherits_what_was_answered_and_asks_the_rest_by_itself(tmp_path: Path) -> None:
    async def goes_on(ctx: Context, spec: Any) -> Json:
        return [(await ctx.call("me", f"{key}?", key=key)).text for key in ("first", "second", "third")]

    async with house(tmp_path, me=person()) as h:
        run = await h.create(goes_on)
        for key in ("first", "second"):
            await h.engine.drive(run.id, leave=Leave.FOR_SIGNALS)
            await answer(h, run, f"{key} of the run", key)
        await h.engine.drive(run.id, leave=Leave.FOR_SIGNALS)
        fork = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLIES, fork_key="second"))
        await answer(h, run, "third of the run", "third")
        await h.engine.drive(fork.id, leave=Leave.FOR_SIGNALS)
        assert await open_keys(h, fork.id) == ["second"]
        assert not await open_keys(h, run.id)
        for key in ("second", "third"):
            await answer(h, fork, f"{key} of the fork", key)
            await h.engine.drive(fork.id, leave=Leave.FOR_SIGNALS)
        found = await h.store.runs.get(fork.id)
        assert found is not None
        assert found.result == ["first of the run", "second of the fork", "third of the fork"]
        assert (await h.engine.drive(run.id)).result[-1] == "third of the run"


async def test_a_question_of_a_child_wakes_the_run_above_it(tmp_path: Path) -> None:
    async def above(ctx: Context, spec: Any) -> Json:
        return await ctx.child("below", "alone", None)

    async with house(tmp_path, me=person()) as h:
        h.workloads.workload("alone")(alone)
        run = await h.create(above)
        left = await h.engine.drive(run.id, leave=Leave.FOR_SIGNALS)
        assert left.state is RunState.WAITING
        (question,) = await h.store.questions.unanswered(run.id)
        child = await h.store.runs.get(question.run)
        assert child is not None
        assert child.parent == run.id
        await answer(h, child, "from below")
        assert [one.id for one in await h.store.runs.submitted(10)] == [run.id]
        assert (await h.engine.drive(run.id)).result == "from below"


async def test_the_answer_to_a_schema_becomes_data(tmp_path: Path) -> None:
    async def counted(ctx: Context, spec: Any) -> Json:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        return (await ctx.call("me", "how many?", key="ask", schema=schema)).data

    async with house(tmp_path, me=person()) as h:
        run = await h.create(counted)
        driving = asyncio.create_task(h.engine.drive(run.id))
        await asked(h, run.id, "ask")
        await answer(h, run, '{"n": 3}')
        assert (await driving).result == {"n": 3}


async def test_a_person_is_not_given_tools_and_is_never_called_past_a_run(tmp_path: Path) -> None:
    me = person()
    with pytest.raises(InvalidRequest, match="cannot call tools"):
        me.quote(Request(messages=ask("x").messages, tools=(Tool(name="search"),)))
    with pytest.raises(InvalidRequest, match="only be asked by a run"):
        await me.call(ask("x"), Timeouts())
