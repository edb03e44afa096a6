"""A run that sleeps outlives its worker: killed at once, another wakes it when the moment has come, and only once."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from muster.app import open_muster
from muster.domain.run import TERMINAL, Run, RunState
from muster.settings import load_settings
from tests.chaos.fleets import wait_until
from tests.forkserver import Forked
from tests.variants import first_of

NAP_SECONDS = 5
TOML = """
[workloads]
import = ["naps"]

[agents.late]
kind = "program"
command = ["sh", "-c", "touch asked; test -e ready || sleep 600; echo answered"]
mode = "plain"
"""
WORK = f"""
import asyncio
import time
from pathlib import Path

import muster


def note(word):
    with Path("notes").open("a") as file:
        file.write(f"{{word}}\\n")
    return time.time()


@muster.workload("nap")
async def nap(ctx, spec):
    began = await ctx.step("before", lambda: note("before"))
    if spec["asks"]:  # then its worker keeps it
        await asyncio.gather(ctx.sleep("nap", {NAP_SECONDS}), ctx.call("late", "hello", key="ask"))
    else:
        await ctx.sleep("nap", {NAP_SECONDS})
    return await ctx.step("after", lambda: note("after")) - began
"""


class Project:
    """A folder whose workers are killed."""

    def __init__(self, folder: Path, database_url: str | None) -> None:
        self.folder = folder
        self._variables = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(folder)}
        self._variables |= {} if database_url is None else {"MUSTER_DATABASE_URL": database_url}
        (folder / "muster.toml").write_text(TOML)
        (folder / "naps.py").write_text(WORK)
        self._settings = load_settings(folder=folder, environment=self._variables)

    @contextmanager
    def worker(self) -> Iterator[Forked]:
        command = ("worker", "--quiet")
        with Forked("muster", command, folder=self.folder, environment=self._variables, shows_errors=True) as process:
            try:
                yield process
            finally:
                process.kill()

    async def submit(self, *, asks: bool) -> str:
        async with open_muster(settings=self._settings) as m:
            return (await m.submit("nap", {"asks": asks})).id

    async def until(self, run: str, holds: Callable[[Run], bool]) -> Run:
        async with open_muster(settings=self._settings) as m, asyncio.timeout(100):
            while not holds(found := await m.runs.find(run)):
                await m._backend.store.changes.wait(0.2, m._backend.store.changes.commits)
            return found


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    return Project(tmp_path, request.getfixturevalue("database_url") if request.param == "postgres" else None)


@pytest.mark.parametrize("asks", first_of([False, True]), ids=["let go of", "kept by its worker"])
async def test_a_run_that_sleeps_is_woken_by_another_worker_when_its_own_was_killed(
    project: Project, asks: bool
) -> None:
    with ExitStack() as stack:
        run = await project.submit(asks=asks)
        killed = stack.enter_context(project.worker())
        if asks:
            await asyncio.to_thread(wait_until, (project.folder / "asked").exists)
        else:
            await project.until(run, lambda one: one.state is RunState.WAITING)
        killed.kill()
        assert killed.wait() < 0
        (project.folder / "ready").touch()
        stack.enter_context(project.worker())
        done = await project.until(run, lambda one: one.state in TERMINAL)
    assert done.state is RunState.COMPLETED
    assert isinstance(done.result, float)
    assert done.result >= NAP_SECONDS
    assert (project.folder / "notes").read_text().split() == ["before", "after"]
