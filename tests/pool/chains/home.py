"""A folder with chains, a rehearsal server behind both providers, and a store beside them."""

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.app import Muster, open_muster
from muster.domain.entry import Entry, EntryKind, Event
from muster.domain.run import Run
from muster.engine.batches.base import Patience
from muster.pool.chains.chain import StepStatus
from muster.pool.chains.progress import ChainProgress
from muster.settings import load_settings
from muster.sim.audit import Audit
from muster.sim.server import Server, serve
from tests.suites.stage import QUICK, playing

MODEL = "anthropic/claude-haiku-5-5"
OPENAI = "openai/gpt-5-mini"
BRISK = Patience(settle=0.5, poll_first=0.01, poll_longest=0.05, grace=0.2)

Step = dict[str, Any]


def prompt(name: str, text: str = "hello", **more: Any) -> Step:
    """Write a step that asks an agent."""
    return {"name": name, "prompt": text, **more}


def command(name: str, *argv: str, **more: Any) -> Step:
    """Write a step that runs a command."""
    return {"name": name, "command": list(argv), **more}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHome:
    """Everything that a test of chains needs."""

    folder: Path
    muster: Muster
    server: Server

    def write(self, *steps: Step, name: str = "chain.yaml", **top: Any) -> Path:
        """Write a chain, which is JSON and so YAML too."""
        path = self.folder / name
        path.write_text(json.dumps({"name": "chain", "agent": "sim/echo", **top, "steps": steps}), encoding="utf-8")
        return path

    async def run(self, *steps: Step, given: Mapping[str, Any] | None = None, rows: Any = (), **top: Any) -> Run:
        """Run a chain to its end."""
        options, folder = top.pop("options", {}), top.pop("folder", self.folder)
        chain = self.muster.chains.load(self.write(*steps, **top))
        spec = self.muster.chains.spec(chain, given, rows=rows, folder=folder)
        return await (await self.muster.chains.start(spec, self.muster.runs.options(**options))).wait()

    async def go_on(self, run: Run, **more: Any) -> Run:
        """Resume a chain and drive it to its end."""
        return await (await self.muster.chains.resume(run.id, **more)).wait()

    async def progress(self, run: Run) -> ChainProgress:
        return await self.muster.chains.progress(run.id)

    async def outputs(self, run: Run) -> dict[str, str]:
        """Give the outputs of the steps that were completed."""
        found = (await self.progress(run)).steps
        return {step.name: step.output for step in found if step.status is StepStatus.COMPLETED}

    async def statuses(self, run: Run) -> dict[str, str]:
        return {step.name: str(step.status) for step in (await self.progress(run)).steps}

    async def calls(self, run: Run) -> list[Entry]:
        """Give the calls of a run as they stand in its journal."""
        found = [entry async for entry in self.muster._backend.store.archive.entries(run.id)]
        return [entry for entry in found if entry.kind is EntryKind.CALL]

    async def events(self, run: Run) -> list[Event]:
        return list(await self.muster.runs.events(run.id))

    @property
    def audit(self) -> Audit:
        return self.server.audit


@asynccontextmanager
async def chain_home(folder: Path, *rules: Mapping[str, Any], toml: str = "") -> AsyncIterator[ChainHome]:
    """Open a store in a folder; the server answers by the rules, and repeats what no rule is about."""
    if toml:
        (folder / "muster.toml").write_text(toml, encoding="utf-8")
    async with serve(playing(*rules)) as server:
        environment = {
            "PATH": os.environ["PATH"],
            "ANTHROPIC_API_KEY": "sk-test-0123456789",
            "ANTHROPIC_BASE_URL": server.anthropic,
            "OPENAI_API_KEY": "sk-test-9876543210",
            "OPENAI_BASE_URL": server.openai,
        }
        settings = load_settings(folder=folder, environment=environment)
        async with open_muster(settings=settings, policy=QUICK, patience=BRISK) as muster:
            yield ChainHome(folder=folder, muster=muster, server=server)
