"""Tasks that depend on others: they begin with the work of those, and know what those came to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from muster.app.views.tasks import task_view
from muster.cli.pool.words import notice_lines
from muster.domain.task import TaskState
from muster.mcp.answers import document
from muster.pool.tasks import TaskSpec
from muster.text.views import plain
from tests.pool.test_pool import drive, opened
from tests.pool.test_trees import git, repository

__all__ = ["repository"]

TOML = """
[pool]
slots = 2
agent = "reads"

[agents.reads]
kind = "cli"
command = ["sh", "-c", "cat >prompt.txt; cat *.md 2>/dev/null || echo none"]
budget_usd = 0.0

[agents.api]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; echo api >api.md; echo the api is done"]
budget_usd = 0.0

[agents.docs]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; echo docs >docs.md; echo the docs are done"]
budget_usd = 0.0

[agents.shell]
kind = "cli"
command = ["sh", "-c", '''eval "$(sed -n 's/^RUN //p')"; echo done''']
budget_usd = 0.0

[agents.rival]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; echo rival >api.md; echo done"]
budget_usd = 0.0
"""


async def test_a_task_begins_with_the_work_and_the_results_of_those_it_depends_on(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        one = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="api"), name="api")
        two = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="docs"))
        both = await m.pool.tasks.submit(TaskSpec(prompt="Use both.", after=(one.id, two.id)))
        last = await m.pool.tasks.submit(TaskSpec(prompt="And on.", after=(both.id,)))
        await drive(m)
        done = await m.pool.tasks.get(both.id)
        assert done.reply is not None
        assert done.reply.text.split() == ["api", "docs"]
        prompt = git(repository, "show", f"{done.branch}:prompt.txt")
        assert "\n\nUse both.\n\nResult of task" in prompt
        assert f"Result of task {one.id} (api), which was done before yours:\nthe api is done" in prompt
        assert [file["path"] for file in done.saved["files"]] == ["prompt.txt"]  # its own work alone
        ended = await m.pool.tasks.get(last.id)
        assert ended.reply is not None
        assert ended.reply.text.split() == ["api", "docs"]
        await m.pool.trees.merge(last.id, apply=True)
    assert (repository / "docs.md").read_text() == "docs\n"


async def test_work_that_is_merged_already_is_where_the_project_is(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        one = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="api"))
        two = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="docs"))
        await drive(m)
        await m.pool.trees.merge(one.id, apply=True)
        await m.pool.trees.collect()
        git(repository, "branch", "-D", f"muster/task-{one.id}")
        both = await m.pool.tasks.submit(TaskSpec(prompt="y", after=(one.id, two.id)))
        await drive(m)
        done = await m.pool.tasks.get(both.id)
        assert done.reply is not None
        assert done.reply.text.split() == ["api", "docs"]


async def test_work_that_conflicts_fails_the_task_with_the_files(repository: Path) -> None:
    async with opened(repository, TOML) as m:
        one = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="api"))
        two = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="rival"), name="rival-docs")
        both = await m.pool.tasks.submit(TaskSpec(prompt="y", after=(one.id, two.id)))
        await drive(m)
        failed = await m.pool.tasks.get(both.id)
        assert failed.state is TaskState.FAILED
        assert failed.run.error is not None
        assert f"the work of task {two.id} (rival-docs) conflicts" in str(failed.run.error["message"])
        assert str(failed.run.error["message"]).endswith("in api.md")


MERGE = "git checkout -qb side; echo 1 >f.md; git add .; git commit -qnm 1; git checkout -q -; echo 2 >f.md; git add ."
LEFT = {  # what an agent does, what the next one finds, and what it is told, by how it can go
    "stashed": ("echo w >w.md; git add w.md; git stash -q", "w", ""),
    "stashed new": ("echo w >w.md; git stash -qu", "w", ""),
    "committed and stashed": ("echo c >c.md; git add .; git commit -qnm c; echo w >w.md; git stash -qu", "c", "ID-2"),
    "stashed twice": ("echo v >v.md; git stash -qu; echo w >w.md; git stash -qu", "", "ID-3"),
    "merging": (
        f"{MERGE}; git commit -qnm 2; git merge -q side >/dev/null; true",
        "2",
        "a merge that it did not finish",
    ),
    "rewritten": ("git checkout -q --orphan new; echo w >w.md; git add .; git commit -qnm w", "", "ID-2"),
    "nested": ("git init -q inner; echo w >inner/w.md", "", "inner"),
}


async def handed_on(repository: Path, script: str, **more: Any) -> tuple[Mapping[str, Any], str, str]:
    """Run a script in a tree, and a task that depends on it; return this one as it is shown, and what it was told."""
    async with opened(repository, TOML) as m:
        first = await m.pool.tasks.submit(
            TaskSpec(prompt=f"RUN {script}", agent="shell", isolation=more.pop("first", None))
        )
        next_ = await m.pool.tasks.submit(TaskSpec(prompt="And on.", after=(first.id,), **more))
        await drive(m)
        task = await m.pool.tasks.get(next_.id)
        assert task.state is TaskState.COMPLETED, task.run.error
        assert task.reply is not None
        view = plain(task_view(task))
        (call,) = [entry async for entry in m._backend.store.archive.entries(task.run.id) if entry.key == "work/000"]
        prompt = str(call.request["messages"][0]["text"]).replace(first.id, "ID")
        assert (await document(m, task.run))["handed_over"] == view["handed_over"]
        shown = "\n".join(notice_lines(task)).replace(first.id, "ID")
        (told,) = view["handed_over"]
        assert told["task"] == first.id
        assert "; ".join(told["missing"]).replace(first.id, "ID") in prompt
        assert bool(shown) == bool(told["missing"])
        return told, prompt, task.reply.text.strip()


@pytest.mark.parametrize("how", LEFT)
async def test_work_beside_the_branch_is_handed_over_without_doubt_and_else_told(repository: Path, how: str) -> None:
    script, found, missing = LEFT[how]
    told, prompt, text = await handed_on(repository, script)
    assert text == (found or "none")
    assert (told["commit"] is not None, "are in your working tree" in prompt) == (bool(found), bool(found))
    assert (
        any(missing in one.replace(told["task"], "ID") for one in told["missing"]) if missing else not told["missing"]
    )


@pytest.mark.parametrize("more", [{"isolation": "none"}, {"agent": "sim/echo"}])
async def test_without_a_tree_the_branch_with_the_work_is_told(repository: Path, more: dict[str, Any]) -> None:
    told, prompt, _ = await handed_on(repository, "echo w >w.md", **more)
    assert told["commit"] is None
    assert "are in your working tree" not in prompt
    assert "Not in your working tree: work on the branch muster/task-ID, which git diff" in prompt


async def test_work_that_was_left_uncommitted_in_the_users_folder_is_told(repository: Path) -> None:
    told, _, text = await handed_on(repository, "echo w >w.md", first="none")
    assert (text, told["missing"]) == ("none", [f"what it changed in {repository} and did not commit"])
