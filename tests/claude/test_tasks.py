"""The real Claude Code in a slot of the pool: in a worktree, reviewed, merged, and asking for permission."""

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import muster
from muster.agents.claude_code.sdk import require
from muster.app import Muster
from muster.domain.task import TaskState
from muster.pool.order import OnPermission
from muster.pool.tasks import TaskSpec
from muster.settings import load_settings
from muster.sim.files import read_script
from muster.sim.options import Options
from muster.sim.server import serve
from tests.claude.conftest import KEY, Watched, bash

TOML = """
[pool]
slots = 1
agent = "coder"

[[slots]]
name = "builder"

[agents.coder]
kind = "claude-code"
"""
RULES = {
    "rules": [
        {"text": "rejected", "answer": bash("echo two > note.txt")},
        {"text": "Permission to use Bash was granted", "answer": bash("touch made.txt")},
        {"text": "Permission to use Bash was denied", "answer": "I did without."},
        {"text": "please note", "turn": 1, "answer": bash("echo one > note.txt")},
        {"text": "please touch", "turn": 1, "answer": bash("touch made.txt")},
    ],
    "otherwise": "Done.",
}


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A git repository with a pool, and the script that the model plays."""

    folder: Path
    script: Watched
    variables: dict[str, str]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Muster]:
        settings = load_settings(folder=self.folder, environment=self.variables)
        async with muster.open(settings=settings) as m:
            yield m

    def git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def prompts(self) -> list[str]:
        """Return what the model was told in the first message of every request."""
        return [messages[0].text for messages in self.script.heard]


@pytest.fixture
async def repository(tmp_path: Path) -> AsyncIterator[Repository]:
    require()
    plain = read_script(RULES)
    script = Watched(rules=plain.rules, otherwise=plain.otherwise)
    for name in ("project", "person"):
        (tmp_path / name).mkdir()
    async with serve(Options(script=script)) as server:
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "person"),
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": server.anthropic,
        }
        found = Repository(folder=tmp_path / "project", script=script, variables=variables)
        (found.folder / "muster.toml").write_text(TOML)
        (found.folder / ".gitignore").write_text(".muster/\nmuster.toml\n")
        for words in (
            ("init", "-q", "-b", "main"),
            ("config", "user.email", "me@localhost"),
            ("config", "user.name", "Me"),
            ("add", ".gitignore"),
            ("commit", "-q", "-m", "first"),
        ):
            found.git(*words)
        yield found


async def test_a_task_is_done_in_a_worktree_rejected_done_again_approved_and_merged(repository: Repository) -> None:
    async with repository.open() as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="please note it", review=True, settings={"tools": ["Bash"]}))
        await m.pool.driver().serve(until_idle=True)
        first = await m.pool.tasks.get(task.id)
        assert first.state is TaskState.PENDING_REVIEW, first.run.error
        assert repository.git("show", f"{first.branch}:note.txt") == "one"
        await m.pool.tasks.reject(task.id, "count further")
        await m.pool.driver().serve(until_idle=True)
        second = await m.pool.tasks.get(task.id)
        assert (second.state, second.rejections) == (TaskState.PENDING_REVIEW, 1)
        assert any("rejected (1):\ncount further" in prompt for prompt in repository.prompts())
        await m.pool.tasks.approve(task.id)
        await m.pool.driver().serve(until_idle=True)
        assert (await m.pool.tasks.get(task.id)).state is TaskState.COMPLETED
        assert not (repository.folder / "note.txt").exists()
        await m.pool.trees.merge(task.id, ("grep", "-q", "two", "note.txt"), apply=True)
    assert (repository.folder / "note.txt").read_text() == "two\n"
    assert repository.git("status", "--porcelain") == ""


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_permission_that_it_asks_for_is_decided_and_its_session_goes_on(
    repository: Repository, allowed: bool
) -> None:
    async with repository.open() as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="please touch", on_permission=OnPermission.ASK))
        await m.pool.driver().serve(until_idle=True)
        asked = await m.pool.tasks.get(task.id)
        assert asked.permission is not None, asked.run.error
        assert (asked.permission.tool, asked.state) == ("Bash", TaskState.PENDING_REVIEW)
        assert (asked.permission.input or {})["command"] == "touch made.txt"
        assert asked.run.total.billed > 0
        await (m.pool.tasks.allow(task.id) if allowed else m.pool.tasks.deny(task.id, "not here"))
        await m.pool.driver().serve(until_idle=True)
        done = await m.pool.tasks.get(task.id)
        assert done.state is TaskState.COMPLETED, done.run.error
        assert done.reply is not None
        assert done.reply.text == ("Done." if allowed else "I did without.")
        assert done.reply.trace is not None
        assert done.reply.trace.session == asked.permission.session
        files = [file["path"] for file in done.saved["files"]]
        assert files == (["made.txt"] if allowed else [])
    assert all("please touch" in prompt for prompt in repository.prompts())  # one conversation


async def test_a_permission_fails_the_task_where_nobody_is_to_be_asked(repository: Repository) -> None:
    async with repository.open() as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="please touch"))
        await m.pool.driver().serve(until_idle=True)
        failed = await m.pool.tasks.get(task.id)
        assert failed.state is TaskState.FAILED
        assert "slot builder: agent 'coder' asked for permission to use Bash" in str(failed.run.error)
