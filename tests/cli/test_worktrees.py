"""Worktrees as people meet them: on a full disk, and after a kill; what is theirs stays as it was."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.git.repository import Repository
from tests.git.trees import hooks_ran, user_repository, users_state

from .shell import Shell
from .test_full_disk import ENVIRONMENT, mounting

AGENT = """
[agents.writer]
kind = "cli"
command = ["sh", "-c", "cat > a.py; echo done"]
budget_usd = 0.0
"""
CHAIN = {
    "name": "c",
    "steps": [
        {"name": "edit", "agent": "writer", "prompt": "edited"},
        {"name": "next", "command": ["cat", "a.py"]},
    ],
}
SMALL = """
set -e
mkdir -p .muster/worktrees
mount -t tmpfs -o size=300k small .muster/worktrees
"$PYTHON" -m muster task run hello --agent writer --name one --json > "$OUT/task" || true
"$PYTHON" -m muster chain run ../chain.yaml --json > "$OUT/chain" || true
ls -A .muster/worktrees > "$OUT/left"
umount .muster/worktrees
"$PYTHON" -m muster task retry one > /dev/null
"$PYTHON" -m muster pool start --until-idle --json > "$OUT/retried"
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with work of the user in it, and a chain beside it."""
    made = user_repository(tmp_path / "work")
    made.write(".git/info/exclude", "/muster.toml\n/.muster/\n")
    made.write("muster.toml", AGENT)
    (tmp_path / "chain.yaml").write_text(json.dumps(CHAIN))
    return made


@pytest.mark.chaos
def test_a_full_disk_fails_task_and_chain_clearly_and_leaves_nothing(repository: Repository, tmp_path: Path) -> None:
    for number in range(4):
        repository.write(f"large/{number}.txt", f"{number} line of a large file\n" * 10_000)
    repository.git("-c", "core.hooksPath=/dev/null", "add", "large")
    repository.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "large", "large")
    before = users_state(repository)
    environment = {**ENVIRONMENT, "HOME": str(tmp_path), "OUT": str(tmp_path), "PYTHON": sys.executable}
    command = [*mounting(), "bash", "-c", SMALL, "small"]
    subprocess.run(command, cwd=repository.folder, env=environment, check=True, timeout=120)
    for name in ("task", "chain"):
        message = json.loads((tmp_path / name).read_text())["error"]["message"]
        assert "could not be made: the disk is full" in message
    assert (tmp_path / "left").read_text() == ""
    assert users_state(repository) == before
    assert not hooks_ran(repository)
    (ended,) = json.loads((tmp_path / "retried").read_text())["data"]["ended"]
    assert (ended["state"], ended["branch"]) == ("completed", f"muster/task-{ended['id']}")
    assert "error" not in repository.git("fsck", "--strict")


@pytest.mark.parametrize("point", ["call.answered", "call.settled"])
def test_a_chain_that_is_killed_after_editing_leaves_branch_and_diff(repository: Repository, point: str) -> None:
    before, shell = users_state(repository), Shell(repository.folder)
    shell.crash(point, "chain", "run", "../chain.yaml", "--name", "killed")
    shell.muster("chain", "cancel", "killed")
    told = shell.muster("chain", "progress", "killed", "--json").data()
    assert told["status"] == "canceled"
    assert "+edited" in repository.git("diff", f"HEAD...{told['branch']}")
    assert users_state(repository) == before
    assert not hooks_ran(repository)
    assert "error" not in repository.git("fsck", "--strict")


@pytest.mark.parametrize("point", ["call.answered", "call.settled"])
def test_a_task_that_is_killed_after_editing_leaves_branch_and_diff(repository: Repository, point: str) -> None:
    before, shell = users_state(repository), Shell(repository.folder)
    shell.crash(point, "task", "run", "edited", "--agent", "writer", "--name", "killed")
    assert "+edited" in shell.muster("task", "diff", "killed").out
    shell.muster("task", "cancel", "killed")
    told = shell.muster("task", "list", "--json").data()[0]
    assert (told["state"], told["branch"]) == ("canceled", f"muster/task-{told['id']}")
    assert "+edited" in repository.git("diff", f"HEAD...{told['branch']}")
    assert users_state(repository) == before
    assert not hooks_ran(repository)
    assert "error" not in repository.git("fsck", "--strict")
