"""The working trees of tasks: where a task works, what it changed there, merged and removed. `Muster.pool.trees`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from muster.app.base.backend import Backend
from muster.app.kinds import kind_of
from muster.app.pool.slots import assigned_slot, base_dir, git_environment, project_trees
from muster.app.pool.task_queries import Task
from muster.app.pool.tasks import Tasks
from muster.app.runs.runs import Runs
from muster.domain.agent import Command, Timeouts
from muster.domain.call import ask
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, Conflict, MusterError, NotFound
from muster.domain.ids import RunId
from muster.domain.isolation import Isolation
from muster.domain.run import TERMINAL, Run, RunState
from muster.domain.task import TaskState
from muster.git.branch_changes import CommittedTree, LineChanges, TreeHistory
from muster.git.merges import Merge
from muster.git.overlaps import BranchEdits
from muster.git.repository import Git
from muster.git.retention import Collected
from muster.git.saved_work import BranchRange, SavedWork
from muster.git.worktrees import Worktrees
from muster.pool.handover import FinishedWork, handed_over
from muster.pool.isolation import save, setup_of, worktrees_of
from muster.pool.tasks import AssignedSlot, TaskSpec, task_id
from muster.pool.workload import repository_key
from muster.text.secrets.redaction import redact
from muster.text.words import shorten

__all__ = ["Collected", "Merge", "OverlapReport", "SavedTaskWork", "TaskOverlap", "TaskTrees"]

MAX_DIFF = 1_000_000  # bytes
CHECK_SECONDS = 1800.0
MAX_HANDED_OVER = 20_000  # characters of a result in the prompt of a task that depends on it
MAX_UNFINISHED = 1_000_000
MAX_LISTED = 500  # finished tasks that are looked at for overlaps, the newest
MAX_COMPARED = 200  # branches of tasks, the newest, that are compared with each other


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOverlap:
    """A file that the branches of more than one task changed."""

    path: str
    tasks: tuple[str, ...]  # ids
    conflicts: tuple[tuple[str, str], ...]  # of them, two at a time: they changed the same lines
    examined: bool  # whether all of them were looked at for conflicts


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapReport:
    """The files that several tasks changed."""

    overlaps: tuple[TaskOverlap, ...] = ()
    left_out: int = 0  # older tasks that were not compared
    obstacle: str = ""  # why nothing is known
    names: Mapping[str, str] = field(default_factory=dict)  # of the tasks, by id


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTaskWork:
    """The work of a task, and the tree that it is in."""

    path: Path
    work: SavedWork


class TaskTrees:
    """The working trees of the tasks of the pool."""

    def __init__(self, backend: Backend, runs: Runs, tasks: Tasks) -> None:
        self._settings, self._store, self._directory = backend.settings, backend.store, backend.directory
        self._runs, self._tasks, self._clock = runs, tasks, backend.clock

    async def isolation_of(self, spec: TaskSpec, agent: str) -> Isolation:
        """Return where a task works: as it or the pool says, else in a worktree if its agent changes files in git."""
        said = spec.isolation or self._settings.pool.isolation
        if said is not None:
            return Isolation(said)
        in_git = self._directory.changes_files(agent) and await Git(self._settings.folder).root() is not None
        return Isolation.WORKTREE if in_git else Isolation.NONE

    async def place(self, slot: AssignedSlot, run: RunId, spec: TaskSpec) -> AssignedSlot:
        """Return the slot with where its task works: the tree has the name of the task, so that a retry finds it."""
        name, base = task_id(await self._runs.get(run)), base_dir(self._settings)
        isolation = await self.isolation_of(spec, slot.agent)
        into_tree = isolation is not Isolation.NONE and spec.ref is None
        after = [handed_over(await self._finished(earlier), into_tree=into_tree) for earlier in spec.after]
        return replace(
            slot,
            isolation=isolation,
            compares=isolation is not Isolation.NONE or await self._may_change(spec, slot.agent),
            task=name,
            tree=f"task-{name}",
            base_dir=None if base is None else str(base),
            ref=spec.ref,
            watched=spec.watched,
            after=tuple(after),
            copy=tuple(self._settings.pool.copy),
            setup=tuple(tuple(command) for command in self._settings.pool.setup_commands),
            setup_secs=self._settings.pool.setup_timeout_secs,
            git_environment=git_environment(self._settings),
        )

    async def _may_change(self, spec: TaskSpec, agent: str) -> bool:
        """Return whether a task without a tree works where an agent could change a repository of the user's."""
        folder = self._settings.folder / spec.cwd
        return self._directory.changes_files(agent) and await Git(folder).is_inside()

    async def _finished(self, reference: str) -> FinishedWork:
        """Return a task on which another depends, as it ended."""
        task = await self._tasks.get(reference)
        slot = task.slot
        has_tree = slot is not None and slot.has_tree
        edited = slot.folder if slot is not None and self._directory.changes_files(slot.agent) else ""
        return FinishedWork(
            task=task.id,
            name=task.run.name,
            output="" if task.reply is None else shorten(task.reply.text, MAX_HANDED_OVER),
            saved=task.saved,
            folder=str(task.tree.get("path", "")) if has_tree else edited,
            has_tree=has_tree,
        )

    async def diff(self, reference: str, most_bytes: int = MAX_DIFF) -> str:
        """Return what a task has changed in its tree as a patch without secrets, also what is uncommitted."""
        return redact(await self._diff(reference, most_bytes)).text

    async def _diff(self, reference: str, most_bytes: int) -> str:
        task, trees, slot = await self._of(reference)
        try:
            return await trees.diff(await trees.find(slot.tree), most_bytes)
        except NotFound:  # it was collected, or somebody deleted it: its branch is still there
            if task.branch is None or task.base is None:
                raise
            work = BranchRange(branch=task.branch, base=task.base, head=task.saved.get("head"))
            return await trees.diff(work, most_bytes)

    async def saved(self, reference: str) -> SavedTaskWork:
        """Return what the branch of a task holds, with what was left uncommitted in its tree, and where that is."""
        _, trees, slot = await self._of(reference)
        tree = await trees.find(slot.tree)
        return SavedTaskWork(path=tree.path, work=await trees.save(tree, f"Work of task {slot.task}"))

    async def history(self, work: SavedWork) -> TreeHistory:
        """Return what the branch of a task ever changed."""
        return await self._worktrees().history(work)

    async def lines_changed(self, work: SavedWork) -> Mapping[str, LineChanges]:
        """Return the lines that the branch of a task adds and removes, by file."""
        return await self._worktrees().lines_changed(work)

    async def whole_of(self, work: SavedWork) -> CommittedTree:
        """Return the files that the branch of a task holds."""
        return await self._worktrees().whole_of(work)

    async def part_of(self, work: SavedWork, paths: Collection[str], message: str) -> CommittedTree:
        """Return the files with which a task began, with what it made of some of them."""
        return await self._worktrees().part_of(work, paths, message)

    async def check_out(self, reference: str, name: str, commit: str) -> Path:
        """Make a tree in which nobody has worked, prepared as that of a task was, and return where it is."""
        _, trees, slot = await self._of(reference)
        folder = await trees.check_out(name, commit, slot.copy)
        setup = setup_of(slot)
        for argv in setup.commands:
            command = Command(
                argv=argv, folder=str(folder), environment=dict(setup.environment), exits=(0,), quotes=True
            )
            await self._directory.command(command).call(ask(""), Timeouts(call=setup.seconds))
        return folder

    async def remove(self, name: str) -> None:
        """Remove such a tree, if it is there."""
        await self._worktrees().remove(name)

    async def restore(self, reference: str, work: SavedWork, paths: Sequence[str], message: str) -> SavedWork:
        """Commit some files as they were when a task began to its branch, and return what the branch holds then."""
        _, trees, slot = await self._of(reference)
        return await trees.restore(await trees.find(slot.tree), work, paths, message)

    async def diff_of(self, work: SavedWork, paths: Sequence[str], most_bytes: int = MAX_DIFF) -> str:
        """Return what a branch changes in some files as a patch without secrets."""
        return redact(await self._worktrees().diff_of(work, paths, most_bytes)).text

    async def keep(self, run: Run) -> None:
        """Commit what a task that was stopped left uncommitted to its branch, and remember what the branch holds."""
        slot = await assigned_slot(self._store.journal, run.id)
        if run.is_driven or slot is None or not slot.is_compared:
            return
        task = await self._tasks.of(run)
        before = await self._store.journal.find(run.id, repository_key(max(0, task.rounds - 1), run.id))
        known = task.saved.get("repository_changes", ())
        try:
            saved = await save(slot, None if before is None else before.value, known)
        except NotFound:  # it was stopped before it had a tree
            return
        merged = task.saved.get("merged")
        await self._store.pool.keep_work(run.lineage_level, {**saved, "merged": merged, "run": run.id})

    async def commit_files(self, new: Sequence[str], message: str) -> str:
        """Return a commit, which no branch has, with the project's tracked files as they are now and some new ones."""
        return await self._worktrees().commit_files(new, message)

    async def merge(self, reference: str, check: Sequence[str] = (), *, apply: bool = False) -> Merge:
        """Merge the branch of a task in a tree of its own, where the check must succeed; with `apply`, move the target.

        Raises MergeConflict with the files, what the check failed with, and Conflict when all of its work lies beside
        its branch. What is merged already is an empty merge.
        """
        task, trees, _ = await self._of(reference)
        if task.branch is None:
            raise _no_tree(task)
        if not task.saved.get("commits", 1) and task.beside:
            raise Conflict(
                f"{task.branch} holds no work to merge; task {task.title} left {'; '.join(task.beside)}",
                suggestions=tuple(f"git merge {other}" for other in task.saved["other_branches"]),
            )

        async def run_check(folder: Path) -> None:
            command = Command(argv=tuple(check), folder=str(folder), exits=(0,))
            await self._directory.command(command).call(ask("check"), Timeouts(call=CHECK_SECONDS))

        merge = await trees.merge(task.branch, None, run_check if check else None)
        if apply:
            await trees.apply(merge)
        if apply or merge.is_empty:
            await self._note_merge(task, trees, merge)
        return merge

    async def _note_merge(self, task: Task, trees: Worktrees, merge: Merge) -> None:
        """Remember that the work of a task is merged, so that every screen says it."""
        head = str(task.saved.get("head"))
        if task.saved.get("commits") and await trees.contains(merge.commit, head):
            kept = await self._store.pool.kept_work(task.run.lineage_level)
            merged: dict[str, Json] = {"head": head, "into": merge.target}
            await self._store.pool.keep_work(task.run.lineage_level, {**kept, "merged": merged})

    async def overlaps(self, reference: str | None = None) -> OverlapReport:
        """Return the files that unmerged branches of finished tasks have in common; of one task, those it shares."""
        wanted = None if reference is None else await self._tasks.get(reference)
        if wanted is not None and not wanted.saved.get("changed"):
            return OverlapReport()
        finished = await self._tasks.list((TaskState.COMPLETED, TaskState.PENDING_REVIEW), limit=MAX_LISTED)
        tasks = [task for task in finished if task.saved.get("changed") and _may_meet(wanted, task)]
        if wanted is not None:
            tasks = [wanted, *(task for task in tasks if task.id != wanted.id)]
        compared = {task.branch: task for task in tasks[:MAX_COMPARED] if task.branch}
        try:
            return await self._compared(compared, wanted, len(tasks) - len(compared))
        except MusterError as error:  # what a task came to can be read without git too
            return OverlapReport(obstacle=error.message)

    async def _compared(self, tasks: Mapping[str, Task], wanted: Task | None, left_out: int) -> OverlapReport:
        edits = [BranchEdits(branch=branch, base=task.saved["base"]) for branch, task in tasks.items()]
        found = await self._worktrees().overlaps(edits) if len(edits) > 1 else ()
        overlaps = [
            TaskOverlap(
                path=one.path,
                tasks=tuple(tasks[branch].id for branch in one.branches),
                conflicts=tuple((tasks[first].id, tasks[second].id) for first, second in one.conflicts),
                examined=one.examined,
            )
            for one in found
        ]
        mine = (one for one in overlaps if wanted is None or wanted.id in one.tasks)
        names = {task.id: task.run.name for task in tasks.values() if task.run.name}
        return OverlapReport(overlaps=tuple(mine), left_out=left_out, names=names)

    async def collect(self, *, dry_run: bool = False) -> Sequence[Collected]:
        """Remove the trees of tasks that hold nothing which is not elsewhere; say of each what was done and why."""
        active = {f"task-{task_id(run)}" for run in await self._tasks.unfinished()} | await self._other_trees()
        old = await self._expired()
        found = await self._worktrees().collect(dry_run=dry_run, expired=old.__contains__, active=active)
        names = {f"task-{task_id(run)}": run.name async for run in self._tasks.newest()} if found else {}
        return [replace(one, owner=names.get(one.name)) for one in found]

    async def _other_trees(self) -> set[str]:
        """Return the names of the trees of chains and verifications that are not over."""
        states = [state for state in RunState if state not in TERMINAL]
        unfinished = await self._runs.list(states, limit=MAX_UNFINISHED)
        named = {name for run in unfinished for name in kind_of(run).trees(run)}
        keys = [(run.id, kind_of(run).tree_key) for run in unfinished]
        entries = [await self._store.journal.find(run, key) for run, key in keys if key]
        return named | {str(entry.value) for entry in entries if entry is not None}

    async def _expired(self) -> set[str]:
        """Return the names of the trees of tasks that ended longer ago than the settings keep them."""
        days = self._settings.pool.worktree_keep_days
        if days is None:
            return set()
        before = self._clock.now() - days * 86_400
        return {f"task-{task_id(run)}" async for run in self._tasks.newest() if (run.ended_at or before) < before}

    async def _of(self, reference: str) -> tuple[Task, Worktrees, AssignedSlot]:
        task = await self._tasks.get(reference)
        if task.slot is None or not task.slot.has_tree:
            raise _no_tree(task)
        return task, worktrees_of(task.slot), task.slot

    def _worktrees(self) -> Worktrees:
        return project_trees(self._settings)


def _no_tree(task: Task) -> BadArgument:
    return BadArgument(f"task {task.title} has no worktree", suggestions=(f"muster task result {task.id}",))


def _may_meet(one: Task | None, other: Task) -> bool:
    """Return whether two tasks may have changed the same file, by what is stored of them; a long list is cut."""
    if one is None:
        return True
    lists = [task.saved["files"] for task in (one, other)]
    if any(len(files) < task.saved["changed"] for files, task in zip(lists, (one, other), strict=True)):
        return True
    return bool({file["path"] for file in lists[0]} & {file["path"] for file in lists[1]})
