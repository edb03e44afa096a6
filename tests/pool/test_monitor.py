"""The log of a task and a look at the pool, while other hands drive it."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path

import pytest

from muster.app.pool.monitor import LogRecord, PoolSnapshot
from muster.domain.errors import Conflict
from muster.domain.isolation import Isolation
from muster.domain.task import TaskState
from muster.pool.tasks import TaskSpec

from .test_pool import TOML, drive, opened

SCRIPT = """echo '{"d": "half "}'; until test -e go; do sleep 0.05; done; echo '{"a": "half done"}'"""
WRITER = f"""
[agents.writer]
kind = "cli"
command = {json.dumps(["sh", "-c", SCRIPT])}
output = "jsonl"
delta = "$.d"
answer = "$.a"
ends = "$.a"
budget_usd = 1
"""


def texts(records: list[LogRecord]) -> list[str]:
    return [record.text for record in records if record.event is None and record.text]


async def test_a_log_is_followed_from_the_first_words_to_the_end_without_doubles(tmp_path: Path) -> None:
    async with opened(tmp_path, TOML + WRITER) as m, asyncio.timeout(60):
        task = await m.pool.tasks.submit(TaskSpec(prompt="write", agent="writer", isolation=Isolation.NONE))
        driving = asyncio.ensure_future(drive(m))
        records: list[LogRecord] = []
        async with aclosing(m.pool.monitor.logs(task.id, follow=True)) as log:
            async for record in log:
                records.append(record)
                if texts(records) == ["half "]:
                    (tmp_path / "go").touch()
        await driving
        assert texts(records) == ["half ", "done"]
        assert [one.event.kind for one in records if one.event][-1] == "run.completed"
        kept = [one async for one in m.pool.monitor.logs(task.id)]
        assert texts(kept) == ["half done"]


async def test_a_log_tells_what_reviews_said_and_what_a_program_wrote_before_it_failed(tmp_path: Path) -> None:
    broken = '[agents.broken]\nkind = "program"\ncommand = ["sh", "-c", "echo why >&2; exit 3"]\nmode = "plain"\n'
    async with opened(tmp_path, TOML + broken) as m:
        reviewed = await m.pool.tasks.submit(TaskSpec(prompt="hello", review=True))
        failed = await m.pool.tasks.submit(TaskSpec(prompt="hello", agent="broken"))
        await drive(m)
        await m.pool.tasks.reject(reviewed.id, "louder")
        await drive(m)
        await m.pool.tasks.approve(reviewed.id)
        await drive(m)
        log = [one async for one in m.pool.monitor.logs(reviewed.id)]
        said = [one.text for one in log if one.event and one.event.kind == "signal.received"]
        assert said == ["rejected: louder", "approved"]
        errors = [one.text async for one in m.pool.monitor.logs(failed.id) if one.event and one.event.data.get("error")]
        assert errors
        assert all("why" in text for text in errors)


async def test_the_pool_is_seen_whenever_it_changes(tmp_path: Path) -> None:
    async with opened(tmp_path, TOML + WRITER) as m, asyncio.timeout(60):
        for _ in range(3):
            await m.pool.tasks.submit(TaskSpec(prompt="write", agent="writer", isolation=Isolation.NONE))
        driving = asyncio.ensure_future(drive(m))
        seen: list[PoolSnapshot] = []
        async with aclosing(m.pool.monitor.watch()) as snapshots:
            async for snapshot in snapshots:
                seen.append(snapshot)
                if set(snapshot.writing.values()) == {"half"} and len(snapshot.writing) == 2:
                    (tmp_path / "go").touch()
                if snapshot.at_rest:
                    break
        await driving
        assert seen[0].status.tasks[TaskState.PENDING] == 3 - seen[0].status.tasks[TaskState.RUNNING]
        assert seen[-1].status.tasks[TaskState.COMPLETED] == 3
        assert {slot.state for slot in seen[-1].status.slots} == {"idle"}


async def test_tasks_at_work_come_first_and_those_that_are_left_out_are_counted(tmp_path: Path) -> None:
    async with opened(tmp_path, TOML + WRITER) as m, asyncio.timeout(60):
        await m.pool.tasks.submit(TaskSpec(prompt="first", review=True))
        await drive(m)
        running = await m.pool.tasks.submit(
            TaskSpec(prompt="write", agent="writer", isolation=Isolation.NONE, priority=1)
        )
        driving = asyncio.ensure_future(drive(m))
        async with aclosing(m.pool.monitor.watch(limit=1)) as snapshots:
            async for snapshot in snapshots:
                if snapshot.status.tasks[TaskState.RUNNING]:
                    break
        assert [task.id for task in snapshot.tasks] == [running.id]
        assert snapshot.left_out == 1
        (tmp_path / "go").touch()
        await driving


async def test_a_task_that_waits_for_others_is_not_begun_where_nobody_does_them(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        first = await m.pool.tasks.submit(TaskSpec(prompt="first"))
        with pytest.raises(Conflict, match=f"task {first.id}, on which it depends, is pending"):
            await m.pool.run(TaskSpec(prompt="second", after=(first.id,)))
        assert len(await m.pool.tasks.list()) == 1
        await drive(m)
        assert (await m.pool.run(TaskSpec(prompt="second", after=(first.id,)))).state is TaskState.COMPLETED
