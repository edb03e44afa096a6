"""A small house for tests of the engine: a real store, agents that obey, a clock that can stand still."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from muster.agents.base import Agent, BatchAgent, Batching, OnDelta
from muster.agents.processes.registry import Reaper
from muster.agents.processes.system import is_gone, sees, start_of, this_process
from muster.app.base.schemas import JsonSchemas
from muster.domain.agent import Command, Profile, Quote, Timeouts
from muster.domain.batch import BatchEndpoint
from muster.domain.call import Reply, Request, Stop, Usage
from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import Driver, NewRun, Origin, Run
from muster.engine.base.clock import Clock, SystemClock
from muster.engine.base.driven_run import BudgetCaps
from muster.engine.base.killpoints import KillPoints
from muster.engine.batches.assembly import CREATE_TIMEOUTS, TIMEOUTS, make_batcher
from muster.engine.batches.base import BatchServices, Patience
from muster.engine.calls.admission import BudgetQueue
from muster.engine.calls.limiter import Limiters
from muster.engine.calls.retry import RetryPolicy
from muster.engine.calls.state import CallServices, LazyBatcher
from muster.engine.context import Context
from muster.engine.engine import Engine
from muster.engine.workload import Workloads
from muster.store.base import Store
from muster.testing.batches import MemoryBatches
from tests.engine.stores import open_store

PUPPET = Profile(name="puppet", limiter="puppet")

Answer = Callable[[Request, int], Awaitable[Reply]]


def reply(text: str = "ok", cost: int = 10) -> Reply:
    return Reply(text=text, stop=Stop.END, usage=Usage(input=1, output=1), cost=Microdollars(cost))


@dataclass
class Puppet:
    """An agent that answers as its test says; counts what it was asked."""

    answer: Answer
    most: int = 100
    profile: Profile = PUPPET
    asked: list[Request] = field(default_factory=list)
    answered: list[Reply] = field(default_factory=list)

    def quote(self, request: Request) -> Quote:
        return Quote(most=Microdollars(self.most), tokens=10)

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        self.asked.append(request)
        answer = await self.answer(request, len(self.asked))
        if on_delta is not None:
            on_delta(answer.text)
        self.answered.append(answer)
        return answer

    async def close(self) -> None:
        return None


def echo(cost: int = 10, most: int = 100) -> Puppet:
    async def answer(request: Request, n: int) -> Reply:
        return reply(request.messages[-1].text, cost)

    return Puppet(answer, most)


def failing(*errors: Exception, then: str = "ok") -> Puppet:
    """An agent that raises these errors in turn and then answers."""

    async def answer(request: Request, n: int) -> Reply:
        if n <= len(errors):
            raise errors[n - 1]
        return reply(then)

    return Puppet(answer)


def dead_driver() -> Driver:
    """Make a driver of this host, boot and namespace that is certainly dead: this process did not start at tick 1."""
    us = this_process()
    birth = start_of(us.started)
    return replace(us, started="/".join(part for part in (birth.boot, "1", birth.namespace) if part))


class Hanging:
    """An agent that answers only when it is let go."""

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[Request] = asyncio.Queue()
        self.let_go = asyncio.Event()
        self.puppet = Puppet(self._answer)

    async def _answer(self, request: Request, n: int) -> Reply:
        self.arrived.put_nowait(request)
        await self.let_go.wait()
        return reply(request.messages[-1].text)


class Agents:
    def __init__(self, batches: MemoryBatches | None, **agents: Agent) -> None:
        self._agents, self._batches = agents, batches

    def find(self, name: str) -> Agent:
        if name not in self._agents:
            raise BadConfiguration(f"there is no agent {name!r}")
        return self._agents[name]

    def command(self, command: Command) -> Agent:
        return self.find(command.name)

    def batching(self, name: str) -> Batching | None:
        return None if self._batches is None else self._batches.batching()

    def flex(self, name: str) -> Agent | None:
        return None

    def reopen(self, endpoint: BatchEndpoint) -> BatchAgent:
        if self._batches is None:
            raise BadConfiguration(f"nobody here takes batches for {endpoint.kind}")
        return self._batches


class House:
    """An engine over one store."""

    def __init__(self, store: Store, engine: Engine, workloads: Workloads, clock: Clock) -> None:
        self.store, self.engine, self.workloads, self.clock = store, engine, workloads, clock

    async def create(self, work: Callable[[Context, Any], Awaitable[Json]], **rest: Any) -> Run:
        """Store a run of a workload that is given as a function."""
        name = rest.pop("workload", work.__name__)
        self.workloads.workload(name)(work)
        spec = rest.pop("spec", None)
        cap = rest.pop("cap", None)
        new = NewRun(id=self.engine.new_id(), workload=name, spec=spec, created_at=self.clock.now(), cap=cap, **rest)
        return await self.engine.create(new)

    async def drive(self, work: Callable[[Context, Any], Awaitable[Json]], **rest: Any) -> Run:
        run = await self.create(work, **rest)
        return await self.engine.drive(run.id)

    async def descend(self, run: Run, origin: Origin) -> Run:
        new = NewRun(
            id=self.engine.new_id(),
            workload=run.workload,
            spec=run.spec,
            created_at=self.clock.now(),
            seed=run.seed,
            origin=origin,
        )
        return await self.engine.create(new)

    async def kinds(self, run: RunId) -> list[str]:
        return [event.kind for event in await self.store.events.read(run, 0, 10_000)]


@asynccontextmanager
async def house(
    folder: Path,
    *,
    clock: Clock | None = None,
    kill: KillPoints | None = None,
    policy: RetryPolicy | None = None,
    timeouts: Timeouts | None = None,
    day_cap: int | None = None,
    call_cap: Microdollars | None = None,
    driver: Driver | None = None,
    batches: MemoryBatches | None = None,
    patience: Patience | None = None,
    **agents: Agent,
) -> AsyncIterator[House]:
    clock = clock or SystemClock()
    kill = kill or KillPoints()
    store = open_store(folder)
    engine: Engine

    async def sweep() -> None:
        await engine.sweep()

    budget_queue = BudgetQueue(store.changes, sweep, clock)
    limiters = Limiters(clock)
    chance = random.Random(7)
    directory = Agents(batches, **agents)
    driver = driver or this_process()
    gone, seen = partial(is_gone, us=driver), partial(sees, us=driver)
    batch_services = BatchServices(
        store=store,
        directory=directory,
        clock=clock,
        random=chance,
        kill=kill,
        driver=driver,
        is_gone=gone,
        patience=patience or Patience(),
        timeouts=TIMEOUTS,
        create_timeouts=CREATE_TIMEOUTS,
    )
    batcher = LazyBatcher(partial(make_batcher, batch_services, folder / "spool"))
    services = CallServices(
        store=store,
        directory=directory,
        limiters=limiters,
        budget_queue=budget_queue,
        clock=clock,
        random=chance,
        kill=kill,
        policy=policy or RetryPolicy(first_delay=0.001, longest_delay=0.01),
        timeouts=timeouts or Timeouts(call=30.0, grace=0.05),
        batcher=batcher,
        is_gone=gone,
        sees=seen,
        schemas=JsonSchemas(),
        reap=Reaper(store.processes, driver.host, gone).reap,
    )
    workloads = Workloads()
    cap = None if day_cap is None else Microdollars(day_cap)
    engine = Engine(services, workloads=workloads, driver=driver, caps=BudgetCaps(day=cap, call=call_cap))
    try:
        yield House(store, engine, workloads, clock)
    finally:
        await batcher.close()
        await budget_queue.close()
        await limiters.close()
        await store.maintenance.close()


async def check_books(store: Store, run: RunId) -> None:
    """No reservation without attempt, no attempt without settlement, and the sums are right."""
    found = await store.runs.get(run)
    assert found is not None
    attempts = await store.archive.attempts(run)
    assert all(attempt.state != "started" for attempt in attempts)
    assert found.spent.reserved == 0
    by_lane = {lane: sum(a.cost for a in attempts if a.lane == lane) for lane in ("billed", "imputed", "uncertain")}
    assert (found.spent.billed, found.spent.imputed, found.spent.uncertain) == tuple(by_lane.values())
