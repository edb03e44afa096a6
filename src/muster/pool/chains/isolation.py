"""The working tree of a chain: its commands and process agents work there, and its work is kept on a branch.

The name of the tree is remembered, so that a resumed chain goes on in its tree. Without a tree the chain fails: it
never works in the user's folder instead.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from muster.domain.canonical import Json, JsonObject
from muster.domain.errors import StepFailed
from muster.domain.isolation import Isolation
from muster.engine.context import Context
from muster.git.layout import Worktree
from muster.git.saved_work import SavedWork
from muster.git.worktrees import Worktrees
from muster.pool.chains.chain import ChainSpec
from muster.pool.chains.kind import CHAIN
from muster.pool.isolation import repository_before, repository_changes, saved_json
from muster.pool.setup import prepare_tree

TREE_KEY = CHAIN.tree_key
CHANGES_EVENT = "chain.repository"


def worktrees_of(spec: ChainSpec) -> Worktrees:
    """Return the trees of the repository in which a chain was started."""
    return Worktrees(Path(spec.folder), environment=spec.git_environment)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTree:
    """The tree of a chain that is being run."""

    spec: ChainSpec
    tree: Worktree
    folder: Path  # the same sub-folder as the one in which the chain was started

    async def save(self, ctx: Context) -> Mapping[str, Json]:
        """Commit what is uncommitted to the branch of the tree, once in this run, and return what the branch holds."""

        async def work() -> JsonObject:
            return saved_json(await save_tree(self.spec, self.tree.name))

        saved = await ctx.step(f"chain/saved/{ctx.run}", work)
        await ctx.emit("chain/saved/told", "chain.saved", {name: saved[name] for name in ("branch", "summary")})
        return saved


async def open_tree(ctx: Context, spec: ChainSpec) -> ChainTree | None:
    """Return the tree of a chain, made unless it is there; None when it works in the user's folder."""
    if spec.chain.isolation in (None, Isolation.NONE):
        return None
    name = str(await ctx.step(TREE_KEY, lambda: f"chain-{ctx.run}"))
    tree = await worktrees_of(spec).create(name, Isolation(spec.chain.isolation), copy=spec.copy)
    folder = await asyncio.to_thread(_folder, spec, tree)
    told = {"branch": tree.branch, "path": str(tree.path), "base": tree.base, "notes": list(tree.notes)}
    await ctx.emit("chain/tree/told", "chain.tree", told)
    await prepare_tree(ctx, tree, spec.setup, "chain.setup")
    return ChainTree(spec=spec, tree=tree, folder=folder)


def before_key(run: str) -> str:
    """Return the key of the user's repository as it was before a run of a chain."""
    return f"chain/repository/{run}"


def changes_key(run: str) -> str:
    """Return the key of what a run of a chain, which came to its end, changed in the user's repository."""
    return f"{before_key(run)}/changes"


async def compared(ctx: Context, spec: ChainSpec, work: Callable[[], Awaitable[Any]]) -> Any:
    """Return what a chain gives, and tell what changed in the user's repository meanwhile, also when it fails."""
    if not spec.compares:
        return await work()
    before = await ctx.step(before_key(ctx.run), partial(repository_before, worktrees_of(spec)))
    try:
        result = await work()
    except StepFailed:
        await _tell_changes(ctx, spec, before)
        raise
    await _tell_changes(ctx, spec, before)
    return result


async def _tell_changes(ctx: Context, spec: ChainSpec, before: Mapping[str, Any]) -> None:
    found = await ctx.step(changes_key(ctx.run), partial(repository_changes, worktrees_of(spec), before))
    if any(found.values()):
        await ctx.emit("chain/repository/told", CHANGES_EVENT, found)


async def save_tree(spec: ChainSpec, name: str) -> SavedWork:
    """Commit what is uncommitted in a tree to its branch."""
    trees = worktrees_of(spec)
    return await trees.save(await trees.find(name), f"Work of the chain {spec.chain.name}, {name}")


def _folder(spec: ChainSpec, tree: Worktree) -> Path:
    """Return the folder inside of a tree that stands for the one in which the chain was started."""
    below = Path(spec.folder).resolve().relative_to(tree.repository.resolve())
    folder = tree.path / below
    folder.mkdir(parents=True, exist_ok=True)
    return folder
