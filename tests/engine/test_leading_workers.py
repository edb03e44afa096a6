"""What is done once for all workers of a machine, by the first of them, and at one moment for all runs of a worker."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.agents.processes.system import namespace, started, this_process
from muster.domain.canonical import Json
from muster.domain.ids import RunId
from muster.domain.run import Driver, Run, RunState
from muster.engine.base.clock import Ticks
from muster.engine.context import Context
from muster.engine.queue.base import QUEUES
from muster.engine.worker import FRESH_SECONDS, QUIET_SWEEP_SECONDS, Worker
from muster.testing.clock import FakeClock
from tests.engine.house import House, dead_driver, echo, house


async def ask(ctx: Context, spec: Any) -> Json:
    return (await ctx.call("a", "hi", key="k")).text


@pytest.fixture
def workers() -> Iterator[tuple[Driver, Driver]]:
    """Two processes of this machine that live, the first of them first."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        birth = "/".join(part for part in (started(process.pid), namespace()) if part)
        other = replace(this_process(), pid=process.pid, started=birth)
        first, second = sorted((this_process(), other), key=lambda driver: (driver.started, driver.pid))
        yield first, second


@asynccontextmanager
async def left_run(folder: Path, first: Driver, second: Driver, age: float = 0.0) -> AsyncIterator[tuple[House, RunId]]:
    """Let the second worker serve beside the first, and then leave a run behind whose driver is dead."""
    clock = FakeClock()
    ended: asyncio.Queue[Run] = asyncio.Queue()

    def fail(run: RunId, error: Exception) -> None:
        pytest.fail(f"{run}: {error}")

    async with house(folder, a=echo(), clock=clock, driver=second) as h:
        await h.store.workers.register(first, clock.now() - age, QUEUES)
        worker = Worker(h.store, h.engine, clock, most=1, on_end=ended.put, on_error=fail)
        serving = asyncio.create_task(worker.serve())
        while second not in await h.store.workers.present(clock.now() - 1):
            await h.store.changes.wait(1, h.store.changes.commits)
        run = await h.create(ask, workload="left")
        await h.store.leases.claim(run.id, dead_driver(), 0, clock.now(), clock.now() + 15)
        clock.advance(QUIET_SWEEP_SECONDS)
        await h.create(ask, submitted=True)
        await ended.get()
        yield h, run.id
        worker.close()
        await serving


async def state_of(h: House, run: RunId) -> RunState:
    found = await h.store.runs.get(run)
    assert found is not None
    return found.state


async def test_of_two_workers_of_a_machine_the_first_looks_for_dead_drivers(
    tmp_path: Path, workers: tuple[Driver, Driver]
) -> None:
    async with left_run(tmp_path, *workers) as (h, run):
        assert await state_of(h, run) is RunState.RUNNING


@pytest.mark.parametrize("why", ["it died", "it stands still", "it is elsewhere", "it is the second"])
async def test_a_worker_looks_for_dead_drivers_by_itself_unless_it_sees_another_do_it(
    why: str, tmp_path: Path, workers: tuple[Driver, Driver]
) -> None:
    first, second = workers
    others = {"it died": dead_driver(), "it is elsewhere": replace(first, host="elsewhere"), "it is the second": second}
    driver = first if why == "it is the second" else second
    age = FRESH_SECONDS if why == "it stands still" else 0.0
    async with left_run(tmp_path, others.get(why, first), driver, age) as (h, run):
        while await state_of(h, run) is not RunState.INTERRUPTED:
            await h.store.changes.wait(1, h.store.changes.commits)


async def test_all_who_wait_for_a_tick_wake_at_the_same_moment() -> None:
    clock = FakeClock()
    ticks = Ticks(clock, 1.0)
    waiting = []
    for _ in range(3):
        waiting.append(asyncio.ensure_future(ticks.wait()))
        await clock.someone_sleeps()
        clock.advance(0.25)
    assert not any(one.done() for one in waiting)
    clock.advance(0.25)
    await asyncio.wait_for(asyncio.gather(*waiting), 60)


async def test_ticks_go_on_after_whoever_waited_was_canceled() -> None:
    clock = FakeClock()
    ticks = Ticks(clock, 1.0)
    canceled = asyncio.ensure_future(ticks.wait())
    await clock.someone_sleeps()
    canceled.cancel()
    await asyncio.wait({canceled})
    again = asyncio.ensure_future(ticks.wait())
    await clock.someone_sleeps(1.0)
    clock.advance(1.0)
    await asyncio.wait_for(again, 60)
