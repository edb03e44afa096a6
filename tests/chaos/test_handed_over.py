"""Continuations and forks for workers: killed after any commit, a process leaves no run that none of them takes."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.app import Muster
from muster.domain.run import Run, RunState, StartRequest, User
from muster.engine.queue.base import is_due
from muster.settings import load_settings
from tests import forked

ROOT = Path(__file__).parent.parent.parent
TOML = """
[agents.refusing]
kind = "program"
command = ["false"]
"""
REQUEST = StartRequest(client="c", key="k", digest="d")


@muster.workload("test-handed-over")
async def asks(ctx: muster.Context, spec: Any) -> Any:
    return (await ctx.call("refusing", "b", key="b")).text


async def hand_over(m: Muster, door: str, run: str) -> Run:
    """Hand a run on to the workers as a server does: the same request again gives the same run."""
    acting = m.acting_for(User(request=REQUEST))
    known = await acting.runs.requested()
    if known is not None:
        return known
    return await (acting.submit_resume(run) if door == "resume" else acting.runs.submit_fork(run, "b"))


async def main(folder: Path, door: str, run: str, crash_at: str) -> None:
    settings = load_settings(folder / "home", folder=folder, environment={"MUSTER_CRASH_AT": crash_at})
    async with muster.open(settings=settings) as m:
        await hand_over(m, door, run)


@pytest.mark.parametrize("door", ["resume", "fork"])
async def test_what_is_handed_to_workers_is_due_wherever_the_process_was_killed(tmp_path: Path, door: str) -> None:
    (tmp_path / "muster.toml").write_text(TOML)
    async with muster.open(settings=load_settings(tmp_path / "home", folder=tmp_path, environment={})) as m:
        failed = await (await m.start("test-handed-over", None)).wait()
        assert failed.state is RunState.FAILED
        ends: list[int] = []
        while 0 not in ends:
            given = (str(tmp_path), door, failed.id, f"store.after_commit:{len(ends) + 1}")
            process = await forked.start("tests.chaos.test_handed_over", *given, folder=ROOT, environment={})
            _, err = await process.communicate()
            ends.append(process.returncode or 0)
            assert ends[-1] in (0, -signal.SIGKILL), err
            made = [run for run in await m.runs.list() if run.id != failed.id]
            assert all(is_due(run) for run in made)
        assert len(ends) > 1
        assert [run.id for run in made] == [(await hand_over(m, door, failed.id)).id]


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
