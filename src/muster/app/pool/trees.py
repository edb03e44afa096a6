"""The working trees of tasks: where a task works, what it changed there, merged and removed. `Muster.pool.trees`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muster.app.backend import Backend
from muster.app.pool.slots import base_dir, git_environment, project_trees
from muster.app.pool.tasks import MOST_TASKS, Tasks
from muster.app.runs.runs import Runs
from muster.domain.agent import Command, Timeouts
from muster.domain.call import ask
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL
from muster.git.layout import Isolation
from muster.git.merges import Merge
from muster.git.repository import Git
from muster.git.retention import Collected
from muster.git.worktrees import Worktrees
from muster.pool.isolation import worktrees_of
from muster.pool.tasks import SLOT_KEY, TaskSpec, task_id

__all__ = ["Collected", "Merge", "TaskTrees"]

MOST_DIFF = 1_000_000  # bytes
CHECK_SECONDS = 1800.0


class TaskTrees:
    """The working trees of the tasks of the pool."""

    def __init__(self, backend: Backend, runs: Runs, tasks: Tasks) -> None:
        self._settings, self._store, self._directory = backend.settings, backend.store, backend.directory
        self._runs, self._tasks = runs, tasks

    async def isolation_of(self, spec: TaskSpec, agent: str) -> Isolation:
        """Return where a task works: as it or the pool says, else in a worktree if its agent changes files in git."""
        said = spec.isolation or self._settings.pool.isolation
        if said is not None:
            return Isolation(said)
        in_git = self._directory.changes_files(agent) and await Git(self._settings.folder).root() is not None
        return Isolation.WORKTREE if in_git else Isolation.NONE

    async def place(self, run: RunId, spec: TaskSpec, agent: str) -> dict[str, Json]:
        """Return where a task works, for its journal: the tree has the name of the task, so that a retry finds it."""
        name, base = task_id(await self._runs.get(run)), base_dir(self._settings)
        return {
            "isolation": str(await self.isolation_of(spec, agent)),
            "task": name,
            "tree": f"task-{name}",
            "base_dir": None if base is None else str(base),
            "copy": list(self._settings.pool.copy),
            "git_environment": git_environment(self._settings),
        }

    async def diff(self, reference: str, most_bytes: int = MOST_DIFF) -> str:
        """Return what a task has changed in its tree as a patch, also what is uncommitted."""
        trees, slot = await self._of(reference)
        return await trees.diff(await trees.find(slot["tree"]), most_bytes)

    async def merge(self, reference: str, check: Sequence[str] = (), *, apply: bool = False) -> Merge:
        """Merge the branch of a task in a tree of its own, where the check must succeed; with `apply`, move the target.

        Raises MergeConflict with the files, and what the check failed with.
        """
        trees, slot = await self._of(reference)
        tree = await trees.find(slot["tree"])

        async def run_check(folder: Path) -> None:
            command = Command(argv=tuple(check), folder=str(folder), exits=(0,))
            await self._directory.command(command).call(ask("check"), Timeouts(call=CHECK_SECONDS))

        merge = await trees.merge(tree.branch, None, run_check if check else None)
        if apply:
            await trees.apply(merge)
        return merge

    async def collect(self, *, dry_run: bool = False) -> Sequence[Collected]:
        """Remove the trees of tasks that hold nothing which is not elsewhere; say of each what was done and why."""
        tasks = await self._tasks.list(limit=MOST_TASKS)
        active = {f"task-{task.id}" for task in tasks if task.run.state not in TERMINAL}
        return await self._worktrees().collect(dry_run=dry_run, expired=lambda name: False, active=active)

    async def _of(self, reference: str) -> tuple[Worktrees, Mapping[str, Any]]:
        run = await self._tasks.find(reference)
        entry = await self._store.journal.find(run.id, SLOT_KEY)
        if entry is None or entry.value["isolation"] == Isolation.NONE:
            ways = ("muster task result shows its output",)
            raise BadArgument(f"task {task_id(run)} has no worktree", suggestions=ways)
        return worktrees_of(entry.value), entry.value

    def _worktrees(self) -> Worktrees:
        return project_trees(self._settings)
