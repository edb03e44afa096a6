"""Tasks in worktrees: the work is on a branch, the user's tree is untouched, and nothing is lost."""

import subprocess
from pathlib import Path

import pytest

from muster.domain.errors import AgentFailed, BadArgument, MusterError
from muster.pool.tasks import TaskSpec, TaskState
from tests.pool.test_pool import drive, opened, state

TOML = """
[pool]
slots = 4
agent = "writer"

[agents.writer]
kind = "cli"
command = ["sh", "-c", "cat > work.txt; if grep -q FAIL work.txt; then exit 3; fi; echo done"]
budget_usd = 0.0

[agents.other]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; echo changed > shared.txt; echo done"]
budget_usd = 0.0
"""


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.email", "me@localhost")
    git(folder, "config", "user.name", "Me")
    (folder / "shared.txt").write_text("original\n")
    (folder / ".gitignore").write_text(".muster/\nmuster.toml\n")
    hook = folder / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    git(folder, "add", "shared.txt", ".gitignore")
    git(folder, "commit", "-q", "--no-verify", "-m", "first")
    hook.chmod(0o755)
    return folder


async def test_the_work_of_a_task_is_on_a_branch_and_the_users_tree_is_untouched(repository: Path) -> None:
    (repository / "mine.txt").write_text("uncommitted\n")
    before = git(repository, "status", "--porcelain")
    async with opened(repository, TOML) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="hello"))
        await drive(m)
        done = await m.pool.tasks.get(task.id)
        assert (done.state, done.branch) == (TaskState.COMPLETED, f"muster/task-{task.id}")
        assert [file["path"] for file in done.saved["files"]] == ["work.txt"]
        assert "+hello" in await m.pool.trees.diff(task.id)
    assert git(repository, "status", "--porcelain") == before
    assert not (repository / "work.txt").exists()
    assert git(repository, "show", f"muster/task-{task.id}:work.txt").endswith("hello")
    git(repository, "fsck", "--strict")


async def test_a_task_that_failed_after_editing_leaves_its_work_and_goes_on_in_its_tree(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="FAIL here"))
        await drive(m)
        failed = await m.pool.tasks.get(task.id)
        assert (failed.state, failed.branch) == (TaskState.FAILED, f"muster/task-{task.id}")
        assert git(repository, "show", f"{failed.branch}:work.txt").endswith("FAIL here")
        await m.pool.tasks.retry(task.id)
        await drive(m)
        assert await state(m, task) is TaskState.FAILED
        assert git(repository, "branch", "--list", "muster/*").count("muster/task-") == 1


async def test_a_branch_is_merged_where_a_check_holds_and_applied_only_when_told(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="other"))
        await drive(m)
        head = git(repository, "rev-parse", "HEAD")
        merge = await m.pool.trees.merge(task.id, ["grep", "-q", "changed", "shared.txt"])
        assert merge.target.endswith("main")
        assert git(repository, "rev-parse", "HEAD") == head
        with pytest.raises(AgentFailed):
            await m.pool.trees.merge(task.id, ["grep", "-q", "nothing", "shared.txt"])
        await m.pool.trees.merge(task.id, apply=True)
        assert (repository / "shared.txt").read_text() == "changed\n"
        kept = await m.pool.trees.collect(dry_run=True)
        assert [(one.name, one.removed) for one in kept] == [(f"task-{task.id}", True)]
        await m.pool.trees.collect()
        assert git(repository, "worktree", "list").count("\n") == 0


async def test_unmerged_work_is_kept_with_the_reason(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        await m.pool.tasks.submit(TaskSpec(prompt="x"))
        await drive(m)
        (kept,) = await m.pool.trees.collect()
        assert not kept.removed
        assert kept.reason


async def test_many_tasks_at_once_in_one_repository(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        tasks = [await m.pool.tasks.submit(TaskSpec(prompt=f"t{number}")) for number in range(16)]
        await drive(m)
        assert {await state(m, task) for task in tasks} == {TaskState.COMPLETED}
    assert git(repository, "branch", "--list", "muster/*").count("muster/task-") == 16
    git(repository, "fsck", "--strict")


async def test_isolation_outside_of_git_fails_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path, TOML) as m:
        with pytest.raises(MusterError, match="git"):
            await m.pool.tasks.submit(TaskSpec(prompt="x", isolation="worktree"))
        plain = await m.pool.tasks.submit(TaskSpec(prompt="x"))
        await drive(m)
        assert await state(m, plain) is TaskState.COMPLETED
        with pytest.raises(BadArgument, match="no worktree"):
            await m.pool.trees.diff(plain.id)
    async with opened(tmp_path, TOML.replace("slots = 4", 'slots = 4\nisolation = "worktree"')) as m:
        with pytest.raises(MusterError, match="git"):
            await drive(m)
