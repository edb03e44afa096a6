"""The working tree of a task: made when it begins, gone on with when it is retried, saved after every round."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from muster.domain.canonical import Json
from muster.domain.errors import MusterError, NotFound
from muster.git.layout import Worktree
from muster.git.repository_changes import changes_between, is_decisive
from muster.git.saved_work import SavedWork
from muster.git.worktrees import Worktrees
from muster.pool.setup import TreeSetup
from muster.pool.tasks import AssignedSlot
from muster.pool.watched import watched_state

MAX_FILES = 200  # that are listed in a result
_UNKNOWN = "unknown"  # in place of a repository that git could not tell of: why

# Of our environment: what git needs to find itself and the user's settings.
GIT_VARIABLES = (
    "PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER", "LOGNAME",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
)  # fmt: skip


def worktrees_of(slot: AssignedSlot) -> Worktrees:
    """Return the trees of the repository in which the slot of a task works."""
    base = Path(slot.base_dir) if slot.base_dir else None
    return Worktrees(Path(slot.folder), base, environment=slot.git_environment)


async def working_folder(slot: AssignedSlot) -> tuple[str, Worktree | None]:
    """Return where a task works: in its tree, made unless it is there, at the same sub-folder as in the project."""
    if not slot.has_tree:
        return slot.folder, None
    trees = worktrees_of(slot)
    ref = slot.ref or await _handed_over(trees, slot)
    tree = await trees.create(slot.tree, slot.isolation, ref=ref, copy=slot.copy)
    return str(await asyncio.to_thread(_inside, Path(slot.folder), tree)), tree


async def _handed_over(trees: Worktrees, slot: AssignedSlot) -> str | None:
    """Return the commit with the work of the tasks on which a task depends; None when there is none, or a tree."""
    work = {earlier.head: f"task {earlier.title}" for earlier in slot.after if earlier.head}
    if not work:
        return None
    try:
        await trees.find(slot.tree)
    except NotFound:
        return await trees.combine(slot.tree, work)
    return None  # it begins where it began


def setup_of(slot: AssignedSlot) -> TreeSetup:
    """Return what prepares the tree of a task, with the environment of its slot."""
    return TreeSetup(commands=slot.setup, seconds=slot.setup_secs, environment=slot.environment)


def _inside(folder: Path, tree: Worktree) -> Path:
    below = folder.resolve().relative_to(tree.repository.resolve())
    found = tree.path / below
    found.mkdir(parents=True, exist_ok=True)
    return found


async def state_before(slot: AssignedSlot) -> dict[str, Json]:
    """Return the user's repository, and the files that a task must leave alone, as they are before a round of it."""
    return await repository_before(worktrees_of(slot), slot.watched)


async def repository_before(trees: Worktrees, watched: Sequence[str] = ()) -> dict[str, Json]:
    """Return the user's repository as it is before agents work, for `repository_changes`; or why git does not tell."""
    try:
        return {**await trees.repository_state(), **await asyncio.to_thread(watched_state, watched)}
    except MusterError as error:
        return {_UNKNOWN: error.message}


async def repository_changes(
    trees: Worktrees, before: Mapping[str, str], known: Sequence[Json] = (), watched: Sequence[str] = ()
) -> dict[str, Json]:
    """Return what has changed in the user's repository since then, after what is known; or why that is not known."""
    after: Mapping[str, Any] = before if _UNKNOWN in before else await repository_before(trees, watched)
    if _UNKNOWN in after:
        return {"repository_changes": list(known), "repository_unknown": after[_UNKNOWN]}
    changes: list[Any] = [asdict(change) for change in changes_between(before, after)]
    told = [*known, *(change for change in changes if change not in known)]
    if len(told) > MAX_FILES:
        told.sort(key=lambda change: not is_decisive(change["what"]))  # these are kept
    return {"repository_changes": told[:MAX_FILES], "repository_unknown": None}


async def save(
    slot: AssignedSlot, before: Mapping[str, Any] | None = None, known: Sequence[Json] = ()
) -> dict[str, Json]:
    """Commit what is uncommitted in the tree of a task to its branch, and return what the branch holds.

    `before` is the user's repository as it was: what has changed in it since then is told, after what is known. Of a
    task without a tree nothing else is.
    """
    trees, found = worktrees_of(slot), {}
    if slot.has_tree:
        found = saved_json(await trees.save(await trees.find(slot.tree), f"Work of task {slot.task}"))
    return found | ({} if before is None else await repository_changes(trees, before, known, slot.watched))


def saved_json(saved: SavedWork) -> dict[str, Json]:
    """Return what a branch holds as JSON."""
    return {
        "branch": saved.branch,
        "base": saved.base,
        "head": saved.head,
        "commits": saved.commits,
        "changed": saved.changed,
        "summary": saved.summary,
        "other_branches": list(saved.others),
        "nested": list(saved.nested[:MAX_FILES]),
        "unsaved": list(saved.unsaved[:MAX_FILES]),
        "operation": saved.operation,
        "handover": saved.handover,
        "files": [
            {"path": file.path, "status": file.status, "added": file.added, "deleted": file.deleted}
            for file in saved.files[:MAX_FILES]
        ],
    }
