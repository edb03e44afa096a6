"""The driver of a task killed at every point around a question for permission: nothing is paid twice."""

import asyncio
import json
import signal

from muster.domain.task import TaskState
from muster.pool.tasks import TaskSpec
from tests import forked
from tests.chaos.stage import PATIENCE, Stage
from tests.pool.test_permissions import POOL, RULES, coder, started

DENIED = [rule for rule in RULES if rule["match"] in ("Bash was denied", "install")]


async def drive(stage: Stage, crash_at: str | None = None) -> int:
    """Start a process that drives the pool until nothing is left to do, and return its exit code."""
    environment = stage.environment | ({} if crash_at is None else {"MUSTER_CRASH_AT": crash_at})
    process = await forked.start(
        "muster", "pool", "start", "--until-idle", folder=stage.folder, environment=environment
    )
    _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert b"Traceback" not in err, err.decode()
    return process.returncode or 0


async def test_a_question_is_asked_once_and_answered_once_wherever_the_driver_dies(stage: Stage) -> None:
    (stage.folder / "muster.toml").write_text(POOL + coder(stage.folder))
    (stage.folder / "script.json").write_text(json.dumps(DENIED))
    async with stage.open() as muster:
        task = await muster.pool.tasks.submit(TaskSpec(prompt="install it"))
    for point in ("call.settled:1", "run.before_release:1"):  # the question is booked; the task waits for the answer
        assert await drive(stage, point) == -signal.SIGKILL, point
    assert await drive(stage) == 0
    async with stage.open() as muster:
        waiting = await muster.pool.tasks.get(task.id)
        assert waiting.permission is not None
        assert (waiting.state, waiting.permission.tool) == (TaskState.PENDING_REVIEW, "Bash")
        await muster.pool.tasks.deny(task.id, "no", client_id="once")
    assert len(started(stage.folder)) == 1
    for point in ("signal.before_take:1", "signal.taken:1", "call.before_open:1", "call.settled:1"):
        assert await drive(stage, point) == -signal.SIGKILL, point
    assert await drive(stage) == 0
    async with stage.open() as muster:
        done = await muster.pool.tasks.get(task.id)
        assert done.state is TaskState.COMPLETED
        attempts = await muster._backend.store.archive.attempts(done.run.id)
        assert sorted(attempt.key for attempt in attempts) == ["work/000", "work/000/permission/001"]
    assert len(started(stage.folder)) == 2
