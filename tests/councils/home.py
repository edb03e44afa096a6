"""A folder with the agents of a council, a rehearsal server behind both providers, and a store beside them."""

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from muster.app import Muster, open_muster
from muster.councils.retelling import retell
from muster.councils.rules.anonymity import labels_for
from muster.councils.rules.outcome import CouncilOutcome
from muster.councils.rules.values import CouncilMember, CouncilPhase
from muster.councils.spec import CouncilSpec, stored
from muster.domain.canonical import Json, canonical
from muster.domain.entry import Entry, EntryKind, Event
from muster.domain.rules import CURRENT
from muster.domain.run import Run
from muster.judging.asked import RecordedCall
from muster.settings import load_settings
from muster.sim.server import Server, serve
from tests.pool.chains.home import BRISK
from tests.suites.stage import QUICK, playing

SEED = 7
PROGRAM = Path(__file__).parent / "programs" / "member.py"


def program(behaviour: str = "good", answer: str = "42", word: str = "42") -> list[str]:
    """Return the command of a member of the exec protocol."""
    return [sys.executable, "-I", "-S", str(PROGRAM), behaviour, answer, word]


def declared(agents: Mapping[str, Sequence[str]], more: str = "", each: str = "") -> str:
    """Return the settings of agents that are programs, with lines for each of them and after all."""
    sections = [
        f'[agents.{name}]\nkind = "program"\ncommand = {json.dumps(list(argv))}\n{each}'
        for name, argv in agents.items()
    ]
    return "\n".join([*sections, more])


def spec_of(*members: str | CouncilMember, question: str = "What is 6 × 7?", **more: Any) -> CouncilSpec:
    """Return a council of members by their names, with a seed that stays the same."""
    made = tuple(one if isinstance(one, CouncilMember) else CouncilMember(name=one) for one in members)
    return CouncilSpec(question=question, members=made, **{"seed": SEED, **more})


def rules(members: Sequence[str], models: Sequence[str], rounds: int = 1) -> list[Mapping[str, Any]]:
    """Return what the models answer: each its name's own proposal, and everybody favours the first of them."""
    made: list[Mapping[str, Any]] = []
    for name in models:
        model = name.partition("/")[2]
        for number in range(1, rounds + 1):
            labels = labels_for(name, members, round_number=number, phase=CouncilPhase.EVALUATE, seed=SEED)
            items: list[Json] = [
                {"candidate": label, "weight": 80 if agent == models[0] else -20, "critique": "so it is", "claims": []}
                for label, agent in labels.shown
            ]
            answer = json.dumps({"evaluations": items})
            made.append({"model": model, "text": f"# Round {number} of at most \\d+: evaluate", "answer": answer})
        proposal = json.dumps({"text": f"42, says {model}", "claims": ["42"], "final_scratchpad": ""})
        made.append({"model": model, "text": ": propose", "answer": proposal})
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilHome:
    """Everything that a test of councils needs."""

    folder: Path
    muster: Muster
    server: Server

    async def hold(self, spec: CouncilSpec, **options: Any) -> Run:
        """Hold a council to its end."""
        return await (await self.muster.start("deliberation", stored(spec), **options)).wait()

    async def outcome(self, spec: CouncilSpec, **options: Any) -> CouncilOutcome:
        """Hold a council that completes, and return what it came to."""
        run = await self.hold(spec, **options)
        assert run.result is not None, run.error
        return msgspec.convert(run.result, CouncilOutcome)

    async def calls(self, run: Run) -> list[Entry]:
        """Return the calls of a run as they stand in its journal."""
        found = [entry async for entry in self.muster._backend.store.archive.entries(run.id)]
        return [entry for entry in found if entry.kind is EntryKind.CALL]

    async def require_retold(self, run: Run, *, has_budget: bool = False) -> None:
        """Fail unless the calls of a council bear out what it says of itself, its end too."""
        calls = {
            entry.key: RecordedCall(agent=entry.agent or "", request=entry.request, reply=entry.reply)
            for entry in await self.calls(run)
        }
        assert canonical(retell(run.spec, run.result, calls, CURRENT, has_budget)) == canonical(run.result)

    async def events(self, run: Run, kind: str) -> list[Event]:
        """Return the events of a kind."""
        return [event for event in await self.muster.runs.events(run.id) if event.kind == kind]


@asynccontextmanager
async def council_home(folder: Path, *rules: Mapping[str, Any], toml: str = "") -> AsyncIterator[CouncilHome]:
    """Open a store in a folder; the server answers by the rules."""
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
            yield CouncilHome(folder=folder, muster=muster, server=server)
