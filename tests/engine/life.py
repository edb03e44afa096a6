"""Doubles for the model of a call's life: a provider behind a gate, and drivers that run only when they are let.

Each driver has an event loop of its own, as a process has, and one store file is shared. A loop that is not run is a
process that stands still; one that is never run again, and whose store is closed, is a process that died.
"""

import asyncio
import contextlib
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.agents.base import OnDelta
from muster.agents.processes.system import this_process
from muster.domain.agent import Quote, Timeouts
from muster.domain.call import Reply, Request
from muster.domain.canonical import Json
from muster.domain.errors import Conflict, Interrupted, Overloaded
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import Run
from muster.engine.context import Context
from muster.store.sqlite.store import open_sqlite
from muster.testing.clock import FakeClock
from tests.engine.house import PUPPET, House, house, reply

MOST = 100  # microdollars that are reserved for an attempt
GOODBYE = 2.0  # seconds for what is left of a process when its test is over

REPLIES = """
SELECT key, json_extract(outcome, '$.text') AS text FROM journal JOIN outcomes USING (position)
WHERE kind = 'call' AND state = 'done'
"""

Work = Callable[["Process", Context], Awaitable[Json]]


@dataclass(eq=False)
class Ask:
    """One request at the provider."""

    process: "Process"
    key: str
    attempt: int
    waiter: "asyncio.Future[Reply]"


class Provider:
    """Takes requests when its gate is open, answers or refuses them when the model says so; what it answers is paid."""

    def __init__(self) -> None:
        self.open: list[Ask] = []
        self.gate = True
        self.held: list[asyncio.Future[None]] = []
        self.paid: Counter[str] = Counter()
        self.said: defaultdict[str, set[str]] = defaultdict(set)
        self.delivered: dict[tuple[str, int], int] = {}  # what answers cost that an agent has given to its engine

    async def answer(self, process: "Process", key: str, attempt: int) -> Reply:
        """Let a request in, and wait for its answer."""
        process.steps[key] = "gated"
        while not self.gate:
            self.held.append(asyncio.get_running_loop().create_future())
            await self.held[-1]
        process.steps[key] = "sent"
        ask = Ask(process, key, attempt, asyncio.get_running_loop().create_future())
        self.open.append(ask)
        answered = await ask.waiter
        self.delivered[key, attempt] = answered.cost
        return answered

    def shut(self) -> None:
        """Let no request in."""
        self.gate = False

    def let_in(self) -> None:
        """Let everything in."""
        self.gate = True
        for waiter in self.held:
            if not waiter.done():
                waiter.set_result(None)
        self.held.clear()

    def finish(self, number: int, cost: int) -> None:
        """Answer a request, if there is one; also one whose client has gone is paid."""
        if not self.open:
            return
        ask = self.open.pop(number % len(self.open))
        self.paid[ask.key] += 1
        text = f"{ask.key} for the {self.paid[ask.key]}. time"
        self.said[ask.key].add(text)
        if not ask.waiter.done():
            ask.process.steps[ask.key] = "answered"
            ask.waiter.set_result(reply(text, cost))

    def refuse(self, number: int) -> None:
        """Refuse a request, if there is one; it costs nothing."""
        if not self.open:
            return
        ask = self.open.pop(number % len(self.open))
        if not ask.waiter.done():
            ask.process.steps[ask.key] = "refused"
            ask.waiter.set_exception(Overloaded("full"))


@dataclass(eq=False)
class Asker:
    """The agent of one process: writes down how far each call has come."""

    process: "Process"
    provider: Provider
    attempt_of: Callable[[str, int], int]  # by key and epoch
    profile = PUPPET

    def quote(self, request: Request) -> Quote:
        self.process.steps[request.messages[-1].text] = "quoted"
        return Quote(most=Microdollars(MOST), tokens=10)

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        key = request.messages[-1].text
        return await self.provider.answer(self.process, key, self.attempt_of(key, self.process.epoch))

    async def close(self) -> None:
        return None


class Process:
    """A driver as if it were a process on a host of its own."""

    def __init__(self, host: str, clock: FakeClock) -> None:
        self.host, self.clock = host, clock
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda *_: None)  # a dead process tells nobody
        self.epoch = 0  # of the run, as it was when this process began to drive it
        self.steps: dict[str, str] = {}  # what happened last to a call here, by key
        self.driving: asyncio.Task[Run] | None = None
        self.house: House
        self._closing = AsyncExitStack()

    def open(self, folder: Path, provider: Provider, attempt_of: Callable[[str, int], int], work: Work) -> None:
        """Open the store, and know the workload."""

        async def many(ctx: Context, spec: Any) -> Json:
            return await work(self, ctx)

        async def enter() -> House:
            driver = replace(this_process(), host=self.host)
            agent = Asker(self, provider, attempt_of)
            return await self._closing.enter_async_context(house(folder, clock=self.clock, driver=driver, a=agent))

        self.house = self.loop.run_until_complete(enter())
        self.house.workloads.workload("many")(many)

    @property
    def busy(self) -> bool:
        """Whether it drives the run, or is about to."""
        return self.driving is not None and not self.driving.done()

    def drive(self, run: RunId) -> None:
        """Begin to drive a run, unless it does already."""
        if not self.busy:
            self.steps.clear()
            self.driving = self.loop.create_task(self.house.engine.drive(run))
            self.driving.add_done_callback(lambda done: done.cancelled() or done.exception())

    def stop(self, *, now: bool) -> None:
        """Press Ctrl-C: once, or a second time."""
        self.loop.call_soon(lambda: self.house.engine.stop_all(Interrupted("stop"), now=now))

    def turn(self) -> None:
        """Run one pass of the loop."""
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def run(self, seconds: float) -> None:
        """Run the loop for a moment."""
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def die(self) -> None:
        """Drop every task and close the store: what is queued is written if nobody holds the lock, else lost."""
        self.house.store.maintenance.give_up()
        asyncio.run(self.house.store.maintenance.close())

    def close(self) -> None:
        """End what is left, alive or dead."""

        async def end() -> None:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left, timeout=GOODBYE)
            await self._closing.aclose()

        self.loop.run_until_complete(end())
        self.loop.close()


@dataclass(frozen=True)
class Snapshot:
    """What the store holds at one instant, while the writers' threads go on."""

    state: str
    reason: str | None  # why it is in that state
    epoch: int
    host: str | None
    lease_until: float
    cancel: bool  # somebody asked for it
    attempts: tuple[sqlite3.Row, ...]
    budgets: tuple[sqlite3.Row, ...]
    replies: dict[str, str]

    def count(self, *states: str) -> Counter[str]:
        return Counter(attempt["key"] for attempt in self.attempts if attempt["state"] in states)

    def started(self, key: str, epoch: int) -> bool:
        return any((one["key"], one["epoch"], one["state"]) == (key, epoch, "started") for one in self.attempts)


def read_snapshot(reader: sqlite3.Connection) -> Snapshot:
    """Read everything in one transaction."""
    reader.execute("BEGIN")
    try:
        run = reader.execute("SELECT * FROM runs").fetchone()
        return Snapshot(
            state=run["state"],
            reason=run["ended_reason"],
            epoch=run["epoch"],
            host=run["driver_host"],
            lease_until=run["lease_until"],
            cancel=bool(run["cancel_requested"]),
            attempts=tuple(reader.execute("SELECT * FROM attempts")),
            budgets=tuple(reader.execute("SELECT * FROM budgets")),
            replies={row["key"]: row["text"] for row in reader.execute(REPLIES)},
        )
    finally:
        reader.execute("COMMIT")


def step_of(last: str | None, started: bool) -> str | None:
    """Return where a call is, from what happened last and whether its attempt is open in the store."""
    if last == "quoted":
        return "reserved" if started else "opening"
    if last == "refused" and not started:
        return "pausing"
    return last if started else None


async def cancel(path: Path, run: RunId, at: float) -> None:
    """Cancel a run as another process does."""
    store = open_sqlite(path)
    try:
        with contextlib.suppress(Conflict):  # it was over meanwhile
            await store.runs.cancel(run, at)
    finally:
        await store.maintenance.close()
