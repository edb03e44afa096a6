"""Runs that take over calls and nothing else, and calls that must be known."""

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
