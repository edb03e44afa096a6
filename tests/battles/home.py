"""A folder with scripted sides and judges, a rehearsal server behind both providers, and a store beside them."""

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.app import Muster, open_muster
from muster.app.battles.battles import BattleReport, BattleSpec
from muster.app.battles.scales import ScaleReport, ScaleSpec
from muster.domain.entry import Entry, EntryKind
from muster.domain.run import Run
from muster.engine.batches.base import Patience
from muster.settings import load_settings
from muster.sim.server import Server, serve
from tests.pool.chains.home import BRISK
from tests.suites.stage import QUICK, playing

GOAL = "A table for two is booked"
BOOKED = "Your table is booked: number 4711."
Rules = Sequence[Mapping[str, Any]]


def verdict(word: str, confidence: float, reason: str = "so it is") -> str:
    """Spell what a judge answers."""
    return json.dumps({"verdict": word, "confidence": confidence, "criteria": ["booked"], "reason": reason})


YES, NO = verdict("yes", 0.9), verdict("no", 0.1)
CLERK: Rules = ({"turn": 3, "answer": BOOKED}, {"answer": "For how many?"})
GUEST: Rules = ({"answer": "For two."},)
JUDGE: Rules = ({"text": "Propose a better prompt", "answer": "{}"}, {"text": "4711", "answer": YES}, {"answer": NO})


def scripted(folder: Path, name: str, rules: Rules, more: str = "") -> str:
    """Write the script of an agent, and return its section."""
    (folder / f"{name}.yaml").write_text(json.dumps({"rules": list(rules)}), encoding="utf-8")
    return f'[agents.{name}]\nkind = "scripted"\nscript = "{name}.yaml"\n{more}\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleHome:
    """Everything that a test of battles needs."""

    folder: Path
    muster: Muster
    server: Server

    def spec(self, agent: str = "clerk", counterpart: str = "guest", **more: Any) -> BattleSpec:
        """Return a battle about a table, judged by the scripted judge unless it says otherwise."""
        return self.muster.battles.spec(agent, counterpart, **{"goal": GOAL, "judge": "judge", **more})

    async def play(self, spec: BattleSpec, **options: Any) -> BattleReport:
        """Play a battle to its end."""
        handle = await self.muster.battles.start(spec, self.muster.runs.options(**options))
        return await self.muster.battles.status((await handle.wait()).id)

    async def measure(self, spec: ScaleSpec, **options: Any) -> ScaleReport:
        """Play a scale test to its end."""
        handle = await self.muster.battles.scales.start(spec, self.muster.runs.options(**options))
        return await self.muster.battles.scales.status((await handle.wait()).id)

    async def calls(self, run: Run) -> list[Entry]:
        """Return the calls of a run as they stand in its journal."""
        found = [entry async for entry in self.muster._backend.store.archive.entries(run.id)]
        return [entry for entry in found if entry.kind is EntryKind.CALL]

    async def questions(self, run: str, number: int) -> None:
        """Wait until so many questions of a run and its children are open."""
        while len(await self.muster.runs.questions(run)) < number:
            await self.muster._backend.store.changes.wait(0.5, self.muster._backend.store.changes.commits)

    async def stored(self) -> int:
        """Return how many runs the store has."""
        return len(await self.muster.runs.list())


@asynccontextmanager
async def battle_home(
    folder: Path,
    *rules: Mapping[str, Any],
    clerk: Rules = CLERK,
    guest: Rules = GUEST,
    judge: Rules = JUDGE,
    price: str = "",
    toml: str = "",
    patience: Patience = BRISK,
) -> AsyncIterator[BattleHome]:
    """Open a store in a folder; the server answers by the rules, and the scripted agents by theirs."""
    sections = [scripted(folder, "clerk", clerk, price), scripted(folder, "guest", guest)]
    sections += [scripted(folder, "judge", judge, price), toml]
    (folder / "muster.toml").write_text("\n".join(sections), encoding="utf-8")
    async with serve(playing(*rules)) as server:
        environment = {
            "PATH": os.environ["PATH"],
            "ANTHROPIC_API_KEY": "sk-test-0123456789",
            "ANTHROPIC_BASE_URL": server.anthropic,
            "OPENAI_API_KEY": "sk-test-9876543210",
            "OPENAI_BASE_URL": server.openai,
        }
        settings = load_settings(folder=folder, environment=environment)
        async with open_muster(settings=settings, policy=QUICK, patience=patience) as muster:
            yield BattleHome(folder=folder, muster=muster, server=server)
