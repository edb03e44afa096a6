"""The life of a call as a model: open, send, answer, settle; stops, cancels, takeovers, locks, full disks in between.

Two drivers on two hosts share one SQLite file; each has a clock of its own, so that either can be taken for dead.
"""

import asyncio
import contextlib
import resource
import sqlite3
import tempfile
from collections import Counter, defaultdict
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from muster.agents.processes.identity import this_process
from muster.domain.call import Reply, Request
from muster.domain.canonical import Json
from muster.domain.errors import Interrupted, Overloaded
from muster.domain.run import TERMINAL, Run
from muster.engine.context import Context
from muster.testing.clock import FakeClock
from tests.engine.house import House, Puppet, house, reply

KEYS = 3
WHO = st.integers(0, 1)
MOST = 100  # microdollars that are reserved for an attempt
PATIENCE = 200  # turns that everything may take to come to its end
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


class Provider:
    """Takes requests, and answers or refuses them when the model says so; whatever it answers is paid."""

    def __init__(self) -> None:
        self.open: list[tuple[str, asyncio.Future[Reply]]] = []
        self.paid: Counter[str] = Counter()
        self.said: defaultdict[str, set[str]] = defaultdict(set)

    async def answer(self, request: Request, _: int) -> Reply:
        waiter: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.open.append((request.messages[-1].text, waiter))
        return await waiter

    def finish(self, number: int, cost: int) -> None:
        """Answer a request, if there is one; also one whose client has gone is paid."""
        if not self.open:
            return
        key, waiter = self.open.pop(number % len(self.open))
        self.paid[key] += 1
        text = f"{key} for the {self.paid[key]}. time"
        self.said[key].add(text)
        if not waiter.done():
            waiter.set_result(reply(text, cost))

    def refuse(self, number: int) -> None:
        """Refuse a request, if there is one; it costs nothing."""
        if not self.open:
            return
        _, waiter = self.open.pop(number % len(self.open))
        if not waiter.done():
            waiter.set_exception(Overloaded("full"))


class CallLife(RuleBasedStateMachine):
    """One run of a few calls, and everything that may come between two of their steps."""

    @initialize()
    def begin(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "muster.db"
        self.provider = Provider()
        self.returned: dict[str, str] = {}
        self.driving: list[asyncio.Task[Run] | None] = [None, None]
        self.closing = AsyncExitStack()
        self.clocks: list[FakeClock] = []
        self.houses: list[House] = []
        self.holder: sqlite3.Connection | None = None
        self.full = False
        self.loop.run_until_complete(self._open())

    async def _open(self) -> None:
        for host in ("here", "there"):
            clock = FakeClock()
            driver = replace(this_process(), host=host)
            agent = Puppet(self.provider.answer, most=MOST)
            opened = house(Path(self.folder.name), clock=clock, driver=driver, a=agent)
            self.houses.append(await self.closing.enter_async_context(opened))
            self.clocks.append(clock)
            self.houses[-1].workloads.workload("work")(self.work)
        self.run = (await self.houses[0].create(self.work, workload="many", concurrency=2)).id
        self.houses[1].workloads.workload("many")(self.work)
        self.reader = sqlite3.connect(self.path)

    async def work(self, ctx: Context, spec: Any) -> Json:
        async def one(_: int, number: int) -> str:
            key = f"k{number}"
            text = (await ctx.call("a", key, key=key)).text
            assert self.returned.setdefault(key, text) == text  # the reply to a call is one and the same for ever
            return text

        return [text async for text in ctx.map(one, range(KEYS))]

    # What may happen.

    @rule(who=WHO)
    def drive(self, who: int) -> None:
        """Claim the run; refused while another driver is alive."""
        if self.driving[who] is None or self.driving[who].done():  # type: ignore[union-attr]
            task = self.loop.create_task(self.houses[who].engine.drive(self.run))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            self.driving[who] = task
        self.breathe()

    @rule(who=WHO)
    def take_over(self, who: int) -> None:
        """Drive the run with a clock on which every lease of the other host is over."""
        ahead = max(clock.now() for clock in self.clocks) + 20 - self.clocks[who].now()
        self.clocks[who].advance(ahead)
        self.drive(who)

    @rule(who=WHO)
    def beat(self, who: int) -> None:
        """Let the heartbeat and pauses before a retry of one driver come to their end."""
        self.clocks[who].advance(2.0)
        self.breathe()

    @rule(number=st.integers(0, 9), cost=st.integers(0, MOST))
    def answer(self, number: int, cost: int) -> None:
        self.provider.finish(number, cost)
        self.breathe()

    @rule(number=st.integers(0, 9))
    def refuse(self, number: int) -> None:
        self.provider.refuse(number)
        self.breathe()

    @rule(who=WHO, now=st.booleans())
    def stop(self, who: int, now: bool) -> None:
        """Ctrl-C: once, or a second time."""
        self.loop.call_soon(partial(self.houses[who].engine.stop_all, Interrupted("stop"), now=now))
        self.breathe()

    @precondition(lambda self: self.holder is None and not self.full)
    @rule(who=WHO)
    def cancel(self, who: int) -> None:
        if self.state() not in TERMINAL:
            house_ = self.houses[who]
            self.loop.run_until_complete(_ignore(house_.store.desk.cancel(self.run, self.clocks[who].now())))
        self.breathe()

    @precondition(lambda self: self.holder is None)
    @rule()
    def lock(self) -> None:
        """Another process holds the write lock, as long as nobody unlocks."""
        self.holder = sqlite3.connect(self.path, isolation_level=None, timeout=10)
        self.holder.execute("BEGIN IMMEDIATE")
        self.breathe()

    @precondition(lambda self: self.holder is not None)
    @rule()
    def unlock(self) -> None:
        assert self.holder is not None
        self.holder.rollback()
        self.holder.close()
        self.holder = None
        self.breathe()

    @precondition(lambda self: not self.full)
    @rule(room=st.integers(0, 30_000))
    def fill(self, room: int) -> None:
        """The disk takes only so many bytes more."""
        self.full = True
        files = [self.path, self.path.with_name("muster.db-wal")]
        size = max(file.stat().st_size for file in files if file.exists())
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, resource.RLIM_INFINITY))
        self.breathe()

    @precondition(lambda self: self.full)
    @rule()
    def make_room(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, UNLIMITED)
        self.full = False
        self.breathe()

    # What must hold after each step.

    @invariant()
    def no_amount_is_below_zero_and_what_is_reserved_belongs_to_an_open_attempt(self) -> None:
        attempts = self.rows("SELECT state, cost, reserved FROM attempts")
        assert all(cost >= 0 for _, cost, _ in attempts)
        started = sum(reserved for state, _, reserved in attempts if state == "started")
        for (reserved,) in self.rows("SELECT reserved FROM budgets"):
            assert reserved == started

    @invariant()
    def a_reply_that_was_returned_is_on_the_disk(self) -> None:
        replies = self.replies()
        for key, text in self.returned.items():
            assert replies[key] == text
            assert text in self.provider.said[key]

    @invariant()
    def what_was_paid_is_a_reply_or_may_still_become_known(self) -> None:
        """As far as attempts are settled: those that are open may hold an answer that is on its way."""
        for key, count in self.attempts("succeeded", "uncertain", "started").items():
            assert self.provider.paid[key] <= count

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        try:
            self.end()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, UNLIMITED)
            self.reader.close()
            self.loop.run_until_complete(self._close())
            self.loop.close()
            self.folder.cleanup()

    async def _close(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self.closing.aclose()

    def end(self) -> None:
        """Let everything come to its end, and check the books."""
        if self.full:
            self.make_room()
        if self.holder is not None:
            self.unlock()
        self.serve_until_let_go()
        for _ in range(PATIENCE):
            if self.state() in TERMINAL:
                break
            self.take_over(0)
            self.serve_until_let_go()
        assert self.state() in TERMINAL, self.rows("SELECT * FROM runs")
        while self.provider.open:
            self.provider.finish(0, 10)
        self.check_the_end()

    def check_the_end(self) -> None:
        attempts = self.attempts("succeeded", "uncertain")
        succeeded = self.attempts("succeeded")
        assert not self.attempts("started")
        assert all(reserved == 0 for (reserved,) in self.rows("SELECT reserved FROM budgets"))
        for key in (f"k{number}" for number in range(KEYS)):
            assert succeeded[key] <= self.provider.paid[key] <= attempts[key]
        if self.state() == "completed":
            assert self.replies() == self.returned
        lanes = dict(self.rows("SELECT lane, SUM(cost) FROM attempts GROUP BY lane"))
        for row in self.rows("SELECT billed, imputed, uncertain FROM budgets"):
            assert row == tuple(lanes.get(lane, 0) for lane in ("billed", "imputed", "uncertain"))

    # What the rules use.

    def serve_until_let_go(self) -> None:
        """Answer what is asked, and let the clocks go on, until nobody drives the run any more."""
        for _ in range(PATIENCE):
            if all(task is None or task.done() for task in self.driving):
                return
            while self.provider.open:
                self.provider.finish(0, 10)
            for clock in self.clocks:
                clock.advance(2.0)
            self.breathe()
        raise AssertionError("a driver does not let go of the run")

    def breathe(self) -> None:
        """Let tasks and the writer's thread do what they can do now."""

        async def wait() -> None:
            for _ in range(6):
                await asyncio.sleep(0.001)

        self.loop.run_until_complete(wait())

    def rows(self, sql: str) -> list[Any]:
        return self.reader.execute(sql).fetchall()

    def state(self) -> str:
        ((state,),) = self.rows("SELECT state FROM runs")
        return str(state)

    def attempts(self, *states: str) -> Counter[str]:
        return Counter(key for key, state in self.rows("SELECT key, state FROM attempts") if state in states)

    def replies(self) -> dict[str, str]:
        found = self.rows(
            "SELECT key, json_extract(outcome, '$.text') FROM journal JOIN outcomes USING (position) "
            "WHERE kind = 'call' AND state = 'done'"
        )
        return dict(found)


async def _ignore(work: Any) -> None:
    with contextlib.suppress(Exception):
        await work


BRIEF = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate,),  # threads are at work, so a smaller example may be another one
    suppress_health_check=list(HealthCheck),
)


def test_a_call_is_settled_once_and_paid_as_booked_whatever_comes_between_its_steps() -> None:
    run_state_machine_as_test(CallLife, settings=BRIEF)


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_many_lives_of_calls_are_settled_once_and_paid_as_booked() -> None:
    run_state_machine_as_test(CallLife, settings=settings(BRIEF, max_examples=600, derandomize=False))
