"""A stage for verifications: a folder of code, a rehearsal server behind each provider, and a store beside it."""

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.app import Muster, open_muster
from muster.domain.agent import Timeouts
from muster.domain.dispatch import Dispatch
from muster.domain.entry import Entry, EntryKind
from muster.domain.run import Run, RunState
from muster.engine.batches.base import Patience
from muster.settings import load_settings
from muster.sim.options import Options
from muster.sim.server import Server, serve
from muster.verify.declaration.verification import Kind, Marker, Shape, Verification, Verifier
from muster.verify.findings.journal import AgentReport, WaveReport
from muster.verify.reports.run import open_waves_run
from muster.verify.reports.summary import VerifyReport, summarize
from muster.verify.sources.markers import read_markers
from muster.verify.spec import stored
from tests.suites.stage import QUICK, playing

ANTHROPIC = "anthropic/claude-haiku-5-5"
OPENAI = "openai/gpt-5-mini"
BRISK = Patience(settle=0.05, poll_first=0.01, poll_longest=0.05, grace=0.2)
HASTY = Timeouts(connect=60.0, idle=2.0, call=2.0, grace=0.5)
CODE = "def add(one, other):\n    return one + other\n"
PENDING = ".muster/pending"


def said(file: str = "a.py", line: int = 1, severity: str = "high", **more: Any) -> dict[str, Any]:
    """Give a finding as a model gives it."""
    return {"file": file, "line": line, "severity": severity, "finding": f"line {line} is wrong", **more}


def a_report(*findings: Mapping[str, Any], **more: Any) -> str:
    """Spell a whole reply."""
    return json.dumps({"findings": list(findings), **more})


CLEAN = a_report()
GOOD_REVIEW = a_report(score=9.5, parts={"security": 9.0})
GOOD_TESTS = a_report(coverage=90)


def replying(**answers: Any) -> Options:
    """Set a server up that answers each agent of `a_model` by its name, and everybody else with no findings."""
    rules = [{"text": f"(?s)# Your task.*I am {name}\\.", "answer": answer} for name, answer in answers.items()]
    return playing(*rules, {"answer": CLEAN})


def a_model(name: str, wave: int = 1, **more: Any) -> Verifier:
    """Make a verifier that a rehearsal server can tell from others."""
    given = {"model": ANTHROPIC, "thresholds": ("critical + high == 0", "rejected == 0"), **more}
    return Verifier(name=name, wave=wave, prompt=f"I am {name}.", **given)


def a_reviewer(name: str = "reviewer", wave: int = 2, **more: Any) -> Verifier:
    return a_model(name, wave, shape=Shape.REVIEW, **{"thresholds": ("score >= 9.0",), **more})


def a_checker(name: str, program: str, wave: int = 1, **more: Any) -> Verifier:
    """Make a verifier that is a program in Python; what it prints is read as lines."""
    given = {"parser": "lines", "thresholds": ("total == 0",), **more}
    return Verifier(name=name, wave=wave, kind=Kind.COMMAND, command=(sys.executable, "-c", program), **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class WavesStage:
    """Everything that a test of verifications needs."""

    folder: Path
    root: Path  # of the code
    muster: Muster
    anthropic: Server
    openai: Server

    def write(self, **files: str) -> None:
        """Write files of Python by their names."""
        for name, text in files.items():
            (self.root / f"{name}.py").write_text(text, encoding="utf-8")

    @property
    def files(self) -> tuple[str, ...]:
        """All files of the code, in order."""
        found = (path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file())
        return tuple(sorted(path for path in found if not path.startswith(".muster/")))

    def mark(self, name: str, *files: str) -> Path:
        """Leave a marker that names files."""
        path = self.root / PENDING / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(files), encoding="utf-8")
        return path

    @property
    def markers(self) -> tuple[Marker, ...]:
        return read_markers(self.root / PENDING, self.root)

    def spec(self, *verifiers: Verifier, **rest: Any) -> Verification:
        """Make a spec over all files, with all markers that there are."""
        given = {"root": str(self.root), "files": self.files, "markers": self.markers, **rest}
        return Verification(verifiers=verifiers, **given)

    async def verify(self, *verifiers: Verifier, how: str | Dispatch = "live", **rest: Any) -> Run:
        """Verify all files to the end; what is not about the spec is said with `order`."""
        order = rest.pop("order", {})
        return await self.drive(self.spec(*verifiers, **rest), dispatch=how, **order)

    async def drive(self, spec: Verification, **rest: Any) -> Run:
        return await (await self.muster.start("waves", stored(spec), **rest)).wait()

    async def go_on(self, run: Run, **rest: Any) -> Run:
        return await (await self.muster.resume(run.id, **rest)).wait()

    async def again(self, run: Run) -> Run:
        """Drive a run that was made and not begun."""
        return await self.muster.runs.drive(run).wait()

    async def waves(self, run: Run) -> tuple[WaveReport, ...]:
        """Give the reports of the waves, of a run that came to its end."""
        assert run.state is RunState.COMPLETED, run.error
        return (await open_waves_run(self.muster._backend.store, run)).waves

    async def agents(self, run: Run) -> dict[str, AgentReport]:
        return {agent.agent: agent for wave in await self.waves(run) for agent in wave.agents}

    async def report(self, run: Run) -> VerifyReport:
        """Give what every report is made from."""
        return await summarize(await open_waves_run(self.muster._backend.store, run))

    async def calls(self, run: Run) -> list[Entry]:
        """Give the calls of a run as they stand in the journal."""
        found = [entry async for entry in self.muster._backend.store.archive.entries(run.id)]
        return [entry for entry in found if entry.kind is EntryKind.CALL]


@asynccontextmanager
async def stage(
    folder: Path,
    anthropic: Options | None = None,
    openai: Options | None = None,
    *,
    files: Mapping[str, str] | None = None,
    timeouts: Timeouts | None = None,
    patience: Patience = BRISK,
) -> AsyncIterator[WavesStage]:
    """Open a store in a folder, with code below it and a server behind each provider; without more all is well."""
    root = folder / "code"
    root.mkdir(exist_ok=True)
    for name, text in ({"a.py": CODE} if files is None else files).items():
        (root / name).write_text(text, encoding="utf-8")
    async with AsyncExitStack() as closing:
        usual = replying(reviewer=GOOD_REVIEW, tester=GOOD_TESTS)
        first = await closing.enter_async_context(serve(anthropic or usual))
        second = await closing.enter_async_context(serve(openai or usual))
        environment = {
            "PATH": os.environ["PATH"],
            "ANTHROPIC_API_KEY": "sk-test-0123456789",
            "ANTHROPIC_BASE_URL": first.anthropic,
            "OPENAI_API_KEY": "sk-test-9876543210",
            "OPENAI_BASE_URL": second.openai,
        }
        settings = load_settings(folder=folder, environment=environment)
        opening = open_muster(settings=settings, policy=QUICK, patience=patience, timeouts=timeouts)
        muster = await closing.enter_async_context(opening)
        yield WavesStage(folder=folder, root=root, muster=muster, anthropic=first, openai=second)


def lasting(waves: Sequence[WaveReport]) -> list[WaveReport]:
    """Give reports without what the clock says."""
    return [
        replace(wave, started_at=0.0, ended_at=0.0, agents=tuple(replace(one, seconds=0.0) for one in wave.agents))
        for wave in waves
    ]
