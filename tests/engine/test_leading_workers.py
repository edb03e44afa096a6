"""What is done once for all workers of a store, by the first of them, and at one moment for all runs of a worker."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
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
from muster.engine.election import FRESH_SECONDS, Election
from muster.engine.queue.base import QUEUES
from muster.engine.worker import QUIET_SWEEP_SECONDS, Worker
from muster.store.base import PresentWorker
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
        await h.store.processes.register(first, clock.now() - age, QUEUES)
        worker = Worker(h.store, h.engine, clock, most=1, on_end=ended.put, on_error=fail)
        serving = asyncio.create_task(worker.serve())
        while second not in [worker.driver for worker in await h.store.processes.present(clock.now() - 1)]:
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


@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_of_two_workers_of_a_store_the_first_looks_for_dead_drivers(
    where: str, tmp_path: Path, workers: tuple[Driver, Driver]
) -> None:
    first, second = workers
    first = first if where == "here" else replace(first, host="")  # before all names
    async with left_run(tmp_path, first, second) as (h, run):
        assert await state_of(h, run) is RunState.RUNNING


@pytest.mark.parametrize("why", ["it died", "it stands still", "it is the second"])
async def test_a_worker_looks_for_dead_drivers_by_itself_unless_it_sees_another_do_it(
    why: str, tmp_path: Path, workers: tuple[Driver, Driver]
) -> None:
    first, second = workers
    others = {"it died": dead_driver(), "it is the second": second}
    driver = first if why == "it is the second" else second
    age = FRESH_SECONDS if why == "it stands still" else 0.0
    async with left_run(tmp_path, others.get(why, first), driver, age) as (h, run):
        while await state_of(h, run) is not RunState.INTERRUPTED:
            await h.store.changes.wait(1, h.store.changes.commits)


HERE = [Driver(host="b", pid=pid, started="0") for pid in range(4)]
BEFORE, AFTER = (Driver(host=host, pid=9, started="0") for host in ("a", "c"))


def election_of(us: Driver, peers: Sequence[Driver], gone: Collection[Driver] = (), age: float = 0.0) -> Election:
    clock = FakeClock()
    election = Election(us, clock, sees=lambda peer: peer.host == us.host, is_gone=lambda peer: peer in gone)
    workers = [PresentWorker(driver=peer, queues=frozenset(QUEUES), seen_at=clock.now() - age) for peer in peers]
    election.meet(workers)
    return election


def test_one_process_of_a_store_is_elected_and_another_when_it_dies_or_is_not_heard_of() -> None:
    everybody = [AFTER, *HERE, BEFORE]
    assert [us for us in everybody if election_of(us, everybody).is_first()] == [BEFORE]
    assert [us for us in everybody if election_of(us, everybody, gone=[BEFORE, HERE[0]]).is_first()] == [HERE[1]]
    assert all(election_of(us, everybody, age=FRESH_SECONDS + 1).is_first() for us in everybody)
    assert all(election_of(us, everybody).is_first(frozenset({"another"})) for us in everybody)


def test_a_process_that_is_not_registered_is_elected_only_where_nobody_is() -> None:
    assert election_of(BEFORE, []).is_first()
    assert not election_of(BEFORE, [AFTER]).is_first()


def test_the_first_that_is_left_on_a_machine_is_told_once_that_another_has_died() -> None:
    gone = {HERE[0], BEFORE}
    elections = {us: election_of(us, [BEFORE, *HERE, AFTER], gone) for us in (*HERE[1:], AFTER)}
    assert [us for us, election in elections.items() if election.has_lost_neighbor()] == [HERE[1]]
    assert not any(election.has_lost_neighbor() for election in elections.values())
    gone.add(HERE[1])
    assert [us for us in (*HERE[2:], AFTER) if elections[us].has_lost_neighbor()] == [HERE[2]]


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
