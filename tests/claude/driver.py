"""A driver that asks Claude Code and is killed while it waits: `python -m tests.claude.driver SETTINGS_AS_JSON`."""

import asyncio
import json
import sys
from pathlib import Path

from muster.agents.processes.registry import ProcessRegistry
from muster.agents.processes.system import this_process
from muster.app.agent_kinds.base import profile_of
from muster.app.agent_kinds.claude import make_claude
from muster.domain.agent import Timeouts
from muster.domain.call import ask
from muster.settings.sections import ClaudeSection
from tests.claude.registry import FileRegistry


async def drive(folder: Path, variables: dict[str, str], prompt: str) -> None:
    section = ClaudeSection(kind="claude-code", working_dir=Path("work"), allowed_tools=("Bash",))
    agent = make_claude(
        "coder",
        section,
        profile=profile_of("coder", section),
        processes=ProcessRegistry(FileRegistry(folder / "processes.jsonl"), this_process()),
        variables=variables,
        folder=folder,
        home=folder / ".muster",
    )
    await agent.call(ask(prompt), Timeouts())


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    asyncio.run(drive(Path(told["folder"]), told["variables"], told["prompt"]))
