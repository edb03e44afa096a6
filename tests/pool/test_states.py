"""The states of tasks under any order of commands: no illegal step, terminal is final, a canceled one never starts."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import muster
from muster.app import Muster
from muster.domain.errors import Conflict
from muster.pool.tasks import TaskSpec, TaskState
from muster.settings import load_settings

S = TaskState
# What a command or a driver may make of a state; to stay is always allowed.
ALLOWED = {
    S.PENDING: {S.RUNNING, S.PENDING_REVIEW, S.COMPLETED, S.FAILED, S.CANCELED},
    S.RUNNING: {S.PENDING, S.PENDING_REVIEW, S.COMPLETED, S.FAILED, S.CANCELED},
    S.PENDING_REVIEW: {S.PENDING, S.COMPLETED, S.FAILED, S.CANCELED},
    S.COMPLETED: set(),
    S.FAILED: {S.PENDING},  # only by a retry
    S.CANCELED: {S.PENDING},  # only by a retry
}
COMMANDS = st.tuples(st.sampled_from(["cancel", "approve", "reject", "retry", "drive"]), st.integers(0, 2))
SPECS = (
    TaskSpec(prompt="plain"),
    TaskSpec(prompt="reviewed", review=True, max_rejections=2),
    TaskSpec(prompt="fails", agent="sim/fail"),
)


async def command(m: Muster, name: str, task: str) -> bool:
    """Do something; returns whether it was allowed."""
    try:
        if name == "drive":
            await m.pool.driver().serve(until_idle=True)
        elif name == "reject":
            await m.pool.tasks.reject(task, "again")
        else:
            await getattr(m.pool.tasks, name)(task)
    except Conflict:
        return False
    return True


async def play(folder: Path, commands: list[tuple[str, int]]) -> None:
    (folder / "muster.toml").write_text('[pool]\nslots = 1\nagent = "sim/echo"\n')
    async with muster.open(settings=load_settings(folder=folder, environment={})) as m:
        ids = [(await m.pool.tasks.submit(spec)).id for spec in SPECS]
        canceled_before_start: set[str] = set()
        for name, number in commands:
            before = [await m.pool.tasks.get(task) for task in ids]
            allowed = await command(m, name, ids[number])
            after = [await m.pool.tasks.get(task) for task in ids]
            for place, (old, new) in enumerate(zip(before, after, strict=True)):
                assert new.state is old.state or new.state in ALLOWED[old.state], (name, old.state, new.state)
                final = old.state in (S.COMPLETED, S.FAILED, S.CANCELED)
                if final and new.state is not old.state:
                    assert (name, place) == ("retry", number)
                if name != "drive" and place != number:
                    assert new.state is old.state
                if new.state is S.CANCELED and new.run.started_at is None:
                    canceled_before_start.add(new.id)
                if new.id in canceled_before_start and new.state is S.CANCELED:
                    assert new.run.started_at is None, "a canceled task was started"
            if not allowed:
                assert [one.state for one in before] == [one.state for one in after]
            if name == "cancel":
                assert after[number].state is before[number].state or after[number].state is S.CANCELED


@settings(max_examples=15, deadline=None)
@given(st.lists(COMMANDS, max_size=8))
def test_no_order_of_commands_makes_an_illegal_step(commands: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder), commands))
