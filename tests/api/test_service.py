"""What a server does by itself: tells hooks of every ending, writes down what users do, and takes the pool over."""

import asyncio
import json
import resource
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from muster.app import Muster, open_muster
from muster.app.service import Service
from muster.app.serving.limits import StartRate
from muster.app.starts import Starts
from muster.domain.errors import Conflict, LimitReached, NotFound, StoreFailed
from muster.domain.run import Run, RunState, StartRequest, User
from muster.settings import load_settings
from muster.testing.clock import FakeClock
from tests.forkserver import Forked

from .server import PATIENCE, SETTINGS, Project
from .test_hooks import WRITES, told

ASKED = {"agent": "sim/echo", "prompt": "x"}
HOOKS = '[hooks]\non_end = ["python3", "hook.py"]\n'


def opened(folder: Path, toml: str = HOOKS, **more: Any) -> Any:
    (folder / "hook.py").write_text(WRITES)
    (folder / "muster.toml").write_text(toml)
    return open_muster(settings=load_settings(folder=folder, environment={"PATH": "/usr/bin:/bin"}), **more)


@asynccontextmanager
async def serving(muster: Muster, on_note: Callable[[str], None] = print) -> AsyncIterator[None]:
    service = Service(muster, on_note=on_note)
    driving = asyncio.create_task(service.drive())
    try:
        yield
    finally:
        service.close()
        await driving


async def test_a_hook_is_told_of_runs_that_nobody_drove_when_they_were_canceled(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        unknown = await m.submit("ask", {"agent": "sim/echo", "prompt": "x"})
        async with serving(m):
            await m.runs.get(unknown.id)
            assert [one["id"] for one in await asyncio.to_thread(told, tmp_path, 1)] == [unknown.id]
        waiting = await m.submit("ask", {"agent": "sim/echo", "prompt": "x"})
        await m.runs.cancel(waiting.id)  # while no server runs
    async with opened(tmp_path) as m, serving(m):
        ended = await asyncio.to_thread(told, tmp_path, 2)
        assert (ended[-1]["id"], ended[-1]["state"]) == (waiting.id, "canceled")


async def test_a_hook_that_was_added_is_not_told_of_what_ended_before(tmp_path: Path) -> None:
    async with opened(tmp_path, "") as m, serving(m):
        old = await m.submit("ask", {"agent": "sim/echo", "prompt": "x"})
        await old.wait()
    async with opened(tmp_path) as m, serving(m):
        new = await m.submit("ask", {"agent": "sim/echo", "prompt": "x"})
        assert [one["id"] for one in await asyncio.to_thread(told, tmp_path, 1)] == [new.id]


async def test_a_hook_that_fails_is_told_again_and_at_last_given_up(tmp_path: Path) -> None:
    clock, notes = FakeClock(), list[str]()
    async with opened(tmp_path, '[hooks]\non_end = ["sh", "-c", "exit 3"]\n', clock=clock) as m:
        await m.hooks.prepare()
        run = await m.submit("ask", {"agent": "sim/echo", "prompt": "x"})
        await m.runs.cancel(run.id)
        for number in range(5):
            assert await m.hooks.tell_due((), notes.append) == 1
            assert len(notes) == number + 1
            assert await m.hooks.tell_due((), notes.append) == 0  # not at once
            clock.advance(86_400)
        assert await m.hooks.tell_due((), notes.append) == 0
        assert "for the last time" in notes[-1]


async def test_what_a_user_does_is_written_down_before_it_is_done(tmp_path: Path) -> None:
    async with opened(tmp_path, "") as m:
        async with m.audit.action("cancel", "x", client="c", request_id="r") as doing:
            assert [(one.subject, one.outcome) for one in await m.audit.list()] == [("x", "unknown")]
            doing.subject = "run"
        with pytest.raises(Conflict):
            async with m.audit.action("cancel", "y", client="c", request_id="r"):
                raise Conflict("it has ended")
        with pytest.raises(NotFound):
            async with m.audit.action("cancel", "z", client="c", request_id="r"):
                raise NotFound("no such run")
        found = [(one.subject, one.outcome) for one in await m.audit.list()]
        assert found == [("y", "conflict"), ("run", "done")]


# The point at which a server dies, and whether the run that it was to start, or to cancel, is started or canceled.
@pytest.mark.parametrize(("point", "done"), [("audit.begun", False), ("audit.acted", True)])
@pytest.mark.parametrize("action", ["start ask", "cancel"])
async def test_a_server_that_dies_beside_an_act_leaves_a_record(
    tmp_path: Path, action: str, point: str, done: bool
) -> None:
    project, cancels = Project(tmp_path), action == "cancel"
    project.variables["MUSTER_CRASH_AT"] = f"{point}:{1 + cancels}"  # to be canceled, it is started first
    with project.serve() as server:
        if cancels:
            assert server.post("/api/ask", {"agent": "me", "prompt": "x", "id": "mine"}).status == 202
        with pytest.raises(OSError):  # before it has answered
            server.post(*(("/api/runs/mine/cancel",) if cancels else ("/api/ask", {**ASKED, "id": "mine"})))
        server.process.wait(PATIENCE)
    async with opened(tmp_path, "") as m:
        record = (await m.audit.list())[0]
        assert (record.action, record.subject, record.outcome) == (action, "mine", "unknown")
        found = [run.id for run in await m.runs.list([RunState.CANCELED] if cancels else [])]
        assert found == (["mine"] if done else [])


async def test_a_server_that_dies_after_an_act_has_recorded_what_came_of_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.variables["MUSTER_CRASH_AT"] = "audit.begun:2"
    with project.serve() as server:
        assert server.post("/api/ask", {**ASKED, "id": "mine"}).status == 202
        with pytest.raises(OSError):
            server.post("/api/ask", ASKED)
        server.process.wait(PATIENCE)
    async with opened(tmp_path, "") as m:
        assert [one.outcome for one in await m.audit.list()] == ["unknown", "done"]


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file of this process grow."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


async def test_a_server_outlives_a_disk_that_was_full(tmp_path: Path) -> None:
    clock, told, notes = FakeClock(), asyncio.Queue[str](), list[str]()
    async with opened(tmp_path, "", clock=clock, on_wait=told.put_nowait) as m, serving(m, notes.append):
        while not await m.runs.workers():
            await m.runs._store.changes.wait(PATIENCE, m.runs._store.changes.commits)
        with full_disk():
            clock.advance(60)  # it tells again that it is there, which waits for room
            words = await asyncio.wait_for(told.get(), PATIENCE)
            with pytest.raises(StoreFailed, match="cannot grow"):
                await m.submit("ask", {"agent": "sim/echo", "prompt": "x"})
        assert "cannot grow: this process may make no file larger than 1 bytes" in words
        assert "and it continues by itself" in words
        while await m.store.shortage() is not None:
            await m.runs._store.changes.wait(0.02, m.runs._store.changes.commits)
        run = await m.submit("ask", {"agent": "sim/echo", "prompt": "x"})
        ended = asyncio.ensure_future(run.wait())
        while not ended.done():
            await asyncio.wait({ended}, timeout=0.05)
            clock.advance(1)
        assert ended.result().state is RunState.COMPLETED
    assert notes == []  # it never stopped to take runs


async def test_the_starts_of_a_minute_count_over_a_restart(tmp_path: Path) -> None:
    clock = FakeClock()
    user = User(request=StartRequest(client="10.0.0.1"))

    async def begin(muster: Muster) -> Run:
        run: Run = await (await muster.submit("ask", {"agent": "sim/echo", "prompt": "x"})).run()
        return run

    for number in range(2):
        async with opened(tmp_path, "[serve]\nstarts_per_minute = 2\n", clock=clock) as m:
            await Starts(m).start(user, begin)
            clock.advance(1 + number)
    async with opened(tmp_path, "[serve]\nstarts_per_minute = 2\n", clock=clock) as m:
        with pytest.raises(LimitReached) as caught:
            await Starts(m).start(user, begin)
        assert caught.value.retry_after == pytest.approx(57)
        StartRate(clock, 2).recall([("10.0.0.1", clock.now() + 9)])
        clock.advance(57)
        await Starts(m).start(user, begin)


def test_a_task_that_nobody_would_do_is_refused(project: Project) -> None:
    with project.serve() as server:
        answer = server.post("/api/tasks", {"prompt": "x", "agent": "sim/echo"})
        assert (answer.status, answer.error["code"]) == (409, "conflict")
        assert "no process runs the pool" in answer.error["message"]
        assert server.get("/api/tasks").json["tasks"] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_server_drives_the_pool_when_the_process_that_did_has_ended(project: Project, number: int) -> None:
    project.declare('\n[pool]\nagent = "sim/echo"\nslots = 1\n', SETTINGS)
    words = ("pool", "start")
    with Forked("muster", words, folder=project.folder, environment=project.environment) as other:
        assert "running the pool" in other.stderr.readline()
        with project.serve() as server:
            assert json.dumps(other.pid) in server.process.stderr.readline()
            first = server.post("/api/tasks", {"prompt": "one"}).json["id"]
            server.until(first, "completed")
            other.send_signal(number)
            other.wait(PATIENCE)
            second = server.post("/api/tasks", {"prompt": "two"}).json["id"]
            assert server.until(second, "completed")["result"]
            assert str(server.process.pid) in json.dumps(server.get("/api/pool").json)
