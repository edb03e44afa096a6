"""Runs that take over calls and nothing else, and calls that must be known."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from muster.domain.agent import Command
from muster.domain.call import Reply, Request
from muster.domain.canonical import Json
from muster.domain.errors import CallFailed, InvalidRequest, ReplayMiss
from muster.domain.run import Origin, Reuse, Run, RunState
from muster.engine.context import Context
from tests.engine.house import House, Puppet, echo, failing, house, reply


async def stepped(ctx: Context, spec: Any) -> Json:
    stamp = await ctx.step("stamp", lambda: spec["stamp"])
    return [stamp, (await ctx.call("a", "hi", key="k")).text]


async def heir(h: House, run: Run, reuse: Reuse, spec: Json) -> Run:
    return await h.drive(stepped, spec=spec, origin=Origin(run=run.id, reuse=reuse))


@pytest.mark.parametrize(
    ("reuse", "stamp"),
    [(Reuse.REPLIES, "old"), (Reuse.REPLAY, "old"), (Reuse.CALLS, "new"), (Reuse.RECORDED, "new")],
)
async def test_calls_are_taken_over_and_steps_only_by_a_run_that_is_the_same_work(
    tmp_path: Path, reuse: Reuse, stamp: str
) -> None:
    agent = echo()
    async with house(tmp_path, a=agent) as h:
        run = await h.drive(stepped, spec={"stamp": "old"})
        again = await heir(h, run, reuse, {"stamp": "new"})
        assert (again.state, again.result) == (RunState.COMPLETED, [stamp, "hi"])
        assert (len(agent.asked), again.spent.settled) == (1, 0)


async def test_a_run_that_resumes_one_with_borrowed_calls_knows_the_steps_of_that_one_only(tmp_path: Path) -> None:
    async def once_bad(request: Request, n: int) -> Reply:
        if n == 2:
            raise InvalidRequest("not today")
        return reply(request.messages[-1].text)

    agent = Puppet(once_bad)

    async def two(ctx: Context, spec: Any) -> Json:
        stamp = await ctx.step("stamp", lambda: spec["stamp"])
        first = (await ctx.call("a", "hi", key="k")).text
        return [stamp, first, *([(await ctx.call("a", "ho", key="k2")).text] if spec["more"] else [])]

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(two, spec={"stamp": "first", "more": False})
        spec = {"stamp": "second", "more": True}
        failed = await h.drive(two, spec=spec, origin=Origin(run=run.id, reuse=Reuse.CALLS))
        assert failed.state is RunState.FAILED
        done = await h.engine.drive((await h.descend(failed, Origin(run=failed.id, reuse=Reuse.REPLIES))).id)
        assert done.result == ["second", "hi", "ho"]
        assert [request.prompt for request in agent.asked] == ["hi", "ho", "ho"]


async def test_a_recorded_run_that_misses_a_call_names_the_key(tmp_path: Path) -> None:
    async def other(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", "hi", key="elsewhere")).text

    async with house(tmp_path, a=echo()) as h:
        run = await h.drive(stepped, spec={"stamp": 1})
        again = await h.drive(other, origin=Origin(run=run.id, reuse=Reuse.RECORDED))
        assert again.ended_reason == ReplayMiss.code
        assert "'elsewhere'" in (again.error or {})["message"]


async def test_a_call_that_must_be_known_is_never_made(tmp_path: Path) -> None:
    agent = echo()

    async def known(ctx: Context, spec: Any) -> Json:
        asked = (await ctx.call("a", "fresh", key="fresh")).text
        return [asked, (await ctx.call("a", "hi", key="k", known=True)).text]

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(stepped, spec={"stamp": 1})
        taken = await h.drive(known, origin=Origin(run=run.id, reuse=Reuse.REPLIES))
        assert taken.result == ["fresh", "hi"]
        missed = await h.drive(known)
        assert missed.ended_reason == ReplayMiss.code
        assert [request.prompt for request in agent.asked] == ["hi", "fresh", "fresh"]


async def test_a_call_that_must_be_known_gives_a_failure_as_it_was_recorded(tmp_path: Path) -> None:
    agent = failing(InvalidRequest("not today", status=400))

    async def careful(ctx: Context, spec: Any) -> Json:
        try:
            return (await ctx.call("a", "hi", key="k", known=spec == "known")).text
        except CallFailed as error:
            return error.record()

    async with house(tmp_path, a=agent) as h:
        run = await h.drive(careful)
        again = await h.drive(careful, spec="known", origin=Origin(run=run.id, reuse=Reuse.REPLIES))
        assert again.result == run.result
        assert len(agent.asked) == 1


def test_a_command_is_named_by_what_one_would_type() -> None:
    assert Command(argv=("score", "it all")).name == "score 'it all'"


async def test_a_command_is_asked_live_like_any_agent(tmp_path: Path) -> None:
    agent = echo()

    async def command(ctx: Context, spec: Any) -> Json:
        call = ctx.call(Command(argv=("score",)), "text", key="k", dispatch="batch")
        return (await call).text

    async with house(tmp_path, score=agent) as h:
        run = await h.drive(command)
        assert run.result == "text"
        entry = await h.store.journal.find(run.id, "k")
        assert entry is not None
        assert entry.agent == agent.profile.name


async def test_a_final_failure_is_not_tried_again_and_others_are(tmp_path: Path) -> None:
    async def refuses(request: Request, n: int) -> Reply:
        raise InvalidRequest("no")

    agent = Puppet(refuses)

    def asking(*codes: str) -> Callable[[Context, Any], Awaitable[None]]:
        async def work(ctx: Context, spec: Any) -> None:
            await ctx.call("a", "hi", key="k", final_failures=codes)

        return work

    async with house(tmp_path, a=agent) as h:
        failed = await h.drive(asking("invalid_request"))
        again = await h.drive(asking("invalid_request"), origin=Origin(run=failed.id, reuse=Reuse.REPLIES))
        assert (again.state, again.error and again.error["code"]) == (RunState.FAILED, "invalid_request")
        assert len(agent.asked) == 1
        entry = await h.store.journal.find(again.id, "k")
        assert entry is not None
        assert entry.reused_from == failed.id
        await h.drive(asking("permission"), origin=Origin(run=failed.id, reuse=Reuse.REPLIES))
        assert len(agent.asked) == 2


async def family(ctx: Context, spec: Any) -> Json:
    return await ctx.child("part", "stepped", spec["child"])


@pytest.mark.parametrize("reuse", [Reuse.REPLIES, Reuse.REPLAY, Reuse.CALLS, Reuse.RECORDED])
@pytest.mark.parametrize(("child", "stamp"), [({"stamp": "old"}, "old"), ({"stamp": "new"}, "new")])
async def test_of_a_child_that_is_other_work_only_calls_are_taken_over(
    tmp_path: Path, reuse: Reuse, child: Json, stamp: str
) -> None:
    agent = echo()
    async with house(tmp_path, a=agent) as h:
        h.workloads.workload("stepped")(stepped)
        run = await h.drive(family, spec={"child": {"stamp": "old"}})
        again = await h.drive(family, spec={"child": child}, origin=Origin(run=run.id, reuse=reuse))
        assert (again.result, again.error) == ([stamp, "hi"], None)
        assert (len(agent.asked), again.total.settled) == (1, run.total.settled - 10)


async def test_a_child_that_is_the_same_work_is_taken_over_with_its_steps(tmp_path: Path) -> None:
    drawn = iter(("first", "second"))

    async def drawing(ctx: Context, spec: Any) -> Json:
        return await ctx.step("draw", lambda: next(drawn))

    async def above(ctx: Context, spec: Any) -> Json:
        return await ctx.child("part", "drawing", None)

    async with house(tmp_path) as h:
        h.workloads.workload("drawing")(drawing)
        run = await h.drive(above)
        for reuse in (Reuse.CALLS, Reuse.RECORDED):
            again = await h.drive(above, origin=Origin(run=run.id, reuse=reuse))
            assert (again.result, again.error) == ("first", None)
