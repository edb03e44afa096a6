"""Slots whose agents cannot be started: they rest before they are tried again, and give up after a few failures."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import muster
from muster.app import Muster
from muster.domain.task import TaskState
from muster.pool.supervision import RestartDecision, RestartPolicy
from muster.pool.tasks import TaskSpec
from muster.settings import load_settings
from muster.testing.clock import FakeClock
from tests.pool.test_pool import state, until

TOML = """
[pool]
slots = 2
max_restarts = 3
supervisor_interval_secs = 30

[[slots]]
name = "broken-one"
agent = "broken"

[[slots]]
name = "healthy-one"
agent = "sim/echo"

[agents.broken]
kind = "program"
mode = "plain"
command = ["./nothing-there"]
"""


@asynccontextmanager
async def driven(folder: Path, clock: FakeClock, toml: str = TOML) -> AsyncIterator[Muster]:
    """Open a pool that is driven until the test is over."""
    (folder / "muster.toml").write_text(toml)
    settings = load_settings(folder=folder, environment={"PATH": "/usr/bin:/bin"})
    async with muster.open(settings=settings, clock=clock) as m:
        driver = m.pool.driver()
        serving = asyncio.ensure_future(driver.serve())
        try:
            yield m
        finally:
            driver.close()
            clock.advance(60)
            await serving


async def failures(m: Muster, number: int) -> None:
    """Wait until the first slot has failed so often."""
    async with asyncio.timeout(60):
        while (await m._backend.store.pool.slots())[:1] == [] or (await m.pool.slots())[0].record.failures < number:
            await m._backend.store.changes.wait(0.2, m._backend.store.changes.commits)


@pytest.mark.parametrize(
    ("failed", "expected"),
    [(0, (False, 0.0)), (1, (False, 30.0)), (2, (False, 60.0)), (3, (True, 0.0)), (4, (True, 0.0))],
)
def test_the_rest_is_doubled_and_ends_with_the_last_failure(failed: int, expected: tuple[bool, float]) -> None:
    errored, rest = expected
    assert RestartPolicy(interval=30.0, most=3).after(failed) == RestartDecision(errored=errored, rest=rest)


def test_without_a_supervisor_the_first_failure_is_the_last() -> None:
    assert RestartPolicy(enabled=False).after(1).errored
    assert not RestartPolicy(enabled=False).after(0).errored


def test_a_rest_is_bounded() -> None:
    assert RestartPolicy(interval=30.0, most=10_000).after(9_999).rest == 3_600.0


async def test_a_slot_rests_after_a_failed_start_and_is_errored_after_three_while_others_go_on(tmp_path: Path) -> None:
    clock = FakeClock()
    async with driven(tmp_path, clock) as m:
        specs = [TaskSpec(prompt=f"t{n}", slot="broken-one", priority=9 - n) for n in range(4)]
        tasks = [await m.pool.tasks.submit(spec) for spec in specs]
        for number, rest in ((1, 30.0), (2, 60.0)):
            await failures(m, number)
            assert await state(m, tasks[number - 1]) is TaskState.FAILED
            clock.advance(rest - 1)
            healthy = await m.pool.tasks.submit(TaskSpec(prompt="well", slot="healthy-one"))
            await until(m, healthy, TaskState.COMPLETED)  # the driver has looked at all slots by then
            assert (await m.pool.slots(name="broken-one"))[0].record.failures == number
            assert await state(m, tasks[number]) is TaskState.PENDING
            clock.advance(1)
        await failures(m, 3)
        (slot,) = await m.pool.slots(name="broken-one")
        assert slot.state == "errored"
        assert "nothing-there" in slot.record.error
        clock.advance(3_600)
        healthy = await m.pool.tasks.submit(TaskSpec(prompt="well", slot="healthy-one"))
        await until(m, healthy, TaskState.COMPLETED)
        assert await state(m, tasks[3]) is TaskState.PENDING


async def test_a_start_that_succeeds_ends_the_count(tmp_path: Path) -> None:
    clock = FakeClock()
    async with driven(tmp_path, clock) as m:
        await m.pool.tasks.submit(TaskSpec(prompt="x", slot="broken-one"))
        await failures(m, 1)
        well = await m.pool.tasks.submit(TaskSpec(prompt="x", slot="broken-one", agent="sim/echo"))
        clock.advance(30)
        await until(m, well, TaskState.COMPLETED)
        async with asyncio.timeout(60):
            while (await m.pool.slots(name="broken-one"))[0].record.failures:
                await m._backend.store.changes.wait(0.2, m._backend.store.changes.commits)


async def test_without_a_supervisor_a_slot_is_errored_at_once(tmp_path: Path) -> None:
    clock = FakeClock()
    async with driven(tmp_path, clock, TOML.replace("[pool]", "[pool]\nsupervisor_enabled = false")) as m:
        await m.pool.tasks.submit(TaskSpec(prompt="x", slot="broken-one"))
        await failures(m, 1)
        (slot,) = await m.pool.slots(name="broken-one")
        assert slot.state == "errored"


async def test_a_pool_that_is_driven_until_idle_waits_for_a_slot_that_rests(tmp_path: Path) -> None:
    (tmp_path / "muster.toml").write_text(TOML.replace("secs = 30", "secs = 0.01"))
    settings = load_settings(folder=tmp_path, environment={"PATH": "/usr/bin:/bin"})
    async with muster.open(settings=settings) as m:
        for n in range(3):
            await m.pool.tasks.submit(TaskSpec(prompt=f"t{n}", slot="broken-one"))
        await m.pool.driver().serve(until_idle=True)
        (slot,) = await m.pool.slots(name="broken-one")
        assert (slot.state, slot.record.failures) == ("errored", 3)
        await m.pool.driver().serve(until_idle=True)
        (slot,) = await m.pool.slots(name="broken-one")
        assert (slot.state, slot.record.error) == ("idle", "")  # a new start begins anew
