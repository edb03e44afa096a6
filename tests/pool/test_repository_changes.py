"""Agents that change more than files: refs, settings and hooks of the user's repository are told, not restored."""

import os
import subprocess
from pathlib import Path

import pytest

from muster.app.views.tasks import task_view
from muster.cli.pool.words import change_lines
from muster.domain.isolation import Isolation
from muster.git.commands import GitCommands
from muster.git.repository_changes import changes_between, decides_check_outs
from muster.mcp.answers import short_task
from muster.pool.tasks import TaskSpec
from muster.text.views import plain
from tests.git.trees import worktrees
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
        changes = {one["what"]: one for one in task_view(done).repository_changes}
        assert short_task(done)["repository_changes"] == list(changes.values())  # in MCP's list of work
    assert set(changes) == {"ref refs/heads/main", "ref refs/tags/mine", "setting core.hookspath", "setting user.name"}
    assert (changes["setting core.hookspath"]["before"], changes["setting user.name"]["before"]) == (None, "Me")
    assert git(repository, "rev-parse", "main") != main  # nothing is undone by itself
    for one in changes.values():
        run(one["restore"], repository)
    assert (git(repository, "rev-parse", "main"), git(repository, "config", "user.name")) == (main, "Me")
    assert "core.hookspath" not in git(repository, "config", "--local", "--list")
    assert any("git update-ref refs/heads/main" in line for line in change_lines(done))


async def test_what_an_agent_without_a_tree_changes_in_the_users_repository_is_told(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", isolation=Isolation.NONE))
        await drive(m)
        done = await m.pool.tasks.get(task.id)
        changed = {one["what"] for one in task_view(done).repository_changes}
        assert changed >= {"ref refs/heads/main", "ref refs/tags/mine", "setting core.hookspath"}
        assert (done.branch, task_view(done).changed) == (None, None)


async def test_a_task_without_a_tree_outside_of_git_has_nothing_to_compare(tmp_path: Path) -> None:
    async with opened(tmp_path, TOML.replace("meddler", "writer").replace(SCRIPT, "cat >x.txt; echo done")) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x"))
        await drive(m)
        view = plain(task_view(await m.pool.tasks.get(task.id)))
        assert (view["state"], view["repository_changes"], view["repository_unknown"]) == ("completed", [], None)


async def test_where_git_does_not_tell_what_changed_that_is_said(repository: Path) -> None:
    broken = "cat >/dev/null; mv .git elsewhere; mkdir .git; echo done"
    async with opened(repository, TOML.replace(SCRIPT, broken)) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", isolation=Isolation.NONE))
        await drive(m)
        done = await m.pool.tasks.get(task.id)
        assert "not in a git repository" in str(task_view(done).repository_unknown)
        assert "is not known" in change_lines(done)[-1]


@pytest.mark.parametrize("isolation", [Isolation.WORKTREE, Isolation.NONE])
async def test_what_changed_before_a_task_failed_is_still_told_after_it_was_tried_again(
    repository: Path, isolation: Isolation
) -> None:
    script = "cat >/dev/null; git tag again 2>/dev/null && exit 3; git tag twice; echo done"
    async with opened(repository, TOML.replace(SCRIPT, script)) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", isolation=isolation))
        await drive(m)
        failed = plain(task_view(await m.pool.tasks.get(task.id)))
        assert (failed["state"], [one["what"] for one in failed["repository_changes"]]) == (
            *("failed", ["ref refs/tags/again"]),
        )
        await m.pool.tasks.retry(task.id)
        await drive(m)
        view = plain(task_view(await m.pool.tasks.get(task.id)))
        assert [one["what"] for one in view["repository_changes"]] == ["ref refs/tags/again", "ref refs/tags/twice"]


async def test_a_task_that_keeps_to_its_branch_changes_nothing_else(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        tasks = [await m.pool.tasks.submit(TaskSpec(prompt="x", agent="good")) for _ in range(3)]
        await drive(m)
        found = [plain(task_view(await m.pool.tasks.get(task.id))) for task in tasks]
        assert [(view["changed"], view["repository_changes"]) for view in found] == [(1, [])] * 3


def test_each_kind_of_change_has_the_command_that_restores_it() -> None:
    before = {"HEAD": "refs/heads/main", "ref refs/tags/gone": "a1", "hook pre-commit": "1"}
    before |= {"setting x.y": "one\ntwo words", "setting a.b": "1\n2", "hook same": "3", "file info/exclude": "4"}
    before["setting key"] = "k (sha256 1)\nother"
    after = {"HEAD": "refs/heads/other", "hook post-commit": "2", "hook same": "3, not executable", "setting a.b": "1"}
    after["file info/attributes"] = "5"
    assert {one.what: one.restore for one in changes_between(before, after)} == {
        "HEAD": "git symbolic-ref HEAD refs/heads/main",
        "ref refs/tags/gone": "git update-ref refs/tags/gone a1",
        "setting x.y": "git config --local --add x.y one && git config --local --add x.y 'two words'",
        "setting a.b": "git config --local --unset-all a.b && git config --local --add a.b 1 && "
        "git config --local --add a.b 2",
        "setting key": None,
        "hook same": 'chmod +x "$(git rev-parse --git-common-dir)"/hooks/same',
        "file info/exclude": None,
        "file info/attributes": 'rm "$(git rev-parse --git-common-dir)"/info/attributes',
        "hook pre-commit": None,
        "hook post-commit": 'rm "$(git rev-parse --git-common-dir)"/hooks/post-commit',
    }


async def test_settings_with_several_values_modes_of_hooks_and_exclusions_are_compared(repository: Path) -> None:
    trees = worktrees(repository)
    run("git config --add remote.origin.fetch +one:one; git config --add remote.origin.fetch +two:two", repository)
    await trees.create("one")  # has git ignore our folder, which is no change of the user's
    (repository / ".git/hooks/idle").write_text("#!/bin/sh")
    before = await trees.repository_state()
    run(
        "git config --unset-all remote.origin.fetch one; chmod +x .git/hooks/idle; chmod -x .git/hooks/*commit",
        repository,
    )
    run("echo '* text' >.git/info/attributes; echo x >>.git/info/exclude", repository)
    changes = changes_between(before, await trees.repository_state())
    found = {one.what: one for one in changes}
    assert set(found) == {
        *("file info/attributes", "file info/exclude", "hook idle", "hook pre-commit", "setting remote.origin.fetch")
    }
    assert (found["setting remote.origin.fetch"].before or "").split(", ") == ["+one:one", "+two:two"]
    for one in changes:
        run(one.restore or "true", repository)
    left = changes_between(before, await trees.repository_state())
    assert [one.what for one in left] == ["file info/exclude"]  # what it was is not stored


async def test_a_folder_that_muster_has_git_ignore_is_no_change(repository: Path) -> None:
    (repository / ".gitignore").write_text("")
    before = await worktrees(repository).repository_state()
    await worktrees(repository).create("one")
    assert (repository / ".git/info/exclude").read_text().endswith("/.muster/worktrees/\n")
    assert changes_between(before, await worktrees(repository).repository_state()) == ()


async def test_what_has_git_read_other_objects_or_another_history_decides_and_is_not_followed(repository: Path) -> None:
    run("echo 1 >f.txt; git add f.txt; git commit -qnm one; echo 2 >f.txt; git commit -qnam two", repository)
    trees = worktrees(repository)
    before = await trees.repository_state()
    run("git replace HEAD:f.txt $(echo 3 | git hash-object -w --stdin)", repository)
    run("git rev-parse HEAD~1 >.git/shallow; git rev-parse HEAD >.git/info/grafts", repository)
    changes = changes_between(before, await trees.repository_state())
    assert [one.what.partition("/")[0] for one in changes if decides_check_outs(one.what)] == [
        *("file info", "file shallow", "ref refs")
    ]
    for one in changes:
        run(one.restore or "false", repository)
    assert changes_between(before, await trees.repository_state()) == ()
    run(
        "git replace HEAD:f.txt $(echo 3 | git hash-object -w --stdin); git rev-parse HEAD >.git/info/grafts",
        repository,
    )
    commands = GitCommands(environment=os.environ, folder=repository)
    assert (await commands.ask("show", "HEAD:f.txt")).text == "2"
    assert (await commands.ask("log", "-1", "--format=%s", "HEAD~1")).text == "one"
