"""The files of a tree written into git through an index of our own, whatever state its own index is in."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from muster.domain.errors import MusterError
from muster.git.commands import GitCommands, storable
from muster.git.layout import Layout, TreeRecord

_INDEX = "muster-index-"
_USERS_INDEX = "muster-files-"
_MAX_UNSAVED = 1_000  # paths
_OPERATIONS = {
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSnapshot:
    """The files of a tree as git would commit them."""

    id: str  # of the tree object
    index: Path
    nested: tuple[str, ...]
    unsaved: tuple[str, ...]


def operation_in(git_dir: Path) -> str | None:
    """Return what a working tree is in the middle of."""
    return next((name for file, name in _OPERATIONS.items() if (git_dir / file).exists()), None)


async def tree_of_files(layout: Layout, new: Sequence[str]) -> str:
    """Write the user's tracked files as they are now, and some that git does not know, into a tree object.

    Ignored files are left out. The user's index is read and never written.
    """
    index = layout.own / f"{_USERS_INDEX}{uuid4().hex}"
    git = layout.git.with_index(index)
    try:
        await asyncio.to_thread(_copy_index, layout.own, index)
        await git.ask("add", "--update", "--", ".")
        unknown = set((await git.ask("ls-files", "-z", "--others", "--exclude-standard")).parts)
        wanted = b"".join(b":(top,literal)" + os.fsencode(path) + b"\0" for path in new if path in unknown)
        if wanted:
            await git.ask("add", "--pathspec-from-file=-", "--pathspec-file-nul", told=wanted)
        return (await git.ask("write-tree")).text
    finally:
        for left in (index, index.with_name(f"{index.name}.lock")):
            left.unlink(missing_ok=True)


async def tree_of(git: GitCommands, commit: str | None) -> str:
    """Return the tree of a commit; without one, that of no files."""
    if commit is None:
        return (await git.ask("hash-object", "-t", "tree", "--stdin")).text
    return (await git.ask("rev-parse", "--verify", f"{commit}^{{tree}}")).text


async def joined_tree(layout: Layout, record: TreeRecord, one: str, other: str) -> str:
    """Return the tree of a commit with the files of another added; the caller holds the lock of the tree."""
    git, git_dir = layout.tree_git(record), layout.git_dir(record)
    own = git.with_index(git_dir / f"{_INDEX}{uuid4().hex}")
    try:
        await own.ask("read-tree", one)
        listed = (await own.ask("ls-tree", "-r", "-z", "--full-tree", other)).output
        await own.ask("update-index", "--replace", "-z", "--index-info", told=listed)
        return (await own.ask("write-tree")).text
    finally:
        _drop_indexes(git_dir)


@asynccontextmanager
async def snapshot(layout: Layout, record: TreeRecord) -> AsyncIterator[TreeSnapshot]:
    """Write the files of a tree into git through an index of our own: that of the tree, and its lock, are untouched."""
    git, git_dir = layout.tree_git(record), layout.git_dir(record)
    index = git_dir / f"{_INDEX}{uuid4().hex}"
    own = git.with_index(index)
    try:
        _drop_indexes(git_dir)  # what killed ones left
        await asyncio.to_thread(_copy_index, git_dir, index)
        listed = await own.run("ls-files", "-z", "--others", "--exclude-standard")
        if listed.code != 0:  # the agent broke its index: begin with none, the files are all there
            index.unlink(missing_ok=True)
            listed = await own.ask("ls-files", "-z", "--others", "--exclude-standard")
        for option, paths in (await overlooked(own)).items():
            told = b"".join(os.fsencode(path) + b"\0" for path in paths)
            await own.ask("update-index", option, "-z", "--stdin", told=told)
        new = listed.parts
        nested = {path.rstrip("/") for path in new if path.endswith("/")}
        left_out = [path for path in new if path.endswith("/") or path in record.copied]
        excluded = b"".join(b":(top,exclude,literal)" + os.fsencode(path) + b"\0" for path in left_out)
        specs = b".\0" + excluded  # not ":(top).", with which git takes no exclusions and adds nothing
        await own.ask("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", told=specs)
        tree = (await own.ask("write-tree")).text
        nested |= await _repositories_in(own)
        unsaved = await _still_different(own, frozenset(left_out))
        yield TreeSnapshot(
            id=tree, index=index, nested=tuple(map(storable, sorted(nested))), unsaved=tuple(map(storable, unsaved))
        )
    finally:
        _drop_indexes(git_dir)


async def overlooked(git: GitCommands) -> dict[str, list[str]]:
    """Return the files on disk whose changes git was told to overlook, under the option that ends it."""
    entries = (await git.ask("ls-files", "-v", "-z")).parts
    return await asyncio.to_thread(_flagged, git.folder, entries)


def _flagged(folder: Path, entries: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in entries:
        tag, path = entry[0], entry[2:]
        if tag.islower():
            found.setdefault("--no-assume-unchanged", []).append(path)
        if tag in "Ss" and os.path.lexists(folder / path):  # one that is not there is left out by a sparse checkout
            found.setdefault("--no-skip-worktree", []).append(path)
    return found


async def _still_different(git: GitCommands, left_out: frozenset[str]) -> tuple[str, ...]:
    """Return the files that differ from an index after everything was added to it: somebody still writes them."""
    changed = (await git.ask("diff-files", "-z", "--name-only", "--ignore-submodules=all")).parts
    new = (await git.ask("ls-files", "-z", "--others", "--exclude-standard")).parts
    return tuple(sorted({*changed, *new} - left_out))[:_MAX_UNSAVED]


async def _repositories_in(git: GitCommands) -> set[str]:
    """Return the entries of an index that are repositories with files: a commit holds their names only."""
    entries = (await git.ask("ls-files", "--stage", "-z")).parts
    links = (entry.partition("\t")[2] for entry in entries if entry.startswith("160000 "))
    return {path for path in links if (git.folder / path / ".git").exists()}


def _copy_index(git_dir: Path, index: Path) -> None:
    """Begin with the index of the tree, which knows the files that did not change."""
    try:
        # With its time: git looks into files that were changed in the second in which their index was written.
        shutil.copy2(git_dir / "index", index)
    except FileNotFoundError:
        return
    except OSError as error:
        raise MusterError(f"{index} cannot be written: {error.strerror}") from error


def _drop_indexes(git_dir: Path) -> None:
    """Delete indexes of ours and their locks; only who holds the lock of a tree has one."""
    for left in git_dir.glob(f"{_INDEX}*"):
        left.unlink(missing_ok=True)


def adopt_index(layout: Layout, record: TreeRecord, index: Path) -> None:
    """Replace the index of a tree by ours, which has the same files as HEAD now; a git at work there goes first."""
    git_dir = layout.git_dir(record)
    if not (git_dir / "index.lock").exists():
        index.replace(git_dir / "index")
