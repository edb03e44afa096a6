"""What an agent left in its tree, kept as commits: nothing of it is lost, whatever state the tree is in.

Work goes to the branch of the tree. It goes to another one, `muster/NAME-2` and so on, when the tree is in the middle
of a merge or rebase (the tree then stays as it is), when its HEAD has left the history of that branch, or when it was
stashed.
"""

import asyncio
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from muster.domain.errors import NotFound
from muster.domain.isolation import Isolation
from muster.git.branches import checked_out, commit_of, is_ancestor, move_branch, our_branches, start_commit, unused
from muster.git.commands import NO_SMUDGE, GitCommands
from muster.git.layout import HEADS, Layout, TreeRecord, incoming_ref
from muster.git.locks import remove_stale
from muster.git.snapshots import TreeSnapshot, adopt_index, operation_in, snapshot, tree_of, tree_of_files
from muster.git.stashes import move_stashes

MAX_FILES = 5_000  # that are listed one by one
_MAX_MESSAGE = 20_000  # characters
_MAX_NAMED = 10  # paths in a summary


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file that differs between the base and the head."""

    path: str
    status: str  # A, M, D or T, as git has it
    added: int | None  # lines; None of a binary file
    deleted: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedWork:
    """What the branch of a tree holds since its base."""

    branch: str
    base: str
    head: str
    commits: int
    files: tuple[FileChange, ...]  # the first MAX_FILES
    changed: int  # how many files there are
    summary: str
    uncommitted: bool  # we committed what was not
    others: tuple[str, ...] = ()  # more branches that hold work of the tree
    nested: tuple[str, ...] = ()  # git repositories inside of the tree, which no commit holds
    unsaved: tuple[str, ...] = ()  # files that were written while they were saved
    operation: str | None = None  # what the tree is in the middle of
    handover: str | None = None  # the commit with which a tree of somebody else can begin


async def save_tree(layout: Layout, record: TreeRecord, message: str) -> SavedWork:
    """Commit what is uncommitted in a tree, and make sure that a branch holds its HEAD; the caller holds its lock."""
    git = layout.tree_git(record)
    await asyncio.to_thread(remove_stale, layout.git_locks(record), git.folder)
    head = await commit_of(git, "HEAD")
    operation = operation_in(layout.git_dir(record))
    async with snapshot(layout, record) as seen:
        uncommitted = seen.id != await tree_of(git, head)
        work = await commit_tree(git, seen.id, head, message) if uncommitted else head
        if work is not None:
            record, branch = await _keep(layout, record, work, operation)
            if uncommitted and operation is None and branch is not None:
                await git.ask("symbolic-ref", "HEAD", HEADS + branch)
        if operation is None:
            await asyncio.to_thread(adopt_index, layout, record, seen.index)
    record = await move_stashes(layout, record)
    if record.kind is Isolation.CLONE:
        record = await _fetch(layout, record)
    return await _describe(layout, record, uncommitted, seen, operation)


async def keep_head(layout: Layout, record: TreeRecord) -> TreeRecord:
    """Let a branch hold what was committed in a worktree whose folder is gone; the caller holds its lock."""
    git_dir = layout.git_dir(record)
    if record.kind is Isolation.CLONE or not await asyncio.to_thread(git_dir.is_dir):
        return record
    head = await commit_of(layout.git.at(layout.root, git_dir), "HEAD")
    return record if head is None else (await _keep(layout, record, head, None))[0]


async def commit_files(layout: Layout, new: Sequence[str], message: str) -> str:
    """Return a commit with the user's files as they are now, on top of HEAD; HEAD itself when nothing differs."""
    head = await start_commit(layout, None)
    tree = await tree_of_files(layout, new)
    return head if tree == await tree_of(layout.git, head) else await commit_tree(layout.git, tree, head, message)


async def restore_files(layout: Layout, record: TreeRecord, work: SavedWork, paths: Sequence[str]) -> None:
    """Let files of a tree be as they were at its base; those that were not there are removed. The caller saves."""
    git = layout.tree_git(record)
    for path in paths:
        await asyncio.to_thread(_remove, git.folder / path)
    listed = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", work.base, "--", *paths)
    if there := (await git.ask(*listed)).parts:
        told = b"".join(b":(top,literal)" + os.fsencode(path) + b"\0" for path in there)
        options = ("--pathspec-from-file=-", "--pathspec-file-nul")
        await git.configured(*NO_SMUDGE).ask("checkout", "--quiet", *options, work.base, told=told)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


async def diff_of_paths(layout: Layout, work: SavedWork, paths: Sequence[str], most_bytes: int) -> str:
    """Return the patch of some files of what was saved."""
    return await _patch(layout.git, work.base, work.head, most_bytes, *paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchRange:
    """What a branch holds since a base, after its tree is gone."""

    branch: str
    base: str
    head: str | None = None  # the commit that it was last known to have, for when the branch is gone too


async def head_of(layout: Layout, work: BranchRange) -> str | None:
    """Return the newest commit of a branch; of one that was deleted the last known one, if git still has it."""
    found = await commit_of(layout.git, HEADS + work.branch)
    return found or (None if work.head is None else await commit_of(layout.git, work.head))


async def diff_of_range(layout: Layout, work: BranchRange, most_bytes: int) -> str:
    """Return the patch of what a branch holds since its base."""
    head = await head_of(layout, work)
    if head is None:
        raise NotFound(
            f"the worktree and the branch {work.branch} are gone, so there is no diff",
            suggestions=("git reflog may still have its commits",),
        )
    return await _patch(layout.git, work.base, head, most_bytes)


async def diff_of_tree(layout: Layout, record: TreeRecord, most_bytes: int) -> str:
    """Return the patch from the base of a tree to its files as they are; the caller holds its lock."""
    async with snapshot(layout, record) as seen:
        return await _patch(layout.tree_git(record), record.base, seen.id, most_bytes)


async def commit_tree(git: GitCommands, tree: str, parent: str | None, message: str) -> str:
    """Return a commit of a tree, which no branch has yet."""
    parents = () if parent is None else ("-p", parent)
    text = message.replace("\0", "")[:_MAX_MESSAGE].strip() or "Work in progress"
    told = f"{text}\n".encode("utf-8", "replace")
    return (await git.ask("commit-tree", "--no-gpg-sign", *parents, "-F", "-", tree, told=told)).text


async def _keep(layout: Layout, record: TreeRecord, work: str, operation: str | None) -> tuple[TreeRecord, str | None]:
    """Let a branch hold some work; return which one, None when one did already."""
    async with layout.repository_lock() as held:
        git = held.tree_git(record) if record.kind is Isolation.CLONE else held.git
        path = held.path(record.name)
        branches = await our_branches(git)
        tip = branches.get(record.branch)
        if tip is not None and await _same_work(git, work, tip):  # a killed process got this far
            return record, record.branch
        if tip is not None and await is_ancestor(git, work, tip):
            return record, None
        elsewhere = (await checked_out(git)).get(record.branch, path) != path
        if operation is None and not elsewhere and (tip is None or await is_ancestor(git, tip, work)):
            await move_branch(git, record.branch, work, tip)
            return record, record.branch
        for other in record.others:
            before = branches.get(other)
            if before is not None and await _same_work(git, work, before):
                return record, other
            if before is not None and operation is None and await is_ancestor(git, before, work):
                await move_branch(git, other, work, before)
                return record, other
        other = unused(record.name, branches)
        record = layout.remember(replace(record, others=(*record.others, other)))
        await move_branch(git, other, work, None)
        return record, other


async def _same_work(git: GitCommands, one: str, other: str) -> bool:
    """Return whether two commits have the same files and parents, and differ in time or message only."""
    first = await git.ask("rev-parse", f"{one}^{{tree}}", f"{one}^@")
    return first.text == (await git.ask("rev-parse", f"{other}^{{tree}}", f"{other}^@")).text


async def _fetch(layout: Layout, record: TreeRecord) -> TreeRecord:
    """Fetch the branches of a clone into the user's repository; one that somebody else moved or uses stays."""
    ours = await our_branches(layout.tree_git(record))
    source = str(layout.path(record.name))
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")
    async with layout.repository_lock() as held:
        for branch in (record.branch, *record.others):
            if (commit := ours.get(branch)) is None:
                continue
            incoming = incoming_ref(record.name)
            await held.git.ask("fetch", *options, "--", source, f"+{HEADS}{branch}:{incoming}")
            here, before = await _place_for(held, record, branch, commit)
            record = held.remember(replace(record, fetched={**record.fetched, branch: (here, commit)}))
            await move_branch(held.git, here, commit, before)
            await held.git.ask("update-ref", "-d", incoming)
    return record


async def _place_for(layout: Layout, record: TreeRecord, branch: str, commit: str) -> tuple[str, str | None]:
    """Return the branch of the user's repository for one of a clone, with the commit it has now."""
    branches, busy = await our_branches(layout.git), await checked_out(layout.git)
    here, last = record.fetched.get(branch, (branch, None))
    before = branches.get(here)
    if here not in busy and (before is None or before == last or await is_ancestor(layout.git, before, commit)):
        return here, before
    if before == commit:
        return here, before
    return unused(record.name, branches), None


_COMPARE = ("diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv")


async def _describe(
    layout: Layout, record: TreeRecord, uncommitted: bool, seen: TreeSnapshot, operation: str | None
) -> SavedWork:
    def name(branch: str) -> str:
        return record.fetched[branch][0] if branch in record.fetched else branch

    git, branch = layout.git, name(record.branch)
    others = tuple(name(other) for other in record.others)
    head = await commit_of(git, HEADS + branch) or record.base
    commits = int((await git.ask("rev-list", "--count", head, f"^{record.base}")).text)
    files = _changes((await git.ask(*_COMPARE, "--raw", "--numstat", record.base, head)).shown)
    return SavedWork(
        branch=branch,
        base=record.base,
        head=head,
        commits=commits,
        files=tuple(files[:MAX_FILES]),
        changed=len(files),
        summary=_summary(branch, commits, files, tuple(_asides(others, seen, operation))),
        uncommitted=uncommitted,
        others=others,
        nested=seen.nested,
        unsaved=seen.unsaved,
        operation=operation,
        handover=head if commits else await _only_work(git, record.base, others, operation),
    )


async def _only_work(git: GitCommands, base: str, others: Sequence[str], operation: str | None) -> str | None:
    """Return the commit with all work of a tree whose branch has none; None when that is not beyond doubt."""
    tip = await commit_of(git, HEADS + others[0]) if len(others) == 1 and operation is None else None
    return tip if tip is not None and await is_ancestor(git, base, tip) else None


def _changes(parts: Sequence[str]) -> list[FileChange]:
    """Read raw records, `:… M` and a path, and those of line counts, which follow them."""
    status: dict[str, str] = {}
    lines: dict[str, tuple[int | None, int | None]] = {}
    rest = iter(parts)
    for part in rest:
        if part.startswith(":"):
            status[next(rest)] = part.rpartition(" ")[2]
        else:
            added, deleted, path = part.split("\t", 2)
            lines[path] = (_number(added), _number(deleted))
    none = (None, None)
    return [
        FileChange(path=path, status=letter, added=lines.get(path, none)[0], deleted=lines.get(path, none)[1])
        for path, letter in sorted(status.items())
    ]


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


def _summary(branch: str, commits: int, files: Sequence[FileChange], asides: Sequence[str]) -> str:
    """Return one line about what a branch holds."""
    added, deleted = sum(file.added or 0 for file in files), sum(file.deleted or 0 for file in files)
    counts = f"{_count(commits, 'commit')}, {_count(len(files), 'file')} changed, +{added} -{deleted} lines"
    return "; ".join((f"{branch}: {counts if commits or files else 'no changes'}", *asides))


def _asides(others: Sequence[str], seen: TreeSnapshot, operation: str | None) -> Iterator[str]:
    """Yield what there is beside the branch."""
    if operation:
        yield f"in the middle of a {operation}"
    if others:
        yield f"more work on {', '.join(others)}"
    if seen.nested:
        yield f"not committed, nested git repositories: {', '.join(seen.nested[:_MAX_NAMED])}"
    if seen.unsaved:
        yield f"changed while it was saved: {', '.join(seen.unsaved[:_MAX_NAMED])}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


async def _patch(git: GitCommands, base: str, head: str, most_bytes: int, *paths: str) -> str:
    """Return a patch, of some paths or of all; one that is too long ends with a line that says so."""
    literal = ("--", *(f":(top,literal){path}" for path in paths)) if paths else ()
    arguments = ("diff-tree", "-p", "-r", "-M", "--no-color", "--no-ext-diff", "--no-textconv", base, head, *literal)
    answer = await git.run(*arguments, most=most_bytes)
    if answer.code != 0:
        raise git.failed(arguments, answer)
    end = f"\n[… cut after {most_bytes} bytes …]\n" if answer.cut else ""
    return answer.output.decode("utf-8", "replace") + end
