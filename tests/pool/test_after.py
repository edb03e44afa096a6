"""Tasks that depend on others: they begin with the work of those, and know what those came to."""

from pathlib import Path

from muster.pool.tasks import TaskSpec, TaskState
from tests.pool.test_pool import drive, opened
from tests.pool.test_trees import git, repository

__all__ = ["repository"]

TOML = """
[pool]
slots = 2
agent = "reads"

[agents.reads]
kind = "cli"
command = ["sh", "-c", "cat >prompt.txt; cat *.md 2>/dev/null; echo"]
budget_usd = 0.0

[agents.api]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; echo api >api.md; echo the api is done"]
budget_usd = 0.0

[agents.docs]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; echo docs >docs.md; echo the docs are done"]
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
        two = await m.pool.tasks.submit(TaskSpec(prompt="x", agent="rival"))
        both = await m.pool.tasks.submit(TaskSpec(prompt="y", after=(one.id, two.id)))
        await drive(m)
        failed = await m.pool.tasks.get(both.id)
        assert failed.state is TaskState.FAILED
        assert failed.run.error is not None
        assert f"the work of task {two.id} conflicts" in str(failed.run.error["message"])
        assert str(failed.run.error["message"]).endswith("in api.md")
