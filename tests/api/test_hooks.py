"""Hooks and retention: what is told when a run ends or waits, and what is forgotten."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from muster.app import open_muster
from muster.domain.errors import BadExit, InvalidRequest, NotFound
from muster.settings import load_settings
from muster.testing.clock import FakeClock

from .server import SETTINGS, Project

WRITES = """import sys, pathlib
pathlib.Path("told.jsonl").open("a").write(sys.stdin.read() + "\\n")
"""


def told(folder: Path, number: int) -> list[dict[str, Any]]:
    """Wait until a hook has written so many lines."""
    file, end = folder / "told.jsonl", time.monotonic() + 60
    while time.monotonic() < end:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) >= number:
            return [json.loads(line) for line in lines]
        time.sleep(0.05)
    raise AssertionError("the hook was not told")


def test_commands_get_the_run_on_standard_input(project: Project) -> None:
    (project.folder / "hook.py").write_text(WRITES)
    project.declare('\n[hooks]\non_end = ["python3", "hook.py"]\non_review = ["python3", "hook.py"]\n', SETTINGS)
    with project.serve() as server:
        run = server.post("/api/ask", {"agent": "me", "prompt": "What?"}).json["id"]
        (waits,) = told(project.folder, 1)
        assert (waits["id"], waits["state"], waits["questions"][0]["prompt"]) == (run, "waiting", "What?")
        server.post(f"/api/runs/{run}/answer", {"text": "That."})
        _, ended = told(project.folder, 2)
        assert (ended["id"], ended["state"], ended["result"]["text"]) == (run, "completed", "That.")


@contextmanager
def webhook(status: int) -> Iterator[tuple[str, "Queue[bytes]"]]:
    received: Queue[bytes] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.put(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_webhook_gets_the_run(project: Project) -> None:
    with webhook(204) as (url, received):
        project.declare(f'\n[hooks]\non_end = "{url}"\n', SETTINGS)
        with project.serve() as server:
            run = server.ask()
            assert json.loads(received.get(timeout=60))["id"] == run


async def test_a_hook_that_fails_is_an_error_that_changes_nothing(tmp_path: Path) -> None:
    with webhook(500) as (url, _):
        for target, kind in ((f'"{url}"', InvalidRequest), ('["sh", "-c", "exit 3"]', BadExit)):
            (tmp_path / "muster.toml").write_text(f"[hooks]\non_end = {target}\n")
            settings = load_settings(folder=tmp_path, environment={"PATH": "/usr/bin:/bin"})
            async with open_muster(settings=settings) as m:
                run = await (await m.start("ask", {"agent": "sim/echo", "prompt": "x"})).wait()
                with pytest.raises(kind):
                    await m.hooks.tell(run)


async def test_what_ended_long_ago_is_forgotten_with_its_key_and_what_is_needed_stays(tmp_path: Path) -> None:
    clock = FakeClock()
    settings = load_settings(folder=tmp_path, environment={})
    async with open_muster(settings=settings, clock=clock) as m:
        old = (await (await m.start("ask", {"agent": "sim/echo", "prompt": "old"})).wait()).id
        waiting = await m.submit("ask", {"agent": "sim/echo", "prompt": "queued"})
        clock.advance(31 * 86_400)
        new = (await (await m.start("ask", {"agent": "sim/echo", "prompt": "new"})).wait()).id
        assert await m.runs.forget_ended(clock.now() - 30 * 86_400) == 1
        with pytest.raises(NotFound):
            await m.runs.get(old)
        assert (await m.runs.get(new)).state == "completed"
        assert (await waiting.run()).state == "queued"
        assert await m.runs.forget_ended(clock.now() - 30 * 86_400) == 0


SUITE = """
schema_version: 1
skill_or_agent: desk
cases:
  - id: desk/says
    description: It says it.
    input: { messages: [{ role: user, content: yes }] }
    expected: { output: [{ kind: contains, value: "yes" }] }
"""


async def test_all_that_is_old_is_forgotten_however_much_of_it_must_stay(tmp_path: Path) -> None:
    clock = FakeClock()
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk/cases.yaml").write_text(SUITE)
    settings = load_settings(folder=tmp_path, environment={})
    async with open_muster(settings=settings, clock=clock) as m:
        spec = {"path": [str(tmp_path / "desk")], "agents": ["sim/echo"]}
        kept = [(await (await m.start("suite", spec)).wait()).id for _ in range(3)]
        for run in kept:
            await m.suites.baselines.set(f"of-{run}", run)
        for number in range(5):
            await (await m.start("ask", {"agent": "sim/echo", "prompt": str(number)})).wait()
        clock.advance(31 * 86_400)
        assert await m.runs.forget_ended(clock.now() - 30 * 86_400, page=2) == 5
        assert {run.id for run in await m.runs.list()} == set(kept)
