"""Rules of the pool that hold whoever asks: claims, drains, fan-outs, broken slots, and trees that are in use."""

import asyncio
from pathlib import Path

import pytest

from muster.domain.errors import BadArgument, Conflict, NotFound
from muster.domain.task import TaskState
from muster.pool.fan_out import FanOut
from muster.pool.tasks import TaskSpec
from tests.pool.test_pool import SLOW, TOML, drive, opened, state, until

TWO = '[pool]\nslots = 2\n\n[[slots]]\nname = "one"\nagent = "sim/echo"\n\n[[slots]]\nname = "two"\nagent = "missing"\n'
ONE = '[pool]\nslots = 1\nagent = "sim/echo"\n'


async def test_a_claim_keeps_to_dependencies_and_the_budget(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        first = await m.pool.tasks.submit(TaskSpec(prompt="a"))
        after = await m.pool.tasks.submit(TaskSpec(prompt="b", after=(first.id,)))
        await m.pool.scale(2)
        await m.pool.tasks.cancel(first.id)
        assert await m.pool.tasks.claim("slot-2") is None
        dear = await m.pool.tasks.submit(TaskSpec(prompt="c", budget_usd=5))
        await m.pool.set_budget(1)
        assert await m.pool.tasks.claim("slot-2") is None
        await drive(m)
        failed = await m.pool.tasks.get(after.id)
        assert failed.state is TaskState.FAILED
        assert first.id in str(failed.run.error)
        assert await state(m, dear) is TaskState.PENDING


async def test_a_slot_whose_agent_is_unknown_is_errored_and_the_others_do_its_tasks(tmp_path: Path) -> None:
    async with opened(tmp_path, TWO) as m:
        tasks = [await m.pool.tasks.submit(TaskSpec(prompt=f"t{n}")) for n in range(4)]
        told: list[str] = []
        await m.pool.driver(on_error=lambda run, error: told.append(error.message)).serve(until_idle=True)
        assert [await state(m, task) for task in tasks] == [TaskState.COMPLETED] * 4
        slots = await m.pool.slots()
        assert [slot.state for slot in slots] == ["idle", "errored"]
        assert "missing" in slots[1].record.error
        assert len(told) == 1


async def test_a_task_whose_agent_is_gone_keeps_no_other_task_from_being_done(tmp_path: Path) -> None:
    async with opened(tmp_path, ONE + '\n[agents.old]\nkind = "program"\ncommand = ["true"]\n') as m:
        gone = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="old"))
    async with opened(tmp_path, ONE) as m:
        good = await m.pool.tasks.submit(TaskSpec(prompt="y"))
        await drive(m)
        assert await state(m, good) is TaskState.COMPLETED
        assert await state(m, gone) is TaskState.PENDING
        assert [slot.state for slot in await m.pool.slots()] == ["idle"]


async def test_two_fan_outs_share_a_slot_and_wait_for_it(tmp_path: Path) -> None:
    async with opened(tmp_path, ONE) as m, asyncio.timeout(60):
        wanted = FanOut(prompts=("a", "b", "c"))
        found = await asyncio.gather(m.pool.fan_out(wanted), m.pool.fan_out(wanted))
        assert [[task.state for task in tasks] for tasks in found] == [[TaskState.COMPLETED] * 3] * 2


async def test_a_fan_out_is_confirmed_or_refused_before_anything_is_stored(tmp_path: Path) -> None:
    async with opened(tmp_path, ONE.replace("slots = 1", "slots = 1\nmax_pending = 2")) as m:
        with pytest.raises(BadArgument, match="51 tasks must be confirmed"):
            await m.pool.fan_out(FanOut(prompts=("x",) * 51))
        with pytest.raises(Conflict, match="at most 2 may be"):
            await m.pool.fan_out(FanOut(prompts=("x",) * 3))
        assert await m.pool.tasks.list() == []


async def test_a_drain_waits_for_tasks_that_are_done_by_themselves_and_stays(tmp_path: Path) -> None:
    async with opened(tmp_path, ONE + SLOW) as m, asyncio.timeout(60):
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="slow"))
        own = asyncio.ensure_future(m.pool.wait(task))
        await until(m, task, TaskState.RUNNING)
        status = await m.pool.drain(0.5)
        assert {slot.state for slot in status.slots} == {"stopped"}
        assert status.tasks[TaskState.RUNNING] == 0
        assert (await own).state is TaskState.PENDING
        with pytest.raises(Conflict, match="drained"):
            await m.pool.run(TaskSpec(prompt="y"))
        assert (await m.pool.status()).draining


async def test_a_task_is_not_resumed_like_other_runs(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", review=True))
        await drive(m)
        with pytest.raises(BadArgument, match="is a task, which runs in a slot"):
            await m.resume(task.run.id)


async def test_a_folder_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path, TOML) as m:
        with pytest.raises(NotFound, match="folder 'nowhere' not found"):
            await m.pool.tasks.submit(TaskSpec(prompt="x", cwd="nowhere"))
