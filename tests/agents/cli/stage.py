"""A stage for CLI agents: real processes, and the declarations that stand in the documentation."""

import asyncio
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from muster.agents.base import Agent
from muster.agents.processes import system
from muster.agents.processes.registry import ProcessRegistry
from muster.app.agent_kinds.programs import make_cli
from muster.domain.agent import Profile, Timeouts
from muster.domain.call import Reply, Request, ask
from muster.settings.file import fit, read_agent
from muster.settings.sections import CliSection
from muster.testing.agents import RememberedProcesses

DOCUMENT = Path(__file__).parents[3] / "docs" / "AGENTS.md"
SCRIPTED = (sys.executable, "-m", "muster.sim.cli_agent")
PATIENT = Timeouts(call=120.0, idle=120.0)
BARE = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def blocks(language: str) -> list[str]:
    """Give the examples of the documentation."""
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


def declared(name: str) -> CliSection:
    """Give the section of an agent as the documentation declares it."""
    agents = {key: each for block in blocks("toml") for key, each in tomllib.loads(block).get("agents", {}).items()}
    section = read_agent(name, agents[name])
    assert isinstance(section, CliSection)
    return section


def section_of(**settings: Any) -> CliSection:
    """Make a section."""
    return fit({"kind": "cli", "budget_usd": 0.5, **settings}, CliSection, ("agents", "one"))


@dataclass(frozen=True)
class Stage:
    """Where the agents of one test are made and asked."""

    processes: ProcessRegistry
    remembered: RememberedProcesses
    folder: Path
    variables: Mapping[str, str] = field(default_factory=lambda: dict(BARE))

    def agent(self, section: CliSection, *, unpriced_ok: bool = False) -> Agent:
        """Make an agent of a section."""
        return make_cli(
            "one",
            section,
            profile=Profile(name="one", limiter="cli:one"),
            processes=self.processes,
            variables=self.variables,
            folder=self.folder,
            unpriced_ok=unpriced_ok,
        )

    def rehearsal(self, *arguments: str, **changes: Any) -> Agent:
        """Make the scripted CLI agent as it is documented, with some arguments more and other settings."""
        section = declared("simulated")
        command = (*SCRIPTED, *section.command[3:], *arguments)
        return self.agent(msgspec.structs.replace(section, command=command, **changes))

    def playing(self, steps: Sequence[Mapping[str, Any]], **changes: Any) -> Agent:
        """Make the scripted CLI agent with steps of its own."""
        script = self.folder / "script.json"
        script.write_text(json.dumps([{"steps": list(steps)}]))
        return self.rehearsal("--script", str(script), **changes)

    def python(self, program: str, **settings: Any) -> Agent:
        """Make an agent of a few lines of Python."""
        return self.agent(section_of(command=(sys.executable, "-c", program), **settings))

    def alive(self) -> list[int]:
        """Find everything alive that carries a token of this registry."""
        houses = {process.token for process in self.remembered.seen if process.pid is None}
        return [pid for house in houses for pid, _ in system.with_token(house + ".") if system.started(pid) is not None]

    @property
    def started(self) -> int:
        """How many processes were started."""
        return sum(process.pid is not None for process in self.remembered.seen)


async def call(agent: Agent, prompt: str = "hello", timeouts: Timeouts = PATIENT, **rest: Any) -> Reply:
    """Ask once."""
    request: Request = replace(ask(prompt), **rest)
    return await agent.call(request, timeouts)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that nobody tells of."""
    while not condition():  # noqa: ASYNC110  # the processes of others tell no event
        await asyncio.sleep(0.005)
