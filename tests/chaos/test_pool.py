"""The process that drives the pool killed again and again: every task ends once, nothing is left at work, no budget is
exceeded, and what was finished is not done again."""

import asyncio
import random
import subprocess
import time
from asyncio.subprocess import DEVNULL
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from muster.app import Muster
from muster.app.pool.task_queries import Task
from muster.domain.entry import AttemptState
from muster.domain.errors import Conflict
from muster.domain.money import from_usd
from muster.domain.run import RunState
from muster.domain.task import TaskState
from muster.pool.tasks import TaskSpec
from muster.store.base import POOL_LEVEL
from tests import forked
from tests.chaos.stage import LOOK_SECONDS, PATIENCE, Stage, until
from tests.chaos.test_processes import Crew
from tests.forked import ForkedProcess

C, F = TaskState.COMPLETED, TaskState.FAILED
# What each behavior of the scripted CLI agent comes to; those that take longest are asked for first.
BEHAVIORS = {
    "hang": F,
    "stall-in-tool": F,
    "ignore-term": F,
    "ok": C,
    "tools": C,
    "crash": F,
    "edit": C,
    "permission": F,
    "crash-late": F,
    "children": C,
    "escape": C,
    "noise": C,
    "no-exit": C,
    "error": F,
    "slow": C,
    "expensive": F,
}
UNKNOWN_COST = ("hang", "stall-in-tool", "ignore-term", "crash", "permission", "crash-late")  # booked as reserved
CALL_USD = 0.50
TASK_USD = 1.10  # pays for two calls of which a kill or the agent leaves the cost unknown, and not for a third
DEAR_USD = 13.00  # of a task whose agent costs five dollars, and may cost six
FINISH_PATIENCE = 4 * PATIENCE  # hundreds of programs are started
POOL = '\n[pool]\nslots = {slots}\nagent = "coder"\nbudget_usd = {budget}\n'


def behavior_of(number: int) -> str:
    return list(BEHAVIORS)[number % len(BEHAVIORS)]


def prompt_of(number: int) -> str:
    return f"task {number:04d} MOOD:{behavior_of(number)}"


def spec_of(number: int) -> TaskSpec:
    """Return a task; those that are expensive go last, when the others have spent what they need."""
    if behavior_of(number) == "expensive":
        return TaskSpec(prompt=prompt_of(number), agent="dear", budget_usd=DEAR_USD, priority=-1)
    return TaskSpec(prompt=prompt_of(number), budget_usd=TASK_USD)


def tight_budget(tasks: int) -> float:
    """Return a budget that never pays for an expensive task: the others spend at least what leaves less than that."""
    unknown = sum(behavior_of(number) in UNKNOWN_COST for number in range(tasks))
    return round(unknown * CALL_USD + DEAR_USD, 2)


class PoolStage(Crew):
    """A folder with a pool whose slots run the scripted CLI agent."""

    def __init__(self, stage: Stage, *, slots: int, budget: float, idle_secs: int = 6) -> None:
        super().__init__(stage)
        file = stage.folder / "muster.toml"
        dear = file.read_text().replace("[agents.coder]", "[agents.dear]")
        coder = (
            file.read_text()
            .replace("idle_secs = 12", f"idle_secs = {idle_secs}")
            .replace("budget_usd = 6.00", f"budget_usd = {CALL_USD}")
        )
        file.write_text(coder + dear + POOL.format(slots=slots, budget=budget))
        (stage.folder / "readme.txt").write_text("as it was\n")
        self.git("init", "-q", "-b", "main")
        self.git("add", "readme.txt")
        self.git("-c", "user.name=Me", "-c", "user.email=me@localhost", "commit", "-q", "-m", "first")
        self.before = self.git("status", "--porcelain", "--", "readme.txt")

    def git(self, *words: str) -> str:
        """Run git in the folder of the stage."""
        done = subprocess.run(["git", *words], cwd=self.stage.folder, check=True, capture_output=True, text=True)
        return done.stdout

    async def start(self) -> ForkedProcess:
        """Start a process that drives the pool until there is nothing to do."""
        return await forked.start(
            *("muster", "pool", "start", "--until-idle"),
            folder=self.stage.folder,
            environment=self.stage.environment,
            stdout=DEVNULL,
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
        _, err = await asyncio.wait_for(process.communicate(), FINISH_PATIENCE)
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


async def check_ends(muster: Muster, tasks: Sequence[str]) -> None:
    """Every task came to what its agent does, or waits for money, by kills that left costs unknown."""
    for number, name in enumerate(tasks):
        task = await muster.pool.tasks.get(name)
        if lacks_money(task):
            left = (task.spec.budget_usd or 0.0) - (await spent_usd(muster, task.run.lineage_level))
            assert (task.state, left < CALL_USD) == (TaskState.PENDING, True), (task.id, left)
        else:
            assert task.state is BEHAVIORS[behavior_of(number)], (prompt_of(number), task.state, task.run.error)


async def check_money(muster: Muster, tasks: Sequence[str]) -> None:
    """By the ledger: no task has spent more than its budget, all together what the pool has, and it not too much."""
    total = 0.0
    for name in tasks:
        task = await muster.pool.tasks.get(name)
        assert task.spec.budget_usd is not None
        spent = await spent_usd(muster, task.run.lineage_level)
        assert spent <= task.spec.budget_usd, (task.spec.prompt, spent)
        total += spent
    pool = (await muster._backend.store.runs.balances([POOL_LEVEL]))[POOL_LEVEL]
    assert pool.cap is not None
    assert (pool.settled, pool.reserved) == (round(total * 1_000_000), 0)
    assert pool.settled <= pool.cap


async def spent_usd(muster: Muster, level: str) -> float:
    """Return what the ledger has settled at a level."""
    balances = await muster._backend.store.runs.balances([level])
    return balances[level].settled / 1_000_000 if level in balances else 0.0


def lacks_money(task: Task) -> bool:
    """Return whether a task has too little left of its own budget to go on."""
    return task.remedy == f"muster task retry {task.id} --budget USD"


async def check_refused(muster: Muster, tasks: Sequence[str]) -> int:
    """Whatever is pending says why; returns how many there are that did not fit into the budget of the pool."""
    found = [await muster.pool.tasks.get(name) for name in tasks]
    pending = [task for task in found if task.state is TaskState.PENDING and not lacks_money(task)]
    status = await muster.pool.status()
    assert status.cost.cap is not None
    for task in pending:
        assert task.spec.budget_usd is not None
        assert status.cost.total + from_usd(task.spec.budget_usd) > status.cost.cap, task.spec.prompt
        assert "of the pool's budget of" in task.refusal
    return len(pending)


async def check_branches(crew: PoolStage, muster: Muster, tasks: Mapping[int, str]) -> None:
    """Every task that changed files has a branch with them, the repository is sound, the user's file as it was."""
    for number, task in tasks.items():
        found = await muster.pool.tasks.get(task)
        if behavior_of(number) == "edit" and found.state is TaskState.COMPLETED:
            branch = found.branch
            assert branch is not None, task
            assert crew.git("show", f"{branch}:greeting.txt") == "hello, world\n"
    crew.git("fsck", "--strict")
    assert crew.git("status", "--porcelain", "--", "readme.txt") == crew.before


async def prove(stage: Stage, *, tasks: int, slots: int, kills: int, latest: float) -> None:
    crew = PoolStage(stage, slots=slots, budget=tight_budget(tasks))
    async with stage.open() as muster:
        ids = [(await muster.pool.tasks.submit(spec_of(number))).id for number in range(tasks)]
        waits = TaskSpec(prompt="task MOOD:ok", review=True, budget_usd=TASK_USD)
        reviewed = (await muster.pool.tasks.submit(waits)).id
    chance = random.Random(tasks)
    for _ in range(kills):
        await crew.kill_after(chance.uniform(0.0, latest))
    await crew.finish()
    async with stage.open() as muster:
        await check_money(muster, [*ids, reviewed])
        refused = await check_refused(muster, ids)
        assert refused > 0, "the budget paid for everything"
        enough = sum(spec_of(number).budget_usd or 0.0 for number in range(tasks)) + TASK_USD
        await muster.pool.set_budget(f"{enough:.2f}")
    await crew.finish()
    async with stage.open() as muster:
        assert crew.at_work() == []
        await check_ends(muster, ids)
        assert (await muster.pool.tasks.get(reviewed)).state is TaskState.PENDING_REVIEW
        await check_money(muster, [*ids, reviewed])
        status = await muster.pool.status()
        assert {slot.state for slot in status.slots} == {"idle"}
        for number, task in enumerate(ids):
            await check_done_once(crew, muster, number, task)
        await check_branches(crew, muster, dict(enumerate(ids)))
    started = sum(line["event"] == "start" for line in crew.lines())
    spent = status.cost.total / 1_000_000
    print(f"{tasks} tasks, {kills} kills: {started} started, {refused} refused at first, ${spent:.2f} spent")


async def test_a_pool_whose_driver_is_killed_ends_every_task_once(stage: Stage) -> None:
    await prove(stage, tasks=len(BEHAVIORS), slots=6, kills=2, latest=1.0)


async def test_a_drain_ends_in_time_and_leaves_nothing_at_work(stage: Stage) -> None:
    crew = PoolStage(stage, slots=2, budget=10.0, idle_secs=600)
    async with stage.open() as muster:
        moods = ("hang", "ignore-term", "ok")
        tasks = [
            (await muster.pool.tasks.submit(TaskSpec(prompt=f"MOOD:{mood}", budget_usd=TASK_USD))).id for mood in moods
        ]
        process = await crew.start()
        await until(lambda: both_at_work(crew))
        began = time.monotonic()
        status = await muster.pool.drain(2.0)
        assert 2.0 <= time.monotonic() - began < 30.0
        assert (status.driver, {slot.state for slot in status.slots}) == (None, {"stopped"})
        await asyncio.wait_for(process.wait(), PATIENCE)
        assert crew.at_work() == []
        found = [(await muster.pool.tasks.get(task)).run for task in tasks]
        assert [run.state for run in found] == [RunState.INTERRUPTED, RunState.INTERRUPTED, RunState.QUEUED]
        with pytest.raises(Conflict, match="drained"):
            await muster.pool.tasks.submit(TaskSpec(prompt="new", budget_usd=TASK_USD))


async def both_at_work(crew: PoolStage) -> bool:
    """Return whether both agents that never end by themselves have begun."""
    begun = crew.audit.read_text() if crew.audit.exists() else ""
    return "MOOD:hang" in begun and "MOOD:ignore-term" in begun


@pytest.mark.chaos
@pytest.mark.timeout(900)
async def test_two_hundred_tasks_in_eight_slots_and_ten_killed_drivers(stage: Stage) -> None:
    await prove(stage, tasks=200, slots=8, kills=10, latest=6.0)
