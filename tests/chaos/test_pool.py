"""The process that drives the pool killed again and again: every task ends once, nothing is left at work, no budget is
exceeded, and what was finished is not done again."""

import asyncio
import random
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections import Counter

import pytest

from muster.app import Muster
from muster.domain.entry import AttemptState
from muster.pool.tasks import TaskSpec, TaskState
from tests.chaos.stage import LOOK_SECONDS, PATIENCE, Stage
from tests.chaos.test_processes import Crew

# What each behavior of the scripted CLI agent comes to.
BEHAVIORS = {
    "ok": TaskState.COMPLETED,
    "tools": TaskState.COMPLETED,
    "crash": TaskState.FAILED,
    "edit": TaskState.COMPLETED,
    "permission": TaskState.FAILED,
    "crash-late": TaskState.FAILED,
    "hang": TaskState.FAILED,
}
TASK_USD = 10.0  # enough for an uncertain attempt after every kill
POOL = '\n[pool]\nslots = {slots}\nagent = "coder"\nbudget_usd = {budget}\n'


def prompt_of(number: int) -> str:
    return f"task {number:04d} MOOD:{list(BEHAVIORS)[number % len(BEHAVIORS)]}"


class PoolStage(Crew):
    """A folder with a pool whose slots run the scripted CLI agent."""

    def __init__(self, stage: Stage, *, slots: int, budget: float) -> None:
        super().__init__(stage)
        file = stage.folder / "muster.toml"
        toml = (
            file.read_text()
            .replace("idle_secs = 12", "idle_secs = 6")
            .replace("budget_usd = 6.00", "budget_usd = 0.50")
        )
        file.write_text(toml + POOL.format(slots=slots, budget=budget))

    async def start(self) -> asyncio.subprocess.Process:
        """Start a process that drives the pool until there is nothing to do."""
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "muster", "pool", "start", "--until-idle"),
            cwd=self.stage.folder,
            env=self.stage.environment,
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=PIPE,
        )

    async def kill_after(self, seconds: float) -> None:
        """Kill a driver some time after the first of its agents is at work."""
        process = await self.start()
        while not self.at_work() and process.returncode is None:  # noqa: ASYNC110 - in another process
            await asyncio.sleep(LOOK_SECONDS)
        await asyncio.sleep(seconds)
        if process.returncode is None:
            process.kill()
        await process.wait()

    async def finish(self) -> None:
        """Drive the pool until nothing is left to do."""
        process = await self.start()
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert b"Traceback" not in err, err.decode()
        assert process.returncode in (0, 1), err.decode()


async def check_done_once(crew: PoolStage, muster: Muster, number: int, task: str) -> None:
    """By the agent's own audit: started no oftener than tried, and never again once its reply was settled."""
    found = await muster.pool.tasks.get(task)
    begun = [line["at"] for line in crew.lines() if line["event"] == "start" and prompt_of(number) in line["prompt"]]
    attempts = await muster._backend.store.archive.attempts(found.run.id)
    tries = Counter(attempt.key for attempt in attempts if attempt.state is not AttemptState.UNSENT)
    assert len(begun) <= sum(tries.values()), (task, begun, tries)
    entry = await muster.runs.entry(found.run.id, "work/000")
    if entry is not None and entry.reply is not None and entry.settled_at is not None:
        assert max(begun) < entry.settled_at, task


async def prove(stage: Stage, *, tasks: int, slots: int, kills: int, latest: float) -> None:
    budget = (tasks + 1) * TASK_USD
    crew = PoolStage(stage, slots=slots, budget=budget)
    async with stage.open() as muster:
        specs = [TaskSpec(prompt=prompt_of(number), budget_usd=TASK_USD) for number in range(tasks)]
        ids = [(await muster.pool.tasks.submit(spec)).id for spec in specs]
        waits = TaskSpec(prompt="task MOOD:ok", review=True, budget_usd=TASK_USD)
        reviewed = (await muster.pool.tasks.submit(waits)).id
    chance = random.Random(tasks)
    for _ in range(kills):
        await crew.kill_after(chance.uniform(0.0, latest))
    await crew.finish()
    async with stage.open() as muster:
        assert crew.at_work() == []
        states = {number: (await muster.pool.tasks.get(task)).state for number, task in enumerate(ids)}
        assert states == {n: BEHAVIORS[list(BEHAVIORS)[n % len(BEHAVIORS)]] for n in range(tasks)}
        assert (await muster.pool.tasks.get(reviewed)).state is TaskState.PENDING_REVIEW
        status = await muster.pool.status()
        assert status.budget is not None
        assert status.spent <= status.budget
        assert {slot.state for slot in status.slots} == {"idle"}
        for number, task in enumerate(ids):
            await check_done_once(crew, muster, number, task)
        drained = await muster.pool.drain(1.0)
        assert {slot.state for slot in drained.slots} == {"stopped"}


async def test_a_pool_whose_driver_is_killed_ends_every_task_once(stage: Stage) -> None:
    await prove(stage, tasks=12, slots=6, kills=2, latest=1.0)


@pytest.mark.chaos
@pytest.mark.timeout(900)
async def test_two_hundred_tasks_in_eight_slots_and_ten_killed_drivers(stage: Stage) -> None:
    await prove(stage, tasks=200, slots=8, kills=10, latest=6.0)
