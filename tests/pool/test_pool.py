"""Tasks from submission to their end, in a real store and with processes as agents."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import muster
from muster.app import Muster
from muster.app.pool.task_queries import Task
from muster.domain.errors import (
    BadArgument,
    BadConfiguration,
    BudgetExhausted,
    Conflict,
    MusterError,
    NotFound,
    TimedOut,
)
from muster.domain.task import TaskState
from muster.pool.tasks import TaskSpec
from muster.settings import load_settings
from muster.store.base import POOL_LEVEL
from tests.pool import held
from tests.pool.waiting import until_exists

TOML = """
[pool]
slots = 2
agent = "sim/echo"
system = "Be brief."

[[slots]]
name = "coder"
role = "writer"
description = "You write code."
"""
SLOW = """
[agents.slow]
kind = "program"
command = ["sleep", "600"]
mode = "plain"
"""
PAID = """
[agents.paid]
kind = "cli"
command = ["sh", "-c", "echo '{\\"result\\": \\"done\\", \\"cost\\": COST}'"]
output = "json"
answer = "$.result"
cost_usd = "$.cost"
budget_usd = 0.10
"""


@asynccontextmanager
async def opened(folder: Path, toml: str = TOML) -> AsyncIterator[Muster]:
    (folder / "muster.toml").write_text(toml)
    settings = load_settings(folder=folder, environment={"PATH": "/usr/bin:/bin"})
    async with muster.open(settings=settings) as m:
        yield m


async def drive(m: Muster) -> None:
    await m.pool.driver().serve(until_idle=True)


async def state(m: Muster, task: Task) -> TaskState:
    return (await m.pool.tasks.get(task.id)).state


async def until(m: Muster, task: Task, wanted: TaskState) -> None:
    async with asyncio.timeout(60):
        while await state(m, task) is not wanted:
            await m._backend.store.changes.wait(1.0, m._backend.store.changes.commits)


async def test_a_task_is_done_in_a_slot_that_knows_who_it_is(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        await m.pool.set_context("goal", "ship it")
        task = await m.pool.tasks.submit(TaskSpec(prompt="hello", slot="coder", system="In French."), tags=["x"])
        assert task.state is TaskState.PENDING
        await drive(m)
        done = await m.pool.tasks.get(task.id)
        assert (done.state, done.reply and done.reply.text, done.slot and done.slot.name) == (
            TaskState.COMPLETED,
            "hello",
            "coder",
        )
        call = await m.runs.call(done.run.id, "work/000")
        system = call.entry.request["system"]
        for part in ("You are coder, writer", "You write code.", "Be brief.", "In French.", "# goal\nship it"):
            assert part in system
        assert [one.id for one in await m.pool.tasks.list(tag="x")] == [task.id]
        assert [slot.record.completed for slot in await m.pool.slots(name="coder")] == [1]


async def test_a_review_that_waits_overnight_holds_every_feedback(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="write", review=True))
        await drive(m)
    for feedback in ("shorter", "kinder"):
        async with opened(tmp_path) as elsewhere:
            assert await state(elsewhere, task) is TaskState.PENDING_REVIEW
            await elsewhere.pool.tasks.reject(task.id, feedback)
            with pytest.raises(Conflict, match="is pending; only a task in pending_review"):
                await elsewhere.pool.tasks.approve(task.id)
        async with opened(tmp_path) as m:
            await drive(m)
    async with opened(tmp_path) as m:
        waiting = await m.pool.tasks.get(task.id)
        assert waiting.reply is not None
        assert waiting.rejections == 2
        assert "shorter" in waiting.reply.text
        assert "kinder" in waiting.reply.text
        await m.pool.tasks.approve(task.id)
        await drive(m)
        assert await state(m, task) is TaskState.COMPLETED


async def test_of_two_who_reject_a_task_at_once_one_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as m, opened(tmp_path) as elsewhere:
        task = await m.pool.tasks.submit(TaskSpec(prompt="write", review=True))
        await drive(m)
        rejecting = (one.pool.tasks.reject(task.id, "shorter") for one in (m, elsewhere, m))
        outcomes = await asyncio.gather(*rejecting, return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
        assert len(refused) == 2
        assert (await m.pool.tasks.get(task.id)).rejections == 1
        await drive(m)
        waiting = await m.pool.tasks.get(task.id)
        assert (waiting.state, waiting.rounds, waiting.rejections) == (TaskState.PENDING_REVIEW, 2, 1)
        await m.pool.tasks.reject(task.id, "kinder")


async def test_a_task_that_is_rejected_too_often_has_failed_with_the_last_feedback(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="write", review=True, max_rejections=2))
        for number, feedback in enumerate(("one", "two"), 1):
            await drive(m)
            rejected = await m.pool.tasks.reject(task.id, feedback)
            assert (rejected.rejections, rejected.is_rejected_for_good) == (number, number == 2)
        await drive(m)
        failed = await m.pool.tasks.get(task.id)
        assert (failed.state, failed.rejections, failed.rounds) == (TaskState.FAILED, 2, 2)
        assert "rejected 2 times" in str((failed.run.error or {})["message"])
        assert failed.run.error is not None
        assert "the last feedback: two" in str(failed.run.error["message"])
        with pytest.raises(Conflict, match="maximum number of rejections"):
            await m.pool.tasks.retry(task.id)
        with pytest.raises(BadArgument, match="needs feedback"):
            await m.pool.tasks.reject(task.id, " ")


async def test_cancel_ends_the_process_and_is_final(tmp_path: Path) -> None:
    async with opened(tmp_path, TOML + SLOW) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="slow"))
        queued = await m.pool.tasks.submit(TaskSpec(prompt="later"))
        await m.pool.tasks.cancel(queued.id)
        serving = asyncio.create_task(m.pool.driver().serve(until_idle=True))
        await until(m, task, TaskState.RUNNING)
        await m.pool.tasks.cancel(task.id)
        await serving
        assert await state(m, task) is TaskState.CANCELED
        assert (await m.pool.tasks.get(queued.id)).run.started_at is None
        assert (await m.pool.tasks.cancel(task.id)).state is TaskState.CANCELED
        known = await m._backend.store.processes.all(m._backend.engine.driver.host)
        assert [process for process in known if process.pid is not None] == []


async def test_a_failed_task_is_tried_again_under_its_id_and_fails_those_that_depend_on_it(tmp_path: Path) -> None:
    flaky = '[agents.flaky]\nkind = "program"\nmode = "plain"\ncommand = ["cat", "answer.txt"]\n'
    async with opened(tmp_path, TOML + flaky) as m:
        first = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="flaky"))
        second = await m.pool.tasks.submit(TaskSpec(prompt="y", after=(first.id,)))
        third = await m.pool.tasks.submit(TaskSpec(prompt="z"))
        await drive(m)
        assert [await state(m, one) for one in (first, second, third)] == ["failed", "failed", "completed"]
        error = (await m.pool.tasks.get(second.id)).run.error
        assert error is not None
        assert f"task {first.id}, on which it depends, failed" in str(error["message"])
        (tmp_path / "answer.txt").write_text("now")
        again = await m.pool.tasks.retry(first.id)
        assert again.id == first.id
        await drive(m)
        assert (await m.pool.tasks.get(first.id)).state is TaskState.COMPLETED
        with pytest.raises(Conflict, match="only a failed or canceled task"):
            await m.pool.tasks.retry(first.id)


async def test_a_budget_pays_for_ten_of_fifty_and_raising_it_lets_the_others_go_on(tmp_path: Path) -> None:
    toml = TOML.replace('agent = "sim/echo"', 'agent = "paid"\nbudget_usd = 1.0') + PAID.replace("COST", "0.10")
    async with opened(tmp_path, toml) as m:
        tasks = [await m.pool.tasks.submit(TaskSpec(prompt=f"t{n}", budget_usd=0.10)) for n in range(50)]
        await drive(m)
        states = [await state(m, task) for task in tasks]
        assert (states.count(TaskState.COMPLETED), states.count(TaskState.PENDING)) == (10, 40)
        left = await m.pool.tasks.get(tasks[-1].id)
        assert "$1.00 of the pool's budget of $1.00 is spent" in left.refusal
        with pytest.raises(BudgetExhausted, match=r"\$1.00"):
            await m.pool.tasks.submit(TaskSpec(prompt="more", budget_usd=0.10))
        await m.pool.set_budget("1.50")
        await drive(m)
        status = await m.pool.status()
        assert (status.tasks[TaskState.COMPLETED], status.cost.total) == (15, 1_500_000)


async def committed(m: Muster, most: int) -> int:
    """Return what the pool has settled, by the ledger, and what the tasks at work may cost beside that."""
    balances = m._backend.store.runs.balances
    pool = (await balances([POOL_LEVEL]))[POOL_LEVEL]
    assert pool.cap is not None
    assert pool.settled + pool.reserved <= pool.cap
    levels = {task.run.lineage_level for task in await m.pool.tasks.list([TaskState.RUNNING])}
    own = await balances(levels)
    assert set(own) == levels
    return pool.settled + sum(most - balance.settled for balance in own.values())


async def test_tasks_that_cost_half_of_what_they_may_leave_money_for_more(tmp_path: Path) -> None:
    held.calls.reset()
    toml = '[pool]\nslots = 8\nagent = "held"\nbudget_usd = 1.0\n' + held.TOML + "budget_usd = 0.10\n"
    async with opened(tmp_path, toml) as m:
        for n in range(25):
            await m.pool.tasks.submit(TaskSpec(prompt=f"t{n}", budget_usd=0.10))
        serving = asyncio.create_task(drive(m))
        for done in range(19):
            fitting = min(8, (1_000_000 - 50_000 * done) // 100_000)  # at their maximum, with what is left
            async with asyncio.timeout(60):
                while (await m.pool.tasks.counts())[TaskState.COMPLETED] < done or len(held.calls.open) < fitting:
                    await m._backend.store.changes.wait(1.0, m._backend.store.changes.commits)
            assert len(held.calls.open) == fitting
            assert await committed(m, most=100_000) == 50_000 * done + 100_000 * fitting <= 1_000_000
            held.calls.answer(next(iter(held.calls.open)), cost_usd=0.05)
        await serving
        status = await m.pool.status()
        assert status.cost.total == 950_000
        assert status.tasks[TaskState.COMPLETED] == 19  # the last one that may cost a tenth when 0.90 are spent
        assert status.tasks[TaskState.PENDING] == 6


async def test_what_can_never_be_done_is_refused_before_it_is_stored(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        wrong: list[tuple[TaskSpec, type[Exception]]] = [
            (TaskSpec(prompt="x", agent="nobody"), BadConfiguration),
            (TaskSpec(prompt="x", slot="nobody"), BadArgument),
            (TaskSpec(prompt="x", cwd="../elsewhere"), BadArgument),
            (TaskSpec(prompt="x", cwd="/etc"), BadArgument),
            (TaskSpec(prompt="x", after=("nothing",)), NotFound),
            (TaskSpec(prompt="x", settings={"effort": "high"}), BadConfiguration),
        ]
        for spec, error in wrong:
            with pytest.raises(error):
                await m.pool.tasks.submit(spec)
        with pytest.raises(BadArgument):
            TaskSpec(prompt=" ")
        assert list(await m.pool.tasks.list()) == []


async def test_claims_are_atomic_oldest_first_and_a_busy_slot_gets_none(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        first, second = [await m.pool.tasks.submit(TaskSpec(prompt=text, review=True)) for text in ("a", "b")]
        await m.pool.scale(2)
        claimed = await m.pool.tasks.claim("coder")
        assert claimed is not None
        assert claimed.id == first.id
        assert await m.pool.tasks.claim("coder") is None
        with pytest.raises(NotFound):
            await m.pool.tasks.claim("nobody")
        other = await m.pool.tasks.claim("slot-2")
        assert other is not None
        assert other.id == second.id
        await drive(m)
        assert await state(m, first) is TaskState.PENDING_REVIEW


async def test_scaling_stays_within_its_bounds(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        assert len(await m.pool.scale(4)) == 4
        assert len(await m.pool.scale("+2")) == 6
        assert len(await m.pool.scale("-5")) == 1
        for wrong, why in (("17", "max_slots"), ("-1", "min_slots"), ("many", "not a number")):
            with pytest.raises(BadArgument, match=why):
                await m.pool.scale(wrong)
        assert len(await m.pool.slots()) == 1


async def test_a_drained_pool_refuses_new_work_until_it_is_started_again(tmp_path: Path) -> None:
    async with opened(tmp_path, TOML + SLOW) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="slow"))
        later = await m.pool.tasks.submit(TaskSpec(prompt="later", after=(task.id,)))
        serving = asyncio.create_task(m.pool.driver().serve())
        await until(m, task, TaskState.RUNNING)
        async with opened(tmp_path, TOML + SLOW) as elsewhere:
            status = await elsewhere.pool.drain(0.1)
            assert status.draining
        await serving
        assert {slot.state for slot in await m.pool.slots()} == {"stopped"}
        assert [await state(m, one) for one in (task, later)] == [TaskState.PENDING, TaskState.PENDING]
        with pytest.raises(Conflict, match="drained"):
            await m.pool.tasks.submit(TaskSpec(prompt="new"))
        await m.pool.tasks.cancel(task.id)
        await drive(m)
        assert await state(m, later) is TaskState.FAILED
        await m.pool.tasks.submit(TaskSpec(prompt="new"))


async def test_messages_reach_a_slot_in_its_next_prompt_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        await m.pool.scale(2)
        await m.pool.send("coder", "look at the tests", sender="slot-2")
        assert await m.pool.broadcast("all hands", sender="slot-2") == ["coder"]
        assert [message.payload for message in await m.pool.unread("coder")] == ["look at the tests", "all hands"]
        with pytest.raises(NotFound):
            await m.pool.send("nobody", "x")
        task = await m.pool.run(TaskSpec(prompt="work", slot="coder"))
        assert task.reply is not None
        assert "Message from slot-2:\nlook at the tests" in task.reply.text
        assert not await m.pool.unread("coder")
        again = await m.pool.run(TaskSpec(prompt="work", slot="coder"))
        assert again.reply is not None
        assert again.reply.text == "work"


async def test_a_broadcast_reaches_the_slots_that_stay_while_others_go(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        for number in range(5):
            await m.pool.scale(8)
            names, _ = await asyncio.gather(m.pool.broadcast(f"message {number}"), m.pool.scale(2))
            assert {"coder", "slot-2"} <= set(names)
        assert [message.payload for message in await m.pool.unread("coder")] == [f"message {n}" for n in range(5)]
        with pytest.raises(BadArgument, match="between 1 and"):
            await m.pool.broadcast(" ")


async def test_running_a_task_waits_only_so_long_for_a_slot(tmp_path: Path) -> None:
    toml = TOML.replace("slots = 2", "slots = 1\nslot_assignment_timeout_secs = 0.2") + SLOW
    async with opened(tmp_path, toml) as m:
        busy = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="slow"))
        serving = asyncio.create_task(m.pool.driver().serve())
        await until(m, busy, TaskState.RUNNING)
        async with opened(tmp_path, toml) as elsewhere:
            with pytest.raises(TimedOut, match=r"within 0.2 s"):
                await elsewhere.pool.run(TaskSpec(prompt="now"))
        await m.pool.tasks.cancel(busy.id)
        serving.cancel()
        await asyncio.wait({serving})


async def test_only_one_process_drives_the_pool(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        await m.pool.tasks.submit(TaskSpec(prompt="x"))
        await drive(m)
        assert await m.pool.living_driver() is None


async def test_a_pending_task_can_be_changed_and_a_begun_one_cannot(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="old"))
        changed = await m.pool.tasks.amend(task.id, prompt="new", priority=7)
        assert (changed.spec.prompt, changed.spec.priority) == ("new", 7)
        await drive(m)
        done = await m.pool.tasks.get(task.id)
        assert done.reply is not None
        assert done.reply.text == "new"
        with pytest.raises(Conflict):
            await m.pool.tasks.amend(task.id, prompt="newer")


async def test_a_task_that_is_done_here_is_no_driver_for_others(tmp_path: Path) -> None:
    toml = TOML.replace("slots = 2", "slots = 1") + SLOW
    async with opened(tmp_path, toml) as m, opened(tmp_path, toml) as elsewhere:
        busy = asyncio.create_task(m.pool.run(TaskSpec(prompt="x", agent="slow"), name="busy"))
        async with asyncio.timeout(60):
            while not any(task.state is TaskState.RUNNING for task in await m.pool.tasks.list()):
                await m._backend.store.changes.wait(1.0, m._backend.store.changes.commits)
        assert await elsewhere.pool.living_driver() is None
        waits = asyncio.create_task(elsewhere.pool.run(TaskSpec(prompt="now")))
        await m.pool.tasks.cancel("busy")  # its slot is free then, and the other task goes on by itself
        assert (await busy).state is TaskState.CANCELED
        assert (await waits).state is TaskState.COMPLETED


async def test_a_task_that_is_tried_again_with_a_higher_budget_pays_for_nothing_twice(tmp_path: Path) -> None:
    async with opened(tmp_path, TOML + PAID.replace("COST", "0.03")) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="write", agent="paid", review=True, budget_usd=0.05))
        await drive(m)
        with pytest.raises(
            BudgetExhausted, match=r"has \$0\.02 of its budget of \$0\.05 left, and another call of agent"
        ):
            await m.pool.tasks.reject(task.id, "again")  # its agent keeps to no limit
        unchanged = await m.pool.tasks.get(task.id)
        assert (unchanged.state, unchanged.run.cap) == (TaskState.PENDING_REVIEW, 50_000)
        await m.pool.tasks.reject(task.id, "again", budget_usd=0.20)
        await drive(m)
        waiting = await m.pool.tasks.get(task.id)
        assert (waiting.state, waiting.rejections, waiting.run.total.settled) == (TaskState.PENDING_REVIEW, 1, 60_000)


async def test_a_task_that_was_tried_again_is_one_row_of_what_was_spent(tmp_path: Path) -> None:
    broken = PAID.replace("COST", "0.03").replace("echo '", "exit 1; echo '")
    async with opened(tmp_path, TOML + broken) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="write", agent="paid"))
        await drive(m)
        for _ in range(2):
            await m.pool.tasks.retry(task.id)
            await drive(m)
        failed, costs = await m.pool.tasks.get(task.id), await m.costs(1)
        assert (failed.state, failed.cost.spent.uncertain) == (TaskState.FAILED, 300_000)
        assert [(run.id, run.cost) for run in costs.runs] == [(failed.run.id, failed.cost)]


CAPPED = """
[agents.capped]
kind = "cli"
command = ["printf", '{"result": "%s", "cost": 0.01}', "{budget}"]
output = "json"
answer = "$.result"
cost_usd = "$.cost"
budget_usd = 0.10
"""


async def test_each_round_is_capped_by_what_is_left_of_the_budget(tmp_path: Path) -> None:
    async with opened(tmp_path, TOML + CAPPED) as m:
        spec = TaskSpec(prompt="write", agent="capped", review=True, budget_usd=0.10, max_rejections=9)
        task = await m.pool.tasks.submit(spec)
        told = []
        for number in range(4):
            await drive(m)
            waiting = await m.pool.tasks.get(task.id)
            assert (waiting.state, waiting.run.total.settled) == (TaskState.PENDING_REVIEW, 10_000 * (number + 1))
            told.append(float(waiting.reply.text if waiting.reply else "0"))
            await m.pool.tasks.reject(task.id, "again")
        assert told == pytest.approx([0.08, 0.072, 0.064, 0.056])  # 80 percent of what is left


async def test_a_task_with_too_little_left_says_so_before_it_is_tried_again(tmp_path: Path) -> None:
    """What a crash left uncertain does not end a task: it goes on with what is left, or with a new total."""
    async with opened(tmp_path, TOML + TOLD) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="write", agent="told", budget_usd=0.15))
        await drive(m)  # fails, and nobody knows what it cost
        assert (await m.pool.tasks.get(task.id)).run.total.settled == 100_000
        await m.pool.tasks.retry(task.id)
        await drive(m)  # with the five cents that were left
        failed = await m.pool.tasks.get(task.id)
        assert (failed.state, failed.run.total.settled) == (TaskState.FAILED, 150_000)
        with pytest.raises(BudgetExhausted, match=r"has \$0\.00 of its budget of \$0\.15 left") as refused:
            await m.pool.tasks.retry(task.id)
        assert refused.value.suggestions == ("set a new total with --budget, at least $0.16",)
        assert (await m.pool.tasks.get(task.id)).run.id == failed.run.id
        (tmp_path / "ready").touch()
        await m.pool.tasks.retry(task.id, budget_usd=0.20)
        await drive(m)
        assert (await m.pool.tasks.get(task.id)).state is TaskState.COMPLETED


TOLD = """
[agents.told]
kind = "cli"
command = ["sh", "-c", "test -e ready || exit 1; echo $0", "{budget}"]
output = "text"
budget_usd = 0.10
"""


HELD = """
[agents.held]
kind = "cli"
command = ["sh", "-c", "test -e ready || { touch begun; sleep 600; }; echo $0", "{budget}"]
output = "text"
budget_usd = 0.10
"""


async def test_a_task_whose_money_a_killed_process_left_uncertain_stays_pending_until_it_has_more(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, TOML + HELD) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="write", agent="held", budget_usd=0.10))
    command = (sys.executable, "-m", "muster", "pool", "start", "--until-idle")
    driver = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"})
    await until_exists(tmp_path / "begun")
    driver.kill()
    await driver.wait()
    async with opened(tmp_path, TOML + HELD) as m:
        told: list[MusterError] = []
        await m.pool.driver(on_error=lambda run, error: told.append(error)).serve(until_idle=True)
        stands = await m.pool.tasks.get(task.id)
        assert (stands.state, stands.cost.spent.uncertain) == (TaskState.PENDING, 100_000)
        assert stands.refusal.endswith(
            "has $0.00 of its budget of $0.10 left, and another call of agent 'held' needs at least $0.01"
        )
        assert stands.remedy == f"muster task retry {task.id} --budget USD"
        assert [(error.message, error.suggestions) for error in told] == [(stands.refusal, (stands.remedy,))]
        with pytest.raises(BudgetExhausted, match=r"has \$0\.00 of its budget of \$0\.10 left"):
            await m.pool.tasks.retry(task.id)
        assert (await m.pool.tasks.get(task.id)).run == stands.run
        (tmp_path / "ready").touch()
        await m.pool.tasks.retry(task.id, budget_usd=0.20)
        with pytest.raises(Conflict, match="is pending; only a failed or canceled task can be tried again"):
            await m.pool.tasks.retry(task.id)
        await drive(m)
        done = await m.pool.tasks.get(task.id)
        assert (done.state, done.run.id) == (TaskState.COMPLETED, stands.run.id)


@pytest.mark.parametrize(("total", "told"), [(0.12, 0.064), (1.0, 0.08)])  # 80 percent
async def test_the_agent_is_told_of_the_higher_budget_up_to_its_own(tmp_path: Path, total: float, told: float) -> None:
    async with opened(tmp_path, TOML + TOLD) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="write", agent="told", budget_usd=0.04))
        await drive(m)
        failed = await m.pool.tasks.get(task.id)
        assert (failed.state, failed.run.total.settled) == (TaskState.FAILED, 40_000)  # nobody knows what it cost
        (tmp_path / "ready").touch()
        await m.pool.tasks.retry(task.id, budget_usd=total)
        await drive(m)
        done = await m.pool.tasks.get(task.id)
        assert (done.state, float(done.reply.text if done.reply else "0")) == (TaskState.COMPLETED, told)
