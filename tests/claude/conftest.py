"""The real Claude Code in a temporary home, against a rehearsal server on loopback, with a key of no worth."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from muster.agents.base import Agent
from muster.agents.claude_code.sdk import require
from muster.agents.processes import system
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.processes.system import this_process
from muster.app.agent_kinds.base import profile_of
from muster.app.agent_kinds.claude import make_claude
from muster.domain.call import Message
from muster.domain.script import Line, Script
from muster.settings.sections import ClaudeSection
from muster.sim.files import read_script
from muster.sim.options import Options
from muster.sim.server import Server, serve
from tests.claude.registry import FileRegistry

KEY = "sk-ant-of-no-worth-0123456789"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.claude)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched(Script):
    """A script that remembers what it was asked."""

    heard: list[Sequence[Message]] = field(default_factory=list)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, model: str, messages: Sequence[Message], max_tokens: int) -> Line:
        self.heard.append(messages)
        self.reached.set()
        return Script.answer(self, model, messages, max_tokens)


def use(name: str, /, **arguments: Any) -> dict[str, Any]:
    """Script one use of a tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def bash(command: str) -> dict[str, Any]:
    return use("Bash", command=command, description="as the script says")


def rules(work: Path) -> Script:
    """What the model says: the first turn of a conversation by its words, the later ones alike."""
    by_words: dict[str, Any] = {
        "please echo": bash("echo one two"),
        "please fail": bash("ls /nowhere/at/all"),
        "please touch": bash("touch made.txt"),
        "please sleep": bash("sleep 60"),
        "please linger": bash("(setsid sleep 60 >/dev/null 2>&1 &) ; sleep 60"),
        "please look around": bash("env; pwd"),
        "please write": use("Write", file_path=f"{work}/written.txt", content="hello"),
        "please ask me": use("AskUserQuestion", questions=[]),
        "please tell": use("mcp__notes__tell"),
        "please wait": bash("touch begun; while [ ! -e go ]; do sleep 0.02; done"),
        "please delegate": use("mcp__muster__submit_task", prompt="Write a haiku", name="haiku"),
        "please send": use("mcp__muster__send_message", to="critic", text="look at it"),
        "as data": use("StructuredOutput", answer=42),
        "say words": {"text": "Some words:  one\ntwo {and} three 🎉, and a few more so that they come in pieces."},
    }
    no = {"text": "No.", "stop": "refused"}
    return read_script(
        {
            "rules": [
                *({"text": words, "turn": 1, "answer": answer} for words, answer in by_words.items()),
                {"text": '"kind": ?"task"', "turn": 2, "answer": use("mcp__muster__wait", ids=["haiku"])},
                {"text": "say no", "answer": no},
                {"text": "stopped by a safety classifier", "answer": no},
                {"turn": 2, "answer": "The second turn."},
                {"turn": 3, "answer": "The third turn."},
            ],
            "otherwise": "The first turn.",
        }
    )


@dataclass(kw_only=True)
class House:
    """One rehearsal: the server, the folders, and agents as they are declared."""

    folder: Path
    server: Server
    script: Watched
    processes: ProcessRegistry
    registry: FileRegistry

    def agent(self, *, variables: Mapping[str, str] | None = None, **section: Any) -> Agent:
        declared = ClaudeSection(kind="claude-code", **{"working_dir": "work", **section})
        return make_claude(
            "coder",
            declared,
            profile=profile_of("coder", declared),
            processes=self.processes,
            variables=self.variables if variables is None else variables,
            folder=self.folder,
            home=self.folder / ".muster",
        )

    @property
    def variables(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "person"),
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.server.anthropic,
            "OF_NOBODYS_BUSINESS": "a secret",
        }

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def alive(self) -> list[int]:
        """The processes that carry a token of this house."""
        return [
            pid for pid, _ in system.with_token("muster-") if system.started(pid) is not None and self._is_ours(pid)
        ]

    def _is_ours(self, pid: int) -> bool:
        try:
            return str(self.folder).encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    require()  # a missing extra is a failure here: a run that skipped everything would have tested nothing
    for name in ("work", "person"):
        (tmp_path / name).mkdir()
    plain = rules(tmp_path / "work")
    script = Watched(rules=plain.rules, otherwise=plain.otherwise)
    registry = FileRegistry(tmp_path / "processes.jsonl")
    processes = ProcessRegistry(registry, this_process())
    async with serve(Options(script=script)) as server:
        house = House(folder=tmp_path, server=server, script=script, processes=processes, registry=registry)
        yield house
        await processes.close()
    for pid in house.alive():  # of a test that failed
        system.kill(pid, system.started(pid) or "")
