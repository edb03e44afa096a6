"""The states of tasks under any order of commands: no illegal step, terminal is final, cancel wins over a late result,
a canceled one never starts, and one whose dependency was not done fails with its name."""

import asyncio
import tempfile
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import muster
from muster.app.pool.driver import DependencyFailed
from muster.app.pool.task_queries import Task
from muster.domain.errors import Conflict
from muster.domain.run import Run
from muster.domain.task import TaskState
from muster.pool.tasks import TaskSpec
from muster.pool.workload import TaskRejected
from muster.settings import load_settings
from muster.store.base import SlotRecord
from tests.pool import held

S = TaskState
# What a command or a driver may make of a state; to stay is always allowed.
ALLOWED = {
    S.PENDING: {S.RUNNING, S.PENDING_REVIEW, S.COMPLETED, S.FAILED, S.CANCELED},
    S.RUNNING: {S.PENDING, S.PENDING_REVIEW, S.COMPLETED, S.FAILED, S.CANCELED},
    S.PENDING_REVIEW: {S.PENDING, S.RUNNING, S.COMPLETED, S.FAILED, S.CANCELED},
    S.COMPLETED: set(),
    S.FAILED: set(),  # but by a retry
    S.CANCELED: set(),  # but by a retry
}
OVER = {S.COMPLETED, S.FAILED, S.CANCELED}
NOT_DONE = {S.FAILED, S.CANCELED}
PATIENCE = 60.0
TOML = '[pool]\nslots = 2\nagent = "held"\n' + held.TOML
MAX_REJECTIONS = 2
T = TypeVar("T")
numbers = st.integers(0, 7)


@dataclass
class Known:
    """A task as it was last seen."""

    id: str
    word: str  # with which its prompt begins
    review: bool
    after: tuple[str, ...]
    state: TaskState = S.PENDING
    begun: int = 0  # calls of its agent, when it was last seen


class TaskStates(RuleBasedStateMachine):
    """Tasks in a real store, with a driver that comes and goes and an agent that answers when it is told to."""

    @initialize()
    def open(self) -> None:
        """Open a store in a folder of its own, and once more as if from another terminal."""
        held.calls.reset()
        self.runner, self.stack = asyncio.Runner(), AsyncExitStack()
        self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        (self.folder / "muster.toml").write_text(TOML)
        settings = load_settings(folder=self.folder, environment={})
        self.m = self.do(self.stack.enter_async_context(muster.open(settings=settings)))
        self.elsewhere = self.do(self.stack.enter_async_context(muster.open(settings=settings)))
        self.known: list[Known] = []
        self.serving: asyncio.Task[None] | None = None
        self.drained = False

    def teardown(self) -> None:
        """End the driver, whatever it is at."""
        if self.serving is not None:
            self.do(self._drain())
        self.do(self.stack.aclose())
        self.runner.close()

    def do(self, work: Awaitable[T]) -> T:
        """Let the process live until something is done."""

        async def bounded() -> T:
            async with asyncio.timeout(PATIENCE):
                return await work

        return self.runner.run(bounded())

    @rule(review=st.booleans(), priority=st.integers(0, 2), after=st.none() | numbers, late=st.booleans())
    def submit(self, review: bool, priority: int, after: int | None, late: bool) -> None:
        needs = () if after is None or not self.known else (self.one(after).id,)
        word = f"t{len(self.known)}"
        spec = TaskSpec(prompt=word, review=review, max_rejections=MAX_REJECTIONS, priority=priority, after=needs)
        task = self.attempt(self.m.pool.tasks.submit(spec), allowed=not self.drained)
        if task is not None:
            assert task.state is S.PENDING
            self.known.append(Known(id=task.id, word=word, review=review, after=needs))
            if late:
                held.calls.ends_late.add(word)
        self.do(self.settle())

    @precondition(lambda self: self.serving is None)
    @rule()
    def start(self) -> None:
        async def begin() -> asyncio.Task[None]:
            serving = asyncio.create_task(self.m.pool.driver().serve())
            while await self.m.pool.living_driver() is None:
                await self.m._backend.store.changes.wait(0.2, self.m._backend.store.changes.commits)
            return serving

        self.serving, self.drained = self.do(begin()), False
        self.do(self.settle())

    @precondition(lambda self: self.serving is not None)
    @rule()
    def drain(self) -> None:
        """Stop the driver; what is at work is interrupted."""
        at_work = self.at_work()
        self.do(self._drain())
        self.do(self.look())
        assert {one.state for one in at_work} <= {S.PENDING}
        assert {slot.state for slot in self.do(self.m.pool.slots())} == {"stopped"}

    async def _drain(self) -> None:
        assert self.serving is not None
        await self.elsewhere.pool.drain(0.0)
        await self.serving
        self.serving, self.drained = None, True

    @precondition(lambda self: self.serving is not None)
    @rule()
    def stop(self) -> None:
        """Stop the driver gently: calls at work are answered first."""

        async def end(serving: asyncio.Task[None]) -> None:
            serving.cancel()
            while not serving.done():
                for word in list(held.calls.open):
                    held.calls.answer(word)
                await asyncio.wait({serving}, timeout=0.02)

        assert self.serving is not None
        self.do(end(self.serving))
        self.serving = None
        self.do(self.look())
        assert not self.at_work()

    @rule(number=numbers, fails=st.booleans())
    def answer(self, number: int, fails: bool) -> None:
        if (one := self.open_one(number)) is None:
            return
        held.calls.answer(one.word, fails=fails)
        self.do(self.settle())
        assert one.state is (S.FAILED if fails else S.PENDING_REVIEW if one.review else S.COMPLETED)

    @rule(number=numbers, fails=st.booleans(), here=st.booleans())
    def cancel_before_its_result(self, number: int, fails: bool, here: bool) -> None:
        """Cancel a task at work, whose agent answers before anybody has heard of that."""
        if (one := self.open_one(number)) is None:
            return

        async def race() -> None:
            canceling = asyncio.ensure_future((self.m if here else self.elsewhere).pool.tasks.cancel(one.id))
            while not canceling.done() and not (await self.run_of(one)).cancel_requested:
                await self.m._backend.store.changes.wait(0.2, self.m._backend.store.changes.commits)
            if one.word in held.calls.open:
                held.calls.answer(one.word, fails=fails)
            await canceling

        self.do(race())
        self.do(self.settle())
        assert one.state is S.CANCELED

    @precondition(lambda self: bool(self.known))
    @rule(number=numbers, here=st.booleans())
    def cancel(self, number: int, here: bool) -> None:
        one = self.one(number)
        before = one.state
        canceling = (self.m if here else self.elsewhere).pool.tasks.cancel(one.id)
        self.attempt(canceling, allowed=before not in OVER - {S.CANCELED})
        self.do(self.settle())
        assert one.state is (before if before in OVER else S.CANCELED)

    @precondition(lambda self: bool(self.known))
    @rule(number=numbers, approved=st.booleans())
    def review(self, number: int, approved: bool) -> None:
        one = self.one(number)
        waits = one.state is S.PENDING_REVIEW
        tasks = self.elsewhere.pool.tasks
        self.attempt(tasks.approve(one.id) if approved else tasks.reject(one.id, "again"), allowed=waits)
        self.do(self.settle())
        if approved and waits and self.serving is not None and one.state is not S.PENDING:
            assert one.state is S.COMPLETED

    @precondition(lambda self: bool(self.known))
    @rule(number=numbers)
    def retry(self, number: int) -> None:
        one = self.one(number)
        rejected = self.do(self.m.pool.tasks.get(one.id)).run.ended_reason == TaskRejected.code
        allowed = one.state in NOT_DONE and not rejected and not self.drained
        if self.attempt(self.m.pool.tasks.retry(one.id), allowed=allowed) is not None:
            one.state = S.PENDING
        self.do(self.settle())

    @precondition(lambda self: bool(self.known))
    @rule(slot=st.sampled_from(["slot-1", "slot-2"]))
    def claim(self, slot: str) -> None:
        slots = {record.name: record for record in self.do(self.slots())}
        if slot not in slots:
            return
        claimed = self.do(self.m.pool.tasks.claim(slot))
        if claimed is not None:
            assert slots[slot].run is None
            assert self.find(claimed.id).state is S.PENDING
        self.do(self.settle())

    def attempt(self, work: Awaitable[Task], *, allowed: bool) -> Task | None:
        """Do what is a conflict unless it is allowed; what is not allowed changes nothing."""
        try:
            task = self.do(work)
        except Conflict:
            assert not allowed
            return None
        assert allowed
        return task

    def one(self, number: int) -> Known:
        return self.known[number % len(self.known)]

    def open_one(self, number: int) -> Known | None:
        """Return a task at work; whether there is one depends on the clock, and so is no precondition."""
        at_work = sorted(self.at_work(), key=lambda one: one.word)
        return at_work[number % len(at_work)] if at_work else None

    def find(self, task: str) -> Known:
        return next(one for one in self.known if one.id == task)

    def at_work(self) -> list[Known]:
        return [one for one in self.known if one.word in held.calls.open]

    async def run_of(self, one: Known) -> Run:
        return (await self.m.pool.tasks.get(one.id)).run

    async def slots(self) -> Sequence[SlotRecord]:
        return await self.m._backend.store.pool.slots()

    async def settle(self) -> None:
        """Wait until the driver has done all that it can, and look at every step."""
        await self.look()
        while self.serving is not None and await self.unsettled():
            assert not self.serving.done(), self.serving.result()
            await self.m._backend.store.changes.wait(0.2, self.m._backend.store.changes.commits)
            await self.look()

    async def unsettled(self) -> bool:
        """Return whether there is anything that the driver has to do."""
        if any(one.state in OVER for one in self.at_work()):
            return True  # a cancel that has not reached the agent
        free = 0
        for slot in await self.slots():
            one = None if slot.run is None else self.find((await self.m.pool.tasks.get(slot.run)).id)
            if one is not None and one.word not in held.calls.open:
                return True
            free += one is None
        if any(one.state is S.RUNNING and one.word not in held.calls.open for one in self.known):
            return True
        return free > 0 and any(one.state is S.PENDING and not self.waits(one) for one in self.known)

    def waits(self, one: Known) -> bool:
        """Return whether a task waits for others that are not over."""
        states = [self.find(name).state for name in one.after]
        return not NOT_DONE & set(states) and any(state is not S.COMPLETED for state in states)

    async def look(self) -> None:
        """See where every task stands, and that it came there by a legal step."""
        for one in self.known:
            task = await self.m.pool.tasks.get(one.id)
            self.check_step(one, task)
            one.state, one.begun = task.state, held.calls.begun.count(one.word)

    def check_step(self, one: Known, task: Task) -> None:
        before, begun = one.state, held.calls.begun.count(one.word)
        assert task.state is before or task.state in ALLOWED[before], (one.word, before, task.state)
        if before in OVER:
            assert begun == one.begun, f"{one.word} is {before} and was begun again"
        if begun > one.begun:
            assert {self.find(name).state for name in one.after} <= {S.COMPLETED}, f"{one.word} did not wait"
        if task.run.ended_reason == DependencyFailed.code and task.state is not before:
            message = str((task.run.error or {})["message"])
            assert any(name in message and self.find(name).state in NOT_DONE for name in one.after), message
        elif task.state is S.FAILED and before is S.PENDING:
            assert begun > 0, f"{one.word} failed and was not begun"


def test_no_order_of_commands_makes_an_illegal_step() -> None:
    few = settings(max_examples=12, stateful_step_count=20, deadline=None)
    run_state_machine_as_test(TaskStates, settings=few)
