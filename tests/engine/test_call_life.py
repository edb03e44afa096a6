"""The life of a call as a model: open, send, answer, settle; and whatever may come between two of its steps.

Two drivers on two hosts share one SQLite file. Each has a clock of its own, so that either can be taken for dead, and a
loop of its own, which after every rule runs as many passes as the rule says: none, a few, or all that there is to do.
"""

import asyncio
import resource
import sqlite3
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import count, product
from pathlib import Path
from typing import ClassVar

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

from muster.domain.canonical import Json
from muster.domain.errors import RetriesExhausted
from muster.domain.run import TERMINAL, NewRun
from muster.engine.context import Context
from muster.testing.clock import FakeClock
from tests.engine.life import MOST, Process, Provider, Snapshot, cancel, read_snapshot, step_of

KEYS = tuple(f"k{number}" for number in range(3))  # one more than may be on the wire: it is reserved and waits
WHO = st.integers(0, 1)
PACES = (0, 1, 2, 4, None)  # passes of each loop; None: until there is nothing to do
PACE = st.sampled_from((*PACES, 0, None))
TURNS = 2000  # that a call may take to come to a step
PATIENCE = 200  # turns that everything may take to come to its end
SECONDS = 120.0  # and that in any case: the threads that write may be slow
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

STEPS = ("opening", "reserved", "gated", "sent", "answered", "refused", "pausing")
INTERRUPTIONS = ("stop", "cut", "cancel", "takeover", "death", "full", "lock")
LOSSES = {"takeover", "death", "full"}  # these may keep an answer from being settled that has arrived


class CallLife(RuleBasedStateMachine):
    """One run of a few calls, and everything that may come between two of their steps."""

    seen: ClassVar[Counter[tuple[str, str]]] = Counter()  # which interruption came at which step

    @initialize(step=st.sampled_from(STEPS), what=st.sampled_from(INTERRUPTIONS), pace=PACE)
    def begin(self, step: str, what: str, pace: int | None) -> None:
        """Make a run, and let its first interruption come at a certain step."""
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "muster.db"
        self.provider = Provider()
        self.returned: dict[str, str] = {}
        self.dead: list[Process] = []
        self.hosts = (f"host {number}" for number in count())
        self.processes = [self.start(FakeClock()), self.start(FakeClock())]
        self.reasons: defaultdict[int, set[str]] = defaultdict(set)  # why a call may be uncertain, by epoch
        self.holder: sqlite3.Connection | None = None
        self.full = False
        first = self.processes[0]
        engine, now = first.house.engine, first.clock.now()
        new = NewRun(id=engine.new_id(), workload="many", spec=None, created_at=now, concurrency=2)
        self.run = first.loop.run_until_complete(engine.create(new)).id
        self.reader = sqlite3.connect(self.path, isolation_level=None)
        self.reader.row_factory = sqlite3.Row
        self.interrupt(0, step, what, pace)

    def start(self, clock: FakeClock) -> Process:
        process = Process(next(self.hosts), clock)
        process.open(Path(self.folder.name), self.provider, self.newest_attempt, self.work)
        return process

    async def work(self, process: Process, ctx: Context) -> Json:
        found = self.look()
        if found.host == process.host:
            process.epoch = found.epoch

        async def one(_: int, key: str) -> str:
            text = (await ctx.call("a", key, key=key)).text
            assert self.returned.setdefault(key, text) == text  # the reply to a call is one and the same for ever
            return text

        return [text async for text in ctx.map(one, KEYS)]

    # What may happen.

    @rule(who=WHO, pace=PACE)
    def drive(self, who: int, pace: int | None) -> None:
        """Claim the run; refused while another driver is alive."""
        self.processes[who].drive(self.run)
        self.let(pace)

    @precondition(lambda self: self.holder is None and not self.full)
    @rule(who=WHO, step=st.sampled_from(STEPS), what=st.sampled_from(INTERRUPTIONS), pace=PACE)
    def interrupt(self, who: int, step: str, what: str, pace: int | None) -> None:
        """Bring a call to a step, if the run still has one to make, and let something come right after it."""
        driver = self.bring_to(step, who)
        if what in ("cancel", "lock"):
            getattr(self, what)(pace)
        elif what == "full":
            self.fill(0, pace)
        elif what == "takeover":
            self.take_over(1 - driver, pace)
        else:
            {"stop": self.stop, "cut": self.cut, "death": self.die}[what](driver, pace)

    @rule(who=WHO, pace=PACE)
    def take_over(self, who: int, pace: int | None) -> None:
        """Drive the run with a clock on which every lease of another host is over."""
        self.strike("takeover", [process for process in self.processes if process is not self.processes[who]])
        ahead = max(process.clock.now() for process in (*self.processes, *self.dead)) + 20
        self.processes[who].clock.advance(ahead - self.processes[who].clock.now())
        self.drive(who, pace)

    @rule(who=WHO, pace=PACE)
    def beat(self, who: int, pace: int | None) -> None:
        """Let the heartbeat and pauses before a retry of one driver come to their end."""
        self.processes[who].clock.advance(2.0)
        self.let(pace)

    @rule(pace=PACE)
    def go_on(self, pace: int | None) -> None:
        """Let time pass in which nothing happens."""
        self.let(pace)

    @rule(number=st.integers(0, 9), cost=st.integers(0, MOST), pace=PACE)
    def answer(self, number: int, cost: int, pace: int | None) -> None:
        self.provider.finish(number, cost)
        self.let(pace)

    @rule(number=st.integers(0, 9), pace=PACE)
    def refuse(self, number: int, pace: int | None) -> None:
        self.provider.refuse(number)
        self.let(pace)

    @rule(pace=PACE)
    def turn_gate(self, pace: int | None) -> None:
        """Shut the provider's gate before what is about to be sent, or open it."""
        if self.provider.gate:
            self.provider.shut()
        else:
            self.provider.let_in()
        self.let(pace)

    @rule(who=WHO, pace=PACE)
    def stop(self, who: int, pace: int | None) -> None:
        """Press Ctrl-C once."""
        self.strike("stop", [self.processes[who]])
        self.processes[who].stop(now=False)
        self.let(pace)

    @rule(who=WHO, pace=PACE)
    def cut(self, who: int, pace: int | None) -> None:
        """Press Ctrl-C a second time."""
        self.strike("cut", [self.processes[who]])
        self.processes[who].stop(now=True)
        self.let(pace)

    @precondition(lambda self: self.holder is None and not self.full)
    @rule(pace=PACE)
    def cancel(self, pace: int | None) -> None:
        """Cancel the run from a third process; its driver learns of it with its next heartbeat, which is due."""
        if self.look().state not in TERMINAL:
            self.strike("cancel", self.processes)
            asyncio.run(cancel(self.path, self.run, self.processes[0].clock.now()))
        for process in self.processes:
            process.clock.advance(2.0)
        self.let(pace)

    @precondition(lambda self: not self.full)  # never on what threads do: rules must be the same in every run
    @rule(who=WHO, pace=PACE)
    def die(self, who: int, pace: int | None) -> None:
        """Kill a driver; another process is started in its place, with the same clock."""
        process = self.processes[who]
        if not process.busy:
            return
        self.strike("death", [process])
        process.die()
        self.dead.append(process)
        self.processes[who] = self.start(FakeClock(process.clock.now()))
        self.let(pace)

    @precondition(lambda self: self.holder is None)
    @rule(pace=PACE)
    def lock(self, pace: int | None) -> None:
        """Another process holds the write lock, as long as nobody unlocks."""
        self.strike("lock", self.processes)
        self.holder = sqlite3.connect(self.path, isolation_level=None, timeout=60)
        self.holder.execute("BEGIN IMMEDIATE")
        self.let(pace)

    @precondition(lambda self: self.holder is not None)
    @rule(pace=PACE)
    def unlock(self, pace: int | None) -> None:
        assert self.holder is not None
        self.holder.rollback()
        self.holder.close()
        self.holder = None
        self.let(pace)

    @precondition(lambda self: not self.full)
    @rule(room=st.integers(0, 30_000), pace=PACE)
    def fill(self, room: int, pace: int | None) -> None:
        """The disk takes only so many bytes more."""
        self.strike("full", self.processes)
        self.full = True
        files = [self.path, self.path.with_name("muster.db-wal")]
        size = max(file.stat().st_size for file in files if file.exists())
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, resource.RLIM_INFINITY))
        self.let(pace)

    @precondition(lambda self: self.full)
    @rule(pace=PACE)
    def make_room(self, pace: int | None) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, UNLIMITED)
        self.full = False
        self.let(pace)

    # What must hold after each step.

    @invariant()
    def no_amount_is_below_zero_and_what_is_reserved_belongs_to_an_open_attempt(self) -> None:
        found = self.look()
        assert all(attempt["cost"] >= 0 for attempt in found.attempts)
        started = sum(attempt["reserved"] for attempt in found.attempts if attempt["state"] == "started")
        assert all(budget["reserved"] == started for budget in found.budgets)

    @invariant()
    def a_reply_that_was_returned_is_on_the_disk(self) -> None:
        replies = self.look().replies
        for key, text in self.returned.items():
            assert replies[key] == text
            assert text in self.provider.said[key]

    @invariant()
    def what_was_paid_is_a_reply_or_may_still_become_known(self) -> None:
        """As far as attempts are settled: those that are open may hold an answer that is on its way."""
        counts = self.look().count("succeeded", "uncertain", "started")
        assert all(paid <= counts[key] for key, paid in self.provider.paid.items())

    @invariant()
    def what_is_uncertain_has_a_reason_and_is_booked_as_its_reservation(self) -> None:
        """One Ctrl-C, a lock or a pause makes nothing uncertain, nor does a cut after the answer has arrived."""
        for one in self.look().attempts:
            if one["state"] == "uncertain":
                assert (one["cost"], one["lane"]) == (one["reserved"], "uncertain")
                reasons = self.reasons[one["epoch"]]
                assert reasons, dict(one)
                assert (one["key"], one["n"]) not in self.provider.delivered or reasons & LOSSES, (dict(one), reasons)

    def check_now(self) -> None:
        """Check all of these outside of the play, too."""
        self.no_amount_is_below_zero_and_what_is_reserved_belongs_to_an_open_attempt()
        self.a_reply_that_was_returned_is_on_the_disk()
        self.what_was_paid_is_a_reply_or_may_still_become_known()
        self.what_is_uncertain_has_a_reason_and_is_booked_as_its_reservation()

    def teardown(self) -> None:
        if not hasattr(self, "reader"):
            return
        try:
            self.end()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, UNLIMITED)
            self.reader.close()
            for process in (*self.processes, *self.dead):
                process.close()
            self.folder.cleanup()

    def end(self) -> None:
        """Let everything come to its end, and check the books."""
        if self.full:
            self.make_room(None)
        if self.holder is not None:
            self.unlock(None)
        self.provider.let_in()
        self.serve_until_let_go()
        for _ in range(PATIENCE):
            if self.look().state in TERMINAL:
                break
            self.take_over(0, None)
            self.serve_until_let_go()
        assert self.look().state in TERMINAL, self.look()
        while self.provider.open:
            self.provider.finish(0, 10)
        self.check_the_end()

    def check_the_end(self) -> None:
        self.check_now()
        found = self.look()
        paid_at_most, succeeded = found.count("succeeded", "uncertain"), found.count("succeeded")
        assert not found.count("started")
        assert all(budget["reserved"] == 0 for budget in found.budgets)
        for key in KEYS:
            assert succeeded[key] <= self.provider.paid[key] <= paid_at_most[key]
        assert found.state != "failed" or found.reason == RetriesExhausted.code, found.reason
        if found.state == "completed":
            assert found.replies == self.returned
        sums: Counter[str] = Counter()
        for attempt in found.attempts:
            sums[attempt["lane"]] += attempt["cost"]
            self.check_delivered(attempt)
        for budget in found.budgets:
            assert all(budget[lane] == sums[lane] for lane in ("billed", "imputed", "uncertain"))

    def check_delivered(self, attempt: sqlite3.Row) -> None:
        """An answer that arrived in a process that neither died nor had a full disk is booked as what it cost."""
        cost = self.provider.delivered.get((attempt["key"], attempt["n"]))
        if cost is not None and not self.reasons[attempt["epoch"]] & {"death", "full"}:
            assert (attempt["state"], attempt["lane"], attempt["cost"]) == ("succeeded", "billed", cost)

    # What the rules use.

    def bring_to(self, step: str, who: int) -> int:
        """Let a driver go on pass by pass until one of its calls is at a step; returns which one drives."""
        if step == "gated":
            self.provider.shut()
        elif step != "opening":
            self.provider.let_in()
        holder = self.look().host
        driver = next((n for n, process in enumerate(self.processes) if process.host == holder), who)
        if holder not in (None, self.processes[driver].host):
            self.take_over(driver, 0)  # from one that is dead
        self.processes[driver].drive(self.run)
        for _ in range(TURNS):
            if step == "answered":
                self.provider.finish(0, 10)
            elif step in ("refused", "pausing"):
                self.provider.refuse(0)
            if step in self.steps_of(self.processes[driver], self.look()) or not self.processes[driver].busy:
                break
            self.processes[driver].turn()
            self.mind_reasons()
        return driver

    def steps_of(self, process: Process, found: Snapshot) -> list[str]:
        """Return where the calls are that a process has under way as the driver of the run."""
        if not process.busy or (process.epoch, process.host) != (found.epoch, found.host):
            return []
        steps = [step_of(process.steps.get(key), found.started(key, found.epoch)) for key in KEYS]
        return [step for step in steps if step is not None]

    def strike(self, interruption: str, processes: Iterable[Process]) -> None:
        """Write down at which steps the calls of these processes are when something happens to them."""
        found = self.look()
        for process in processes:
            if process.host == found.host and interruption in ("cut", "death"):
                self.reasons[found.epoch].add(interruption)
            self.seen.update((step, interruption) for step in set(self.steps_of(process, found)))

    def let(self, pace: int | None) -> None:
        """Let every process go on so far."""
        self.mind_reasons()
        for _ in range(6 if pace is None else pace):
            for process in self.processes:
                process.run(0.001) if pace is None else process.turn()
                self.mind_reasons()  # after each turn: another driver may claim the run in the next one

    def mind_reasons(self) -> None:
        """Write down that the driver is on a full disk, is asked to cancel, or is about to be taken over."""
        found = self.look()
        if self.full:  # also for one that was replaced, and still has an answer to settle
            for epoch in (found.epoch, *(process.epoch for process in self.processes)):
                self.reasons[epoch].add("full")
        if found.cancel:  # also one that came while this driver was about to claim the run
            self.reasons[found.epoch].add("cancel")
        others = [process for process in self.processes if process.busy and process.host != found.host]
        if found.host is not None and any(found.lease_until < process.clock.now() for process in others):
            self.reasons[found.epoch].add("takeover")

    def serve_until_let_go(self) -> None:
        """Answer what is asked, and let the clocks go on, until nobody drives the run any more."""
        until = time.monotonic() + SECONDS
        for turn in count():
            if not any(process.busy for process in self.processes):
                return
            if turn > PATIENCE and time.monotonic() > until:
                raise AssertionError("a driver does not let go of the run")
            while self.provider.open:
                self.provider.finish(0, 10)
            for process in self.processes:
                process.clock.advance(2.0)
            self.let(None)

    def newest_attempt(self, key: str, epoch: int) -> int:
        return int(max(one["n"] for one in self.look().attempts if (one["key"], one["epoch"]) == (key, epoch)))

    def look(self) -> Snapshot:
        return read_snapshot(self.reader)


def counting(seen: Counter[tuple[str, str]]) -> type[CallLife]:
    """Make the model with a count of its own."""
    return type("CountedCallLife", (CallLife,), {"seen": seen})


BRIEF = settings(
    max_examples=8,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate,),  # threads are at work, so a smaller example may be another one
    suppress_health_check=list(HealthCheck),
)


def test_a_call_is_settled_once_and_paid_as_booked_whatever_comes_between_its_steps() -> None:
    seen: Counter[tuple[str, str]] = Counter()
    run_state_machine_as_test(counting(seen), settings=BRIEF)
    assert len(seen) >= len(STEPS)  # else nothing was under way when something came


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_many_lives_of_calls_are_settled_once_and_paid_as_booked() -> None:
    seen: Counter[tuple[str, str]] = Counter()
    many = settings(BRIEF, max_examples=200, stateful_step_count=25, derandomize=False)
    run_state_machine_as_test(counting(seen), settings=many)
    for step in STEPS:
        print(f"{step}: " + ", ".join(f"{seen[step, what]} {what}" for what in INTERRUPTIONS))
    assert [pair for pair in product(STEPS, INTERRUPTIONS) if not seen[pair]] == []


@pytest.mark.chaos
@pytest.mark.parametrize("what", INTERRUPTIONS)
def test_an_interruption_at_each_step_of_a_call_leaves_it_settled_once_and_paid_as_booked(what: str) -> None:
    for step, pace in product(STEPS, PACES):
        seen: Counter[tuple[str, str]] = Counter()
        life = counting(seen)()
        try:
            life.begin(step, what, pace)
            life.check_now()
        finally:
            life.teardown()
        assert seen[step, what], (step, seen)
