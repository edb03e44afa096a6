"""Which trees may be removed: those that hold nothing which is not on a branch. Whatever is unclear stays.

Branches are kept, except those on which nothing was ever committed.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from muster.agents.processes import system
from muster.domain.errors import Conflict, MusterError
from muster.domain.isolation import Isolation
from muster.git.branches import commit_of
from muster.git.commands import GitCommands, storable
from muster.git.copies import unchanged_copies
from muster.git.layout import HEADS, PREFIX, Layout, TreeRecord, TreeState
from muster.git.saved_work import keep_head
from muster.git.snapshots import operation_in, overlooked

_MAX_NAMED = 3  # files that are named in a reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What became of one tree, or would become of it."""

    name: str
    removed: bool
    reason: str
    owner: str | None = None  # the name of the work that it was made for, as far as whoever collects knows one


async def collect_trees(
    layout: Layout, *, dry_run: bool, expired: Callable[[str], bool], active: frozenset[str]
) -> tuple[Collected, ...]:
    """Remove what may be removed, and return the reasons for every tree."""
    names = await asyncio.to_thread(layout.names)
    found = [await _consider(layout, name, dry_run, expired, active) for name in names]
    strangers = await asyncio.to_thread(_strangers, layout, frozenset(names))
    reason = "it was not made by Muster"
    return (*found, *(Collected(name=name, removed=False, reason=reason) for name in strangers))


async def discard(layout: Layout, record: TreeRecord) -> None:
    """Remove the folder of a tree in which nothing needs to be kept, and what git knows of it; no branch."""
    path = layout.path(record.name)
    try:
        await asyncio.to_thread(_remove, path)
        for admin in await asyncio.to_thread(_admins, layout.common, path):
            await asyncio.to_thread(_remove, admin)
    except OSError as error:
        raise MusterError(f"{error.filename or path} cannot be removed: {error.strerror}") from error


async def _consider(
    layout: Layout, name: str, dry_run: bool, expired: Callable[[str], bool], active: frozenset[str]
) -> Collected:
    """Decide about one tree; an error is a reason to keep it."""
    if name in active:
        return Collected(name=name, removed=False, reason="an agent works in it")
    try:
        async with layout.tree_lock(name, seconds=0) as held:
            return await _decide(held, name, dry_run, expired)
    except Conflict:
        return Collected(name=name, removed=False, reason="another process works on it")
    except MusterError as error:
        return Collected(name=name, removed=False, reason=error.message)


async def _decide(layout: Layout, name: str, dry_run: bool, expired: Callable[[str], bool]) -> Collected:
    record = layout.record(name)
    if record is None:
        return Collected(name=name, removed=True, reason="another process removed it")
    if record.state is not TreeState.READY:
        reason = "it was never finished" if record.state is TreeState.MAKING else "it is not needed"
    elif not await asyncio.to_thread(layout.is_there, name):
        reason = "its folder is gone"
        if not dry_run:
            record = await keep_head(layout, record)
    else:
        if kept := await _why_kept(layout, record):
            return Collected(name=name, removed=False, reason=kept)
        reason = await _why_removed(layout, record, expired)
        if not reason:
            return Collected(name=name, removed=False, reason=f"{_here(record)} is not merged")
    if not dry_run:
        await _remove_tree(layout, record)
    return Collected(name=name, removed=True, reason=reason)


async def _why_kept(layout: Layout, record: TreeRecord) -> str | None:
    """Return what a tree holds that would be lost with it, or who works in it."""
    path, git_dir, git = layout.path(record.name), layout.git_dir(record), layout.tree_git(record)
    if not git_dir.is_dir():
        return f"git no longer knows it: {git_dir} is gone"
    if await asyncio.to_thread(lambda: any(system.working_in(path))):
        return "a process works in it"
    if operation := operation_in(git_dir):
        return f"it is in the middle of a {operation}"
    if (git_dir / "modules").exists():
        return "it has submodules"
    if record.kind is Isolation.WORKTREE and (path / ".git").is_dir():
        return "it contains another git repository"
    return await _files_kept(git, record) or await _commits_kept(layout, record)


async def _files_kept(git: GitCommands, record: TreeRecord) -> str | None:
    """Return which files are in no commit."""
    options = ("--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching", "--no-renames")
    if found := [path for paths in (await overlooked(git)).values() for path in paths]:
        return f"it has files whose changes git is set to ignore: {_named([storable(path) for path in found])}"
    parts = (await git.ask("status", *options, "--ignore-submodules=none")).parts
    copied = await asyncio.to_thread(unchanged_copies, git.folder, record.copied)
    left = [(part[:2], storable(part[3:])) for part in parts if part[3:] not in copied]
    if changed := [path for kind, path in left if kind != "!!"]:
        return f"it has uncommitted files: {_named(changed)}"
    if ignored := [path for kind, path in left if kind == "!!"]:
        return f"it has ignored files: {_named(ignored)}"
    return None


async def _commits_kept(layout: Layout, record: TreeRecord) -> str | None:
    """Return which commits of a tree no branch of the user's repository holds."""
    git = layout.tree_git(record)
    refs = ["HEAD"]
    if record.kind is Isolation.CLONE:
        refs += (
            await git.ask("for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags", "refs/stash")
        ).text.split()
    for ref in refs:
        commit = await commit_of(git, ref)
        if commit is None:
            return f"{ref} is not a commit"
        held = await layout.git.run("rev-list", "--count", commit, "--not", "--branches", "--tags", "--remotes")
        if held.code != 0 or held.text != "0":
            return f"{ref.removeprefix(HEADS)} has commits that no branch of {layout.root} holds"
    return None


async def _why_removed(layout: Layout, record: TreeRecord, expired: Callable[[str], bool]) -> str:
    """Return why a clean tree may go; nothing when it may not."""
    tip = await commit_of(layout.git, HEADS + _here(record))
    if tip is None or tip == record.base:
        work = "it holds no work"
    elif target := await _merged_into(layout, tip):
        work = f"{_here(record)} is merged into {target}"
    else:
        work = ""
    return work or ("it is expired" if expired(record.name) else "")


async def _merged_into(layout: Layout, commit: str) -> str:
    """Return a branch that the user works with and that holds a commit; empty when there is none.

    An agent makes branches too, so of the local ones only those count that a tree of the user's has checked out, or
    that follow another one.
    """
    ours = await asyncio.to_thread(layout.base_dir.resolve)
    for ref, upstream, folder in await _holding(layout, commit, "%(upstream)", "%(worktreepath)"):
        is_users = bool(folder) and not Path(folder).is_relative_to(ours)
        if not ref.startswith(HEADS) or upstream or is_users:
            return ref.removeprefix(HEADS).removeprefix("refs/remotes/")
    return ""


async def _holding(layout: Layout, commit: str, *fields: str) -> list[list[str]]:
    """Return the branches that are not ours and hold a commit, each with some fields of it."""
    options = (f"--contains={commit}", f"--format={'%09'.join(('%(refname)', *fields))}", "refs/heads", "refs/remotes")
    told = (await layout.git.ask("for-each-ref", *options)).output  # with its last tabs: fields may be empty
    lines = os.fsdecode(told).splitlines()
    return [line.split("\t") for line in lines if not line.startswith(HEADS + PREFIX)]


async def _remove_tree(layout: Layout, record: TreeRecord) -> None:
    """Remove a tree: git looks once more at one whose files matter; then its record goes."""
    if record.state is TreeState.READY and record.kind is Isolation.WORKTREE and layout.is_there(record.name):
        await asyncio.to_thread(_drop_copies, layout.path(record.name), record)
        async with layout.repository_lock() as held:
            await held.git.ask("worktree", "remove", str(layout.path(record.name)))
    record = layout.remember(replace(record, state=TreeState.REMOVING))
    await discard(layout, record)
    await _drop_empty_branch(layout, record)
    layout.forget(record.name)


async def _drop_empty_branch(layout: Layout, record: TreeRecord) -> None:
    """Delete a branch that we made and on which nothing was committed, if another one holds its commit."""
    tip = await commit_of(layout.git, HEADS + record.branch)
    if record.new_branch and tip == record.base and await _holding(layout, tip):
        async with layout.repository_lock() as held:
            await held.git.ask("update-ref", "-d", HEADS + record.branch, tip)


def _here(record: TreeRecord) -> str:
    """Return the branch of a tree as the user's repository has it."""
    return record.fetched[record.branch][0] if record.branch in record.fetched else record.branch


def _drop_copies(path: Path, record: TreeRecord) -> None:
    """Delete the files that we copied: git would not remove a tree with files it does not know."""
    for name in unchanged_copies(path, record.copied):
        (path / name).unlink(missing_ok=True)


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    return ", ".join(paths[:_MAX_NAMED]) + more


def _strangers(layout: Layout, names: frozenset[str]) -> list[str]:
    """Return the folders in the base folder that have no record."""
    if not layout.base_dir.is_dir():
        return []
    return sorted(path.name for path in layout.base_dir.iterdir() if path.is_dir() and path.name not in names)


def _admins(common: Path, path: Path) -> list[Path]:
    """Return the folders in which git keeps what it knows of a worktree."""
    found = []
    for file in (common / "worktrees").glob("*/gitdir"):
        with suppress(OSError):
            if Path(file.read_text(encoding="utf-8", errors="surrogateescape").rstrip("\n")) == path / ".git":
                found.append(file.parent)
    return found


def _remove(path: Path) -> None:
    """Delete a folder that may be there; a link is not followed."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)
