"""Agents that change more than files: refs, settings and hooks of the user's repository are told, not restored."""

import subprocess
from pathlib import Path

from muster.app.views.pool import task_view
from muster.cli.pool.words import change_lines
from muster.git.repository_changes import changes_between
from muster.pool.tasks import TaskSpec
from tests.pool.test_pool import drive, opened
from tests.pool.test_trees import git, repository

__all__ = ["repository"]

SCRIPT = (
    "cat >/dev/null; git config core.hooksPath /tmp/elsewhere; git config user.name Other; git tag mine; "
    "echo x >x.txt; git add x.txt; git commit -qm x; git update-ref refs/heads/main HEAD; echo done"
)
TOML = f"""
[pool]
slots = 2
agent = "meddler"

[agents.meddler]
kind = "cli"
command = ["sh", "-c", "{SCRIPT}"]
budget_usd = 0.0

[agents.good]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; echo y >y.txt; git add y.txt; git commit -qnm y; git stash -q; echo done"]
budget_usd = 0.0
"""


def run(command: str, folder: Path) -> None:
    subprocess.run(["sh", "-c", command], cwd=folder, check=True)


async def test_what_an_agent_changes_in_the_users_repository_is_told_with_what_restores_it(repository: Path) -> None:
    main = git(repository, "rev-parse", "main")
    async with opened(repository, TOML) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x"), name="meddler")
        await drive(m)
        done = await m.pool.tasks.get(task.id)
        changes = {one["what"]: one for one in task_view(done)["repository_changes"]}
    assert set(changes) == {"ref refs/heads/main", "ref refs/tags/mine", "setting core.hookspath", "setting user.name"}
    assert (changes["setting core.hookspath"]["before"], changes["setting user.name"]["before"]) == (None, "Me")
    assert git(repository, "rev-parse", "main") != main  # nothing is undone by itself
    for one in changes.values():
        run(one["restore"], repository)
    assert (git(repository, "rev-parse", "main"), git(repository, "config", "user.name")) == (main, "Me")
    assert "core.hookspath" not in git(repository, "config", "--local", "--list")
    assert any("git update-ref refs/heads/main" in line for line in change_lines(done))


async def test_a_task_that_keeps_to_its_branch_changes_nothing_else(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        tasks = [await m.pool.tasks.submit(TaskSpec(prompt="x", agent="good")) for _ in range(3)]
        await drive(m)
        found = [task_view(await m.pool.tasks.get(task.id)) for task in tasks]
        assert [(view["changed"], view["repository_changes"]) for view in found] == [(1, [])] * 3


def test_each_kind_of_change_has_the_command_that_restores_it() -> None:
    before = {"HEAD": "refs/heads/main", "ref refs/tags/gone": "a1", "setting x.y": "one\ntwo", "hook pre-commit": "1"}
    after = {"HEAD": "refs/heads/other", "hook post-commit": "2"}
    assert {one.what: one.restore for one in changes_between(before, after)} == {
        "HEAD": "git symbolic-ref HEAD refs/heads/main",
        "ref refs/tags/gone": "git update-ref refs/tags/gone a1",
        "setting x.y": None,
        "hook pre-commit": None,
        "hook post-commit": 'rm "$(git rev-parse --git-common-dir)"/hooks/post-commit',
    }
