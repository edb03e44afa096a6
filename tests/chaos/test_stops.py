"""One Ctrl-C at any instant: what is on the wire is answered, nothing becomes uncertain, and nothing is paid twice.

The real process gets SIGINT, alone or with its whole group as from a terminal; then it is resumed, and stopped again.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests import forked
from tests.chaos import suites, work
from tests.chaos.stage import PATIENCE, Stage, until
from tests.forked import ForkedProcess
from tests.rehearsal import ForkedRehearsal

LATENCY_MS = 80
LATEST = {"ask": 0.1}  # seconds after a process has sent its first request; `ask` makes one call only
LATEST_OF_MANY = 0.35
CONCURRENCY = "4"
STOPS = 100
FAIR_SHARE = 0.3  # of the stops come while a call is on the wire; else the instants prove little
SCENES = ("ask", "run", "verify", "worker", "api")

NONE = json.dumps({"findings": []})
GOOD = json.dumps({"findings": [], "score": 9.5, "parts": {"design": 9}})
SCRIPT = {"rules": [*suites.SCRIPT["rules"], {"text": "Review it", "answer": GOOD}]}

SETTINGS = """
[workloads]
import = ["stopped_work"]
[agents.clerk]
kind = "program"
mode = "plain"
command = ["sh", "-c", "echo begun >> programs.log; sleep 0.1; cat; echo ended >> programs.log"]
"""

# A user's workload with branches that cancel each other, a child run, and a program that a terminal could reach.
WORK = """
import asyncio
import muster

@muster.workload("branches")
async def branches(ctx, spec):
    async with asyncio.TaskGroup() as group:
        for i in range(6):
            group.create_task(chain(ctx, spec, i))
        group.create_task(ctx.call("clerk", f"{spec['topic']} clerk", key="clerk"))
        if spec["deep"]:
            group.create_task(ctx.child("child", "branches", {"topic": spec["topic"] + " child", "deep": False}))

async def chain(ctx, spec, i):
    for turn in range(2):
        await ctx.call("anthropic/claude-haiku-5-5", f"{spec['topic']} {i} {turn}", key=f"{i}/{turn}")
        await ctx.step(f"{i}/{turn}/kept", lambda: turn)
"""

API = """
import asyncio, sys
import muster
from muster.domain.errors import NotFound

async def main(topic):
    async with muster.open() as m:
        try:
            handle = await m.resume(topic)
        except NotFound:
            handle = await m.start("branches", {"topic": topic, "deep": True}, name=topic, concurrency=4)
        await handle.result()

try:
    asyncio.run(main(sys.argv[1]))
except KeyboardInterrupt:
    sys.exit(4)
"""

SUBMIT = """
import asyncio, sys
import muster

async def main(topic):
    async with muster.open() as m:
        await m.submit("branches", {"topic": topic, "deep": True}, name=topic, concurrency=4)

asyncio.run(main(sys.argv[1]))
"""


@dataclass
class Scene:
    """One kind of command in a folder of its own, begun and resumed until it was stopped so often."""

    name: str
    stage: Stage
    pieces: int = 0
    on_wire: list[int] = field(default_factory=list)  # how many calls the provider was answering at each stop
    dice: random.Random = field(default_factory=random.Random)

    @property
    def stops(self) -> int:
        return len(self.on_wire)

    @property
    def busy(self) -> int:
        """How many stops came while at least one call was on the wire."""
        return sum(count > 0 for count in self.on_wire)

    def prepare(self) -> None:
        folder = self.stage.folder
        (folder / "stopped_work.py").write_text(WORK, encoding="utf-8")
        (folder / "muster.toml").write_text(SETTINGS, encoding="utf-8")
        suites.Play(cases=10, muddled=True).write(self.stage)
        checker = {"name": "checker", "wave": 1, "kind": "command", "parser": "json"}
        command = ["sh", "-c", f"echo begun >> programs.log; sleep 0.1; echo '{NONE}'; echo ended >> programs.log"]
        asked = {"model": work.ANTHROPIC, "shape": "review", "wave": 1, "thresholds": ["score >= 9"]}
        readers = [{"name": f"reader{i}", "prompt": f"Review it, as reader {i}.", **asked} for i in range(8)]
        agents = [{**checker, "command": command}, *readers]
        (folder / "verify.yaml").write_text(json.dumps({"agents": agents}), encoding="utf-8")
        (folder / "submitting.py").write_text(SUBMIT, encoding="utf-8")
        (folder / "using_api.py").write_text(API, encoding="utf-8")

    async def command(self) -> tuple[str, ...]:
        """Give the next command: go on with what was interrupted, or begin another piece of work."""
        if self.name == "worker":
            if "interrupted" not in self.states():
                self.pieces += 1
                await self.run_to_end("submitting", f"{self.name} {self.pieces}")
            return ("muster", "worker", "--until-idle")
        going_on = "interrupted" in self.states()
        self.pieces += not going_on
        if self.name == "api":
            return ("using_api", f"{self.name} {self.pieces}")
        if going_on:
            return ("muster", "runs", "resume", "last")
        return ("muster", *self._beginning())

    def _beginning(self) -> tuple[str, ...]:
        if self.name == "ask":
            return ("ask", work.ANTHROPIC, f"question {self.pieces}")
        if self.name == "run":
            Path(self.stage.folder / suites.FOLDER / "cases.yaml").write_text(self._cases(), encoding="utf-8")
            told = ("--agent", work.ANTHROPIC, "--judge", work.OPENAI, "--evaluator", "all")
            return ("run", suites.FOLDER, *told, "--concurrency", CONCURRENCY)
        (self.stage.folder / "code.py").write_text(f"number = {self.pieces}\n", encoding="utf-8")
        return ("verify", "code.py", "--concurrency", CONCURRENCY)

    def _cases(self) -> str:
        """Give other cases in each piece of work, so that every request is another one."""
        return suites.Play(cases=10, muddled=True).text().replace("item 0", f"item {self.pieces:04d}0")

    async def stop_once(self) -> None:
        """Start the next command and send it one SIGINT, at some instant after its first request."""
        before = self.stage.sim.audit().requests
        process = await self.start(*await self.command())

        async def begun() -> bool:
            return self.stage.sim.audit().requests > before or process.returncode is not None

        await until(begun)
        await asyncio.sleep(self.dice.uniform(0, LATEST.get(self.name, LATEST_OF_MANY)))  # any instant will do
        answering = self.stage.sim.audit().in_flight
        with contextlib.suppress(ProcessLookupError):  # it was done already
            (os.killpg if self.stops % 2 else os.kill)(process.pid, signal.SIGINT)
            self.on_wire.append(answering)
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert b"Traceback" not in err, err.decode()
        # By the signal itself only when everything was said and the interpreter was being torn down.
        assert process.returncode in (0, 1, 4, -signal.SIGINT), (process.returncode, out, err)
        self.check_certain()

    async def finish(self) -> None:
        """Go on without being stopped, until nothing is left."""
        while "interrupted" in self.states():
            await self.run_to_end(*await self.command())
        assert set(self.states()) <= {"completed"}, self.states()

    async def run_to_end(self, *command: str) -> None:
        process = await self.start(*command)
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        assert process.returncode in (0, 1), (out, err)

    async def start(self, *command: str) -> ForkedProcess:
        return await forked.start(*command, folder=self.stage.folder, environment=self.stage.environment, session=True)

    def states(self) -> Counter[str]:
        return Counter(state for (state,) in self.look("SELECT state FROM runs WHERE parent_id IS NULL"))

    def check_certain(self) -> None:
        """No attempt is open or uncertain, and no money is reserved."""
        assert self.look("SELECT run_id, key, state FROM attempts WHERE state NOT IN ('succeeded', 'unsent')") == []
        assert self.look("SELECT id, reserved FROM budgets WHERE reserved != 0") == []

    def look(self, sql: str) -> "list[tuple[str, ...]]":
        file = self.stage.folder / ".muster" / "muster.db"
        if not file.exists():
            return []
        database = sqlite3.connect(file)
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()

    def check_programs(self) -> None:
        """Every program that was started came to its end by itself."""
        file = self.stage.folder / "programs.log"
        lines = Counter(file.read_text(encoding="utf-8").split()) if file.exists() else Counter[str]()
        assert lines["begun"] == lines["ended"]


@pytest.fixture
def server() -> Iterator[ForkedRehearsal]:
    with ForkedRehearsal(latency_ms=LATENCY_MS, script=SCRIPT) as running:
        yield running


async def play(scene: Scene, stops: int) -> None:
    scene.prepare()
    while scene.stops < stops:
        await scene.stop_once()
    await scene.finish()
    scene.check_certain()
    scene.check_programs()
    audit = scene.stage.sim.audit()
    assert set(audit.by_digest.values()) == {1}
    print(
        f"{scene.name}: {scene.stops} stops, {scene.busy} of them with {sum(scene.on_wire)} calls on the wire, "
        f"{audit.calls} calls paid once"
    )


async def test_one_ctrl_c_leaves_nothing_uncertain_and_nothing_is_paid_twice(
    tmp_path: Path, server: ForkedRehearsal
) -> None:
    for name in SCENES:
        await play(Scene(name, Stage(tmp_path / name, server)), 1)


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SCENES)
async def test_one_ctrl_c_at_a_hundred_instants_leaves_nothing_uncertain_and_nothing_is_paid_twice(
    tmp_path: Path, server: ForkedRehearsal, name: str
) -> None:
    scene = Scene(name, Stage(tmp_path / name, server))
    await play(scene, STOPS)
    assert scene.busy >= STOPS * FAIR_SHARE
