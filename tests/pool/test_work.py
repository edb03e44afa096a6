"""Where the work of a task is: its branch, its files, and whatever lies beside the branch, after every way to end."""

import asyncio
from pathlib import Path

import pytest

from muster.app import Muster
from muster.app.views.tasks import merge_view, task_view
from muster.cli.pool.words import work_cell, work_commands, work_text
from muster.domain.errors import Conflict
from muster.mcp.answers import document, short_task
from muster.pool.tasks import TaskSpec
from muster.testing.clock import FakeClock
from muster.text.views import plain
from tests.pool.test_pool import drive, opened
from tests.pool.test_supervision import driven
from tests.pool.test_trees import SLOW, TOML, git, repository

__all__ = ["repository"]

ODD = """
[agents.stashes]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; echo half >work.txt; git stash -qu; echo done"]
budget_usd = 0.0

[agents.changes]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; echo more >>shared.txt; git stash -q; echo done"]
budget_usd = 0.0

[agents.both]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; echo a >>a; git add a; git commit -qnm a; echo b >b; git stash -qu; echo done"]
budget_usd = 0.0

[agents.names]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; echo x >über.md; echo done"]
budget_usd = 0.0

[agents.nests]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; git init -q inner; echo x >inner/x.txt; echo done"]
budget_usd = 0.0

[agents.rounds]
kind = "cli"
command = ["sh", "-c", "grep -q rejected && sleep 99; echo first >work.txt; echo done"]
budget_usd = 0.0
timeout_secs = 1000
"""


async def all_free(m: Muster, clock: FakeClock) -> None:
    async with asyncio.timeout(60):
        while any(slot.run for slot in await m._backend.store.pool.slots()):
            clock.advance(1)  # a driver looks for cancels once a second
            await m._backend.store.changes.wait(0.1, m._backend.store.changes.commits)


async def test_work_that_lies_beside_the_branch_is_told_with_the_task(repository: Path) -> None:
    async with opened(repository, TOML + ODD) as m:
        stashed = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="stashes"), name="stasher")
        nested = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="nests"))
        await drive(m)
        view = plain(task_view(await m.pool.tasks.get(stashed.id)))
        assert (view["name"], view["changed"]) == ("stasher", 0)
        assert view["other_branches"] == [f"muster/task-{stashed.id}-2"]
        assert "more work on" in view["summary"]
        view = plain(task_view(await m.pool.tasks.get(nested.id)))
        assert view["nested_repositories"] == ["inner"]
        assert "nested git repositories: inner" in view["summary"]


async def test_a_merge_of_nothing_says_so_and_names_the_other_branches(repository: Path) -> None:
    async with opened(repository, TOML + ODD) as m:
        stashed = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="stashes"))
        nested = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="nests"))
        await drive(m)
        with pytest.raises(Conflict, match=f"holds no work.*muster/task-{stashed.id}-2"):
            await m.pool.trees.merge(stashed.id)
        with pytest.raises(Conflict, match=r"holds no work.*which no commit holds: inner"):
            await m.pool.trees.merge(nested.id)


async def test_the_command_for_work_on_another_branch_shows_it(repository: Path) -> None:
    async with opened(repository, TOML + ODD) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="changes"))
        await drive(m)
        done = await m.pool.tasks.get(task.id)
        (command,) = work_commands(done).split(", ")  # no `task diff`, which would be empty
        assert "+more" in git(repository, *command.split()[1:])
        assert [one for one in task_view(done).beside if command in one]
        assert command in (await document(m, done.run))["next"]


async def test_what_is_merged_is_said_until_there_is_more_work(repository: Path) -> None:
    async with opened(repository, TOML + ODD) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="both", review=True))
        await drive(m)
        merge = await m.pool.trees.merge(task.id)
        done = await m.pool.tasks.get(task.id)
        assert (done.merged_into, "task merge" in work_commands(done)) == (None, True)
        assert [f"muster/task-{task.id}-2" in one for one in merge_view(merge, done, applied=False).beside] == [True]
        await m.pool.trees.merge(task.id, apply=True)
        done = await m.pool.tasks.get(task.id)
        assert (task_view(done).merged_into, work_text(done).endswith("; merged into main")) == ("main", True)
        assert "task merge" not in work_commands(done)
        assert (short_task(done)["merged_into"], work_cell(done)) == ("main", "1 file+, merged")
        await m.pool.tasks.reject(task.id, "again")
        await drive(m)
        assert (await m.pool.tasks.get(task.id)).merged_into is None
        git(repository, "merge", "-q", f"muster/task-{task.id}")  # by the user, which a merge finds out
        assert (await m.pool.trees.merge(task.id)).is_empty
        await m.pool.cancel(task.id)
        assert (await m.pool.tasks.get(task.id)).merged_into == "main"


async def test_names_of_files_are_readable_in_a_diff(repository: Path) -> None:
    async with opened(repository, TOML + ODD) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="names"))
        await drive(m)
        assert "diff --git a/über.md b/über.md" in await m.pool.trees.diff(task.id)


async def test_diff_and_merge_go_on_from_the_branch_after_its_tree_was_collected(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="other"))
        await drive(m)
        await m.pool.trees.merge(task.id, apply=True)
        (gone,) = await m.pool.trees.collect()
        assert gone.removed
        assert "+changed" in await m.pool.trees.diff(task.id)
        assert (await m.pool.trees.merge(task.id)).is_empty
        git(repository, "branch", "-D", f"muster/task-{task.id}")
        assert "+changed" in await m.pool.trees.diff(task.id)


@pytest.mark.parametrize("way", ["cancel", "timeout"])
async def test_a_task_that_was_stopped_tells_what_its_branch_holds(repository: Path, way: str) -> None:
    clock = FakeClock()
    async with driven(repository, clock, TOML + SLOW) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="editor"), timeout=1_000)
        async with asyncio.timeout(60):
            while not (repository / ".muster/worktrees/on").exists():
                await m._backend.store.changes.wait(0.1, m._backend.store.changes.commits)
        if way == "cancel":
            await m.pool.cancel(task.id)
        else:
            clock.advance(1_000)
        await all_free(m, clock)
        view = plain(task_view(await m.pool.tasks.get(task.id)))
        assert [file["path"] for file in view["files"]] == ["work.txt"]
        assert view["other_branches"] == [f"muster/task-{task.id}-2"]
        retried = await m.pool.tasks.retry(task.id)
        assert task_view(retried).summary == view["summary"]  # until it has more to tell
        await m.pool.cancel(task.id)
        await all_free(m, clock)


async def test_the_work_of_a_round_is_told_while_the_next_one_is_done(repository: Path) -> None:
    async with opened(repository, TOML + ODD) as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="rounds", review=True))
        await drive(m)
        before = task_view(await m.pool.tasks.get(task.id)).summary
        await m.pool.tasks.reject(task.id, "again")
        serving = asyncio.create_task(m.pool.driver().serve(until_idle=True))
        async with asyncio.timeout(60):
            while (now := await m.pool.tasks.get(task.id)).rounds < 2:
                await m._backend.store.changes.wait(0.1, m._backend.store.changes.commits)
        assert task_view(now).summary == before
        await m.pool.cancel(task.id)
        await serving
