"""What the tests of findings share: a chunk of two files, verifiers, replies, and runs in which somebody is asked."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from muster.app import open_muster
from muster.domain.call import Reply, Stop, Timings
from muster.domain.canonical import Json
from muster.domain.money import Microdollars
from muster.domain.run import Run, RunState
from muster.engine.context import Context
from muster.engine.workload import REGISTRY
from muster.settings import load_settings
from muster.verify.agents.checker import run_checker
from muster.verify.agents.model_agent import examine
from muster.verify.declaration.verification import Kind, Verifier
from muster.verify.findings.finding import Examined
from muster.verify.sources.source import Chunk, FileInfo, Piece
from tests.engine.house import Puppet, house

KEY = "wave/1/auditor/c1"
CHUNK = Chunk(
    name="c1",
    pieces=(Piece(path="a.py", first=1, last=10, of=10), Piece(path="lib/b.py", first=21, last=40, of=90)),
    text="<<<BEGIN FILE t a.py lines 1 to 10 of 10>>>\n    1| import os\n<<<END FILE t>>>\n",
)
AUDITOR = Verifier(name="auditor", model="critic", prompt="Look for {holes}.", max_tokens=777)


def said(file: Json = "a.py", line: Json = 3, **more: Json) -> dict[str, Json]:
    """Make a finding as a model gives it."""
    return {"file": file, "line": line, "severity": "high", "finding": "It is wrong", **more}


def report(*findings: Json, **more: Json) -> str:
    """Spell a reply."""
    return json.dumps({"findings": list(findings), **more})


def reply(text: str, *, stop: Stop = Stop.END, data: Json = None) -> Reply:
    timings = Timings(wire=1.5)
    return Reply(text=text, stop=stop, cost=Microdollars(10), model="critic-1", data=data, timings=timings)


@dataclass
class Session:
    """A run in which a model was asked about a chunk."""

    run: Run
    keys: list[str]
    heard: list[Examined]

    @property
    def examined(self) -> Examined:
        assert len(self.heard) == 1, self.run.error
        return self.heard[0]


async def session(folder: Path, by: Puppet, *, verifier: Verifier = AUDITOR, **rest: Any) -> Session:
    """Have a chunk examined in a run of its own."""
    heard: list[Examined] = []

    async def work(ctx: Context, spec: Any) -> Json:
        heard.append(await examine(ctx, verifier, CHUNK, key=KEY, cache="5m"))
        return None

    async with house(folder, critic=by) as h:
        run = await h.drive(work, **rest)
        keys = [entry.key async for entry in h.store.archive.entries(run.id)]
    return Session(run, keys, heard)


def info(folder: Path, *paths: str) -> tuple[FileInfo, ...]:
    """Say what is known of files as they are now."""
    found = []
    for path in paths:
        data = (folder / path).read_bytes()
        digest = sha256(data).hexdigest()
        found.append(FileInfo(path=path, digest=digest, lines=len(data.splitlines()), bytes=len(data)))
    return tuple(found)


def checker(*command: str, parser: str = "lines", **more: Any) -> Verifier:
    return Verifier(name="check", kind=Kind.COMMAND, command=command, parser=parser, **more)


async def checked(folder: Path, verifier: Verifier, files: Sequence[FileInfo], *, replay: bool = False) -> Examined:
    """Have a checker run over the files of a folder; a replay must find the same."""
    found: list[Examined] = []

    @REGISTRY.workload("test-checker")
    async def work(ctx: Context, spec: Any) -> Any:
        found.append(await run_checker(ctx, verifier, str(folder), files, key="wave/1/check/command"))

    settings = load_settings(folder=folder, environment={"PATH": os.environ["PATH"]})
    async with open_muster(settings=settings) as muster:
        run = await (await muster.start("test-checker", {})).wait()
        assert run.state is RunState.COMPLETED, run.error
        if replay:
            again = await muster.runs.drive(await muster.runs.replay(run.id)).wait()
            assert again.state is RunState.COMPLETED, again.error
    assert all(one == found[0] for one in found)
    return found[0]
