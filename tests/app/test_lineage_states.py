"""Runs that three programs start, resume, cancel, fork and delete in any order: a lineage has one end, always, and no
piece of its work is paid twice."""

import asyncio
import json
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import muster
from muster.app import Muster
from muster.domain.errors import Conflict, Interrupted, MusterError, NotFound
from muster.domain.run import TERMINAL, Run, RunState
from muster.settings import load_settings
from tests.chaos import law

T = TypeVar("T")
PATIENCE = 5.0
ACTORS = 3
TOML = """
[agents.asked]
kind = "python"
function = "tests.app.test_lineage_states:asked"
budget_usd = 0.10
concurrency = 100
"""
numbers, actors = st.integers(0, 7), st.integers(0, ACTORS - 1)
totals = st.sampled_from([None, None, 5, 9])
BRIEF = settings(max_examples=6, stateful_step_count=25, deadline=None, derandomize=True, database=None)


class Asked:
    """The calls that wait for an answer, and how often each question was answered and paid."""

    def __init__(self) -> None:
        self.open: list[tuple[str, asyncio.Future[bool]]] = []
        self.paid: Counter[str] = Counter()

    async def call(self, prompt: str) -> Mapping[str, Any]:
        """Stay until somebody says how it ends."""
        one = (prompt, asyncio.get_running_loop().create_future())
        self.open.append(one)
        try:
            fine = await one[1]
        finally:
            self.open.remove(one)
        if not fine:
            return {"error": f"{prompt} is broken", "cost_usd": 0}
        self.paid[prompt] += 1
        return {"text": prompt, "cost_usd": 0.10}


_calls = Asked()


async def asked(request: muster.Request) -> Mapping[str, Any]:
    return await _calls.call(request.prompt)


@muster.workload("test-states-part")
async def part(ctx: muster.Context, spec: Any) -> Any:
    return [(await ctx.call("asked", f"{spec['story']} {word}", key=word)).text for word in "bc"]


@muster.workload("test-states-whole")
async def whole(ctx: muster.Context, spec: Any) -> Any:
    first = (await ctx.call("asked", f"{spec['story']} a", key="a")).text
    return [first, *await ctx.child("part", part, spec)]


class LineageStates(RuleBasedStateMachine):
    """Three programs with one store, and an agent that answers when it is told to."""

    @initialize()
    def open(self) -> None:
        """Open a store in a folder of its own, three times."""
        _calls.__init__()  # type: ignore[misc]
        self.runner, self.stack = asyncio.Runner(), AsyncExitStack()
        self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        (self.folder / "muster.toml").write_text(TOML)
        self.lineages: dict[str, int] = {}  # of every run that is there: which piece of work it is about
        self.over: dict[int, str] = {}  # pieces of work whose completed run was deleted
        self.stories = 0
        self.driven: list[tuple[int, asyncio.Future[Run | MusterError]]] = []
        self.doors = [self.do(self.opened()) for _ in range(ACTORS)]

    async def opened(self) -> tuple[Muster, AsyncExitStack]:
        door = AsyncExitStack()
        found = load_settings(self.folder / "home", folder=self.folder, environment={})
        return await door.enter_async_context(muster.open(settings=found)), door

    async def close(self, actor: int) -> None:
        """End a program without waiting for its calls."""
        opened, door = self.doors[actor]
        opened.stop(Interrupted("the program ends"), now=True)
        await door.aclose()

    def teardown(self) -> None:
        """Close everything, whatever it is at."""
        for actor in range(ACTORS):
            self.do(self.close(actor))
        self.do(self.stack.aclose())
        self.runner.close()

    def do(self, work: Awaitable[T]) -> T:
        """Let everybody live until something is done."""

        async def bounded() -> T:
            async with asyncio.timeout(PATIENCE):
                return await work

        return self.runner.run(bounded())

    @rule(actor=actors)
    def start(self, actor: int) -> None:
        self.stories += 1
        handle = self.do(self.muster(actor).start("test-states-whole", {"story": f"story {self.stories}"}))
        self.lineages[handle.id] = self.stories
        self.drive(actor, handle.wait())

    @precondition(lambda self: bool(self.lineages))
    @rule(actor=actors, number=numbers, total=totals)
    def resume(self, actor: int, number: int, total: int | None) -> None:
        self.resume_all((actor,), self.one(number), total)

    @precondition(lambda self: bool(self.lineages))
    @rule(number=numbers, total=totals)
    def resume_at_once(self, number: int, total: int | None) -> None:
        self.resume_all(range(ACTORS), self.one(number), total)

    def resume_all(self, who: Sequence[int], run: str, total: int | None) -> None:
        """Resume a run by several; those who are not refused get the one run at the end of its lineage."""
        gone, story = self.over.get(self.lineages[run]), self.lineages[run]

        async def race() -> None:
            resuming = (self.muster(actor).resume(run, budget_usd=total) for actor in who)
            found = await asyncio.gather(*resuming, return_exceptions=True)
            for actor, one in zip(who, found, strict=True):
                if isinstance(one, BaseException):
                    assert isinstance(one, Conflict), one
                    assert gone is None or f"completed as run {gone}, which was deleted" in one.message
                else:
                    assert gone is None
                    assert self.lineages.setdefault(one.id, story) == story
                    self.hold(actor, one.wait())
            assert len({one.id for one in found if not isinstance(one, BaseException)}) <= 1

        self.do(race())
        self.do(self.settle())

    @precondition(lambda self: bool(self.lineages))
    @rule(actor=actors, number=numbers)
    def queue(self, actor: int, number: int) -> None:
        """Hand a run to workers, of which there are none: whoever resumes it drives it."""
        run = self.one(number)
        story = self.lineages[run]
        try:
            found = self.do(self.muster(actor).submit_resume(run))
        except Conflict:
            assert story in self.over
        else:
            assert self.lineages.setdefault(found.id, story) == story

    @precondition(lambda self: bool(self.lineages))
    @rule(actor=actors, number=numbers, key=st.sampled_from("ab"))
    def fork(self, actor: int, number: int, key: str) -> None:
        """Begin a new story with what was answered before a key."""
        try:
            made = self.do(self.muster(actor).runs.fork(self.one(number), "a" if key == "a" else "part"))
        except NotFound:
            return  # it has not come so far
        self.stories += 1
        self.lineages[made.id] = self.stories

        async def driven() -> Run:
            return await self.muster(actor).runs.drive(made).wait()

        self.drive(actor, driven())

    @rule(number=numbers, fine=st.sampled_from([True, True, False]))
    def answer(self, number: int, fine: bool) -> None:
        waiting = sorted(_calls.open, key=lambda one: one[0])
        if not waiting:  # no precondition: when calls are open is a matter of time, and rules must not depend on it
            return
        waiting[number % len(waiting)][1].set_result(fine)
        self.do(self.settle())

    @precondition(lambda self: bool(self.lineages))
    @rule(actor=actors, number=numbers)
    def cancel(self, actor: int, number: int) -> None:
        run = self.one(number)
        try:
            self.do(self.muster(actor).runs.cancel(run))
        except Conflict:
            assert self.do(self.muster(actor).runs.find(run)).state in TERMINAL
        self.do(self.settle())

    @precondition(lambda self: bool(self.lineages))
    @rule(actor=actors, number=numbers)
    def delete(self, actor: int, number: int) -> None:
        """Delete a run with its replies, which are paid anew if they are needed."""
        run = self.one(number)
        before, paid = self.do(self.muster(actor).runs.find(run)), self.paid_by(run)
        try:
            self.do(self.muster(actor).runs.delete([run]))
        except Conflict:
            return  # somebody drives or needs it
        _calls.paid -= paid
        story = self.lineages.pop(run)
        if before.state is RunState.COMPLETED:
            self.over[story] = run

    @rule(actor=actors)
    def leave(self, actor: int) -> None:
        """End a program, which interrupts what it drives, and start it again."""

        async def again() -> None:
            await self.close(actor)
            self.doors[actor] = await self.opened()
            await self.settle()

        self.do(again())

    @invariant()
    def work_is_done_once(self) -> None:
        if not hasattr(self, "folder") or not self.lineages:
            return
        paid = dict(_calls.paid)
        with closing(self.database()) as database:
            calls = database.execute(law.CALLS).fetchall()
            names = {law.asked(call): law.digest(law.body(call)) for call in calls}
            audit = {names[prompt]: times for prompt, times in paid.items() if times}
            assert list(law.of_work(database, {"by_digest": audit})) == []

    def muster(self, actor: int) -> Muster:
        return self.doors[actor][0]

    def one(self, number: int) -> str:
        return list(self.lineages)[number % len(self.lineages)]

    def drive(self, actor: int, work: Awaitable[Run]) -> None:
        async def begin() -> None:
            self.hold(actor, work)
            await self.settle()

        self.do(begin())

    def hold(self, actor: int, work: Awaitable[Run]) -> None:
        """Wait in the background for the end of a run."""

        async def end() -> Run | MusterError:
            try:
                return await work
            except Conflict as error:  # another program was faster
                return error

        self.driven.append((actor, asyncio.ensure_future(end())))

    async def settle(self) -> None:
        """Wait until every run that is driven waits for an answer: each of them makes one call at a time."""
        while not self.settled():  # noqa: ASYNC110 - what is waited for happens in several programs
            await asyncio.sleep(0.001)

    def settled(self) -> bool:
        driven = sum(not work.done() for _, work in self.driven)
        return len(_calls.open) == driven and not any(answer.done() for _, answer in _calls.open)

    def database(self) -> sqlite3.Connection:
        found = sqlite3.connect(self.folder / "home" / "muster.db")
        found.row_factory = sqlite3.Row
        return found

    def paid_by(self, run: str) -> Counter[str]:
        """Return the questions whose replies a run has paid for."""
        query = """SELECT request FROM attempts JOIN journal USING (run_id, key) JOIN requests USING (position)
                   WHERE run_id = ? AND attempts.state = 'succeeded'"""
        with closing(self.database()) as database:
            found = [json.loads(request) for (request,) in database.execute(query, (run,))]
        return Counter(request["messages"][0]["text"] for request in found)


def test_a_lineage_has_one_end_whoever_resumes_cancels_forks_and_deletes_its_runs() -> None:
    run_state_machine_as_test(LineageStates, settings=BRIEF)


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_many_lineages_have_one_end_each() -> None:
    run_state_machine_as_test(
        LineageStates, settings=settings(BRIEF, max_examples=60, stateful_step_count=40, derandomize=False)
    )
