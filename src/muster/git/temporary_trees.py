"""Trees without a branch, in which nobody works: made for a merge or a verification, and removed afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from muster.domain.errors import Conflict
from muster.domain.isolation import Isolation
from muster.git.commands import NO_SMUDGE, GitCommands
from muster.git.layout import Layout, TreeRecord, TreeState, exclude_base_dir, is_taken
from muster.git.retention import discard


@asynccontextmanager
async def temporary_tree(layout: Layout, name: str, commit: str) -> AsyncIterator[GitCommands]:
    """Make a tree for one purpose, and remove it; what a killed process left is removed first."""
    async with layout.tree_lock(name) as held:
        try:
            yield await make_temporary(held, name, commit)
        finally:
            await remove_temporary(held, name)


async def make_temporary(layout: Layout, name: str, commit: str) -> GitCommands:
    """Make a tree with the files of a commit, in the place of what was left of one; the caller holds its lock."""
    left = layout.record(name)
    if left is not None and left.state is TreeState.READY:
        raise _in_the_way(layout, name)
    if left is not None:
        await discard(layout, left)
    elif is_taken(layout.path(name)):
        raise _in_the_way(layout, name)
    layout.remember(
        TreeRecord(name=name, kind=Isolation.WORKTREE, state=TreeState.TEMPORARY, branch="", base=commit, admin=name)
    )
    async with layout.repository_lock() as locked:
        await exclude_base_dir(locked)
        layout.base_dir.mkdir(parents=True, exist_ok=True)
        options = ("--quiet", "--no-checkout", "--detach")
        await locked.git.ask("worktree", "add", *options, str(layout.path(name)), commit)
    git = layout.git.at(layout.path(name))
    await git.configured(*NO_SMUDGE).ask("reset", "--hard", "--quiet", "--no-recurse-submodules")
    return git


async def remove_temporary(layout: Layout, name: str) -> None:
    """Remove such a tree, if there is one; the caller holds its lock."""
    record = layout.record(name)
    if record is not None and record.state is not TreeState.READY:
        await discard(layout, record)
        layout.forget(name)


def _in_the_way(layout: Layout, name: str) -> Conflict:
    return Conflict(f"{layout.path(name)} is in the way of a tree without a branch", suggestions=("move it away",))
