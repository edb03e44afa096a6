"""Tasks in worktrees: the work is on a branch, the user's tree is untouched, and nothing is lost."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from muster.app.pool.trees import TaskOverlap
from muster.app.views.pool import slot_view
from muster.app.views.tasks import task_view
from muster.domain.errors import AgentFailed, BadArgument, MusterError
from muster.domain.isolation import Isolation
from muster.domain.task import TaskState
from muster.pool.tasks import TaskSpec
from muster.testing.clock import FakeClock
from muster.text.views import plain
from tests.pool.test_pool import drive, opened, state
from tests.pool.test_supervision import driven

TOML = """
[pool]
slots = 4
agent = "writer"

[agents.writer]
kind = "cli"
command = ["sh", "-c", "cat > work.txt; if grep -q FAIL work.txt; then exit 3; fi; echo done"]
budget_usd = 0.0

[agents.broken]
kind = "program"
mode = "plain"
command = ["cat", "missing.txt"]

[agents.slow]
kind = "cli"
command = ["sleep", "600"]
budget_usd = 0.0

[agents.paid]
kind = "cli"
command = ["echo", '{"text": "ok", "session": "s-1", "cost": 0.02}']
output = "json"
answer = "$.text"
session = "$.session"
cost_usd = "$.cost"
budget_usd = 0.10

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


async def test_a_failed_task_says_which_command_failed_how_and_where_its_work_is(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="FAIL here"))
        other = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="broken"))
        await drive(m)
        view = plain(task_view(await m.pool.tasks.get(task.id)))
        assert (view["exit_code"], view["branch"], view["stderr"]) == (3, f"muster/task-{task.id}", None)
        assert view["failed_command"].startswith("sh -c")
        assert "FAIL here" not in view["failed_command"]  # the prompt is no part of it
        program = plain(task_view(await m.pool.tasks.get(other.id)))
        assert (program["exit_code"], program["failed_command"]) == (1, "cat missing.txt")
        assert program["stderr"].endswith("No such file or directory")


async def test_a_slot_says_where_it_works_what_it_has_cost_and_its_last_session(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        done = await m.pool.run(TaskSpec(prompt="x", agent="paid"))
        assert done.state is TaskState.COMPLETED
        (used,) = [plain(slot_view(slot)) for slot in await m.pool.slots() if slot.session]
        assert (used["session_id"], used["cost_usd"], used["worktree"]) == ("s-1", 0.02, None)
        await m.pool.tasks.submit(TaskSpec(prompt="x", agent="slow"), name="busy")
        serving = asyncio.create_task(m.pool.driver().serve(until_idle=True))
        async with asyncio.timeout(60):
            while not (busy := [slot_view(slot).worktree for slot in await m.pool.slots() if slot.task]) or not busy[0]:
                await m._backend.store.changes.wait(1.0, m._backend.store.changes.commits)
        assert Path(busy[0]).is_dir()
        await m.pool.tasks.cancel("busy")
        await serving


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


@pytest.mark.chaos
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
            await m.pool.tasks.submit(TaskSpec(prompt="x", isolation=Isolation.WORKTREE))
        plain = await m.pool.tasks.submit(TaskSpec(prompt="x"))
        await drive(m)
        assert await state(m, plain) is TaskState.COMPLETED
        with pytest.raises(BadArgument, match="no worktree"):
            await m.pool.trees.diff(plain.id)
    async with opened(tmp_path, TOML.replace("slots = 4", 'slots = 4\nisolation = "worktree"')) as m:
        with pytest.raises(MusterError, match="git"):
            await drive(m)


async def test_files_that_several_finished_tasks_changed_are_told_until_they_are_merged(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        one = await m.pool.tasks.submit(TaskSpec(prompt="one"))
        two = await m.pool.tasks.submit(TaskSpec(prompt="two", review=True))
        other = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="other"))
        broken = await m.pool.tasks.submit(TaskSpec(prompt="FAIL"))
        await drive(m)
        found = await m.pool.trees.overlaps()
        assert (found.left_out, found.obstacle) == (0, "")
        (shared,) = found.overlaps
        assert (shared.path, set(shared.tasks), shared.examined) == ("work.txt", {one.id, two.id}, True)
        assert [set(pair) for pair in shared.conflicts] == [{one.id, two.id}]
        assert [one.path for one in (await m.pool.trees.overlaps(two.id)).overlaps] == ["work.txt"]
        assert (await m.pool.trees.overlaps(other.id)).overlaps == ()
        (of_failed,) = (await m.pool.trees.overlaps(broken.id)).overlaps
        assert of_failed.tasks[0] == broken.id
        await m.pool.trees.merge(one.id, apply=True)
        assert (await m.pool.trees.overlaps(two.id)).overlaps == ()


async def test_what_a_task_came_to_is_told_where_git_is_gone(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        tasks = [await m.pool.tasks.submit(TaskSpec(prompt=f"t{n}")) for n in range(2)]
        await drive(m)
        assert isinstance((await m.pool.trees.overlaps()).overlaps[0], TaskOverlap)
        (repository / ".git").rename(repository / "elsewhere")
        found = await m.pool.trees.overlaps(tasks[0].id)
        assert found.overlaps == ()
        assert "git" in found.obstacle


SLOW = """
[agents.editor]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; echo half >work.txt; git stash -qu; echo more >work.txt; touch ../on; sleep 99"]
budget_usd = 0.0
timeout_secs = 100000
"""


@pytest.mark.parametrize("way", ["cancel", "timeout"])
async def test_a_task_that_is_stopped_after_editing_leaves_its_work_on_its_branch(repository: Path, way: str) -> None:
    (repository / "shared.txt").write_text("mine\n")
    git(repository, "stash", "-q")
    listed, clock = git(repository, "stash", "list"), FakeClock()
    async with driven(repository, clock, TOML + SLOW) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="editor"), timeout=1_000)
        async with asyncio.timeout(60):
            while not (repository / ".muster/worktrees/on").exists():
                await m._backend.store.changes.wait(0.1, m._backend.store.changes.commits)
        if way == "cancel":
            await m.pool.cancel(task.id)
        else:
            clock.advance(1_000)
        async with asyncio.timeout(60):
            while any(slot.run for slot in await m._backend.store.pool.slots()):
                clock.advance(1)  # a driver looks for cancels once a second
                await m._backend.store.changes.wait(0.1, m._backend.store.changes.commits)
        assert await state(m, task) is (TaskState.CANCELED if way == "cancel" else TaskState.FAILED)
        branch = (await m.pool.tasks.get(task.id)).branch
        assert branch == f"muster/task-{task.id}"
        assert git(repository, "show", f"{branch}:work.txt") == "more"
        assert git(repository, "show", f"{branch}-2:work.txt") == "half"
        assert "+more" in await m.pool.trees.diff(task.id)
    assert git(repository, "stash", "list") == listed
    git(repository, "fsck", "--strict")
