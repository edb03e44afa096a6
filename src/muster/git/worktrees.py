"""Working trees for agents: made under locks, found again by name, repaired after a crash, saved, merged, collected.

The user's own working tree, index and stash are touched by `apply` alone, and only when it is asked for.
"""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from muster.domain.errors import BadArgument, Conflict, MusterError, NotFound
from muster.domain.isolation import Isolation
from muster.git.branch_changes import (
    CommittedTree,
    LineChanges,
    TreeHistory,
    history_of,
    lines_changed,
    part_of,
    whole_of,
)
from muster.git.branches import branch_for, commit_of, is_ancestor, move_branch, our_branches, start_commit
from muster.git.commands import NO_SMUDGE, SECONDS, GitCommands
from muster.git.copies import check_copies, copy_files
from muster.git.layout import (
    HEADS,
    LOCK_SECONDS,
    Layout,
    TreeRecord,
    TreeState,
    Worktree,
    check_name,
    exclude_base_dir,
    find_layout,
    is_taken,
)
from muster.git.locks import remove_stale
from muster.git.merges import Merge, apply_merge, combined_commit, merge_branch
from muster.git.overlaps import BranchEdits, Overlap, find_overlaps
from muster.git.repository_changes import repository_state
from muster.git.retention import Collected, collect_trees, discard
from muster.git.saved_work import (
    BranchRange,
    SavedWork,
    commit_files,
    diff_of_paths,
    diff_of_range,
    diff_of_tree,
    keep_head,
    restore_files,
    save_tree,
)
from muster.git.temporary_trees import make_temporary, remove_temporary
from muster.text.words import count

_MAX_NAMED = 10  # submodules that are named in a note
_MIN_FREE = 100_000  # bytes without which a disk counts as full


class Worktrees:
    """The trees of one repository below one base folder; any number of processes may use it at once."""

    def __init__(
        self,
        folder: Path,
        base_dir: Path | None = None,
        *,
        environment: Mapping[str, str],
        seconds: float = SECONDS,
        lock_seconds: float = LOCK_SECONDS,
    ) -> None:
        self._git = GitCommands(environment=environment, folder=folder.absolute(), seconds=seconds)
        self._base_dir, self._lock_seconds = base_dir, lock_seconds

    async def check(self) -> None:
        """Raise when no tree could be made here: outside of git, in a bare repository, without a commit."""
        await start_commit(await self._layout(), None)

    async def create(
        self, name: str, kind: Isolation = Isolation.WORKTREE, *, ref: str | None = None, copy: Sequence[str] = ()
    ) -> Worktree:
        """Return the tree of a name, which is made unless it is there; one that was left half-made is made anew."""
        check_name(name)
        if kind is Isolation.NONE:
            raise BadArgument("isolation none has no tree", suggestions=("use worktree or clone",))
        layout = await self._layout()
        check_copies(layout, copy)
        async with layout.tree_lock(name) as held:
            record = held.record(name)
            if record is not None and record.state is TreeState.READY:
                if record.kind is not kind:
                    raise Conflict(
                        f"{held.path(name)} is a {record.kind}, and a {kind} was asked for",
                        suggestions=("use another name, or the isolation it was made with",),
                    )
                if await asyncio.to_thread(_reopen, held, record):
                    return held.tree(record)
            return await self._make(held, name, kind, ref, copy, record)

    async def find(self, name: str) -> Worktree:
        """Return a tree that was made before."""
        check_name(name)
        layout = await self._layout()
        record = layout.record(name)
        if record is None or record.state is not TreeState.READY or not layout.is_there(name):
            raise NotFound(f"worktree {name} not found in {layout.base_dir}")
        return layout.tree(record)

    async def save(self, tree: Worktree, message: str) -> SavedWork:
        """Commit what is uncommitted to the tree's branch, and return what the branch holds."""
        layout = await self._layout()
        async with layout.tree_lock(tree.name) as held:
            return await save_tree(held, _known(held, tree.name), message)

    async def commit_files(self, new: Sequence[str], message: str) -> str:
        """Return a commit, which no branch has, with the user's tracked files as they are now and some new ones.

        Trees that begin at it see what the user has not committed. Nothing of the user's is touched.
        """
        return await commit_files(await self._layout(), new, message)

    async def diff(self, work: Worktree | BranchRange, most_bytes: int) -> str:
        """Return the changes since the base as a patch of bounded size; of a tree with what is uncommitted."""
        layout = await self._layout()
        if isinstance(work, BranchRange):
            return await diff_of_range(layout, work, most_bytes)
        async with layout.tree_lock(work.name) as held:
            return await diff_of_tree(held, _known(held, work.name), most_bytes)

    async def history(self, work: SavedWork) -> TreeHistory:
        """Return what the branch of a tree changed since its base."""
        return await history_of(await self._layout(), work)

    async def lines_changed(self, work: SavedWork) -> dict[str, LineChanges]:
        """Return the lines that a branch adds and removes, by file."""
        return await lines_changed(await self._layout(), work)

    async def whole_of(self, work: SavedWork) -> CommittedTree:
        """Return the files that a branch holds."""
        return await whole_of(await self._layout(), work)

    async def part_of(self, work: SavedWork, paths: Collection[str], message: str) -> CommittedTree:
        """Return a commit, which no branch has, with the base and what a branch made of some regular files."""
        return await part_of(await self._layout(), work, paths, message)

    async def check_out(self, name: str, commit: str, copy: Sequence[str] = ()) -> Path:
        """Make a new tree without a branch, in the place of one that was left; whoever asks for it removes it."""
        check_name(name)
        layout = await self._layout()
        check_copies(layout, copy)
        async with layout.tree_lock(name) as held:
            await make_temporary(held, name, commit)
            await asyncio.to_thread(copy_files, held, name, copy)
            return held.path(name)

    async def remove(self, name: str) -> None:
        """Remove a tree without a branch, if there is one of this name."""
        layout = await self._layout()
        async with layout.tree_lock(name) as held:
            await remove_temporary(held, name)

    async def restore(self, tree: Worktree, work: SavedWork, paths: Sequence[str], message: str) -> SavedWork:
        """Commit some files of a tree as they were at its base, and return what its branch holds then."""
        layout = await self._layout()
        async with layout.tree_lock(tree.name) as held:
            await restore_files(held, _known(held, tree.name), work, paths)
            return await save_tree(held, _known(held, tree.name), message)

    async def diff_of(self, work: SavedWork, paths: Sequence[str], most_bytes: int) -> str:
        """Return the changes to some files as a patch of bounded size."""
        return await diff_of_paths(await self._layout(), work, paths, most_bytes)

    async def overlaps(self, edits: Sequence[BranchEdits]) -> tuple[Overlap, ...]:
        """Return the paths that more than one branch changed, and which of them changed the same lines."""
        return await find_overlaps(await self._layout(), edits)

    async def merge(
        self, branch: str, target: str | None = None, check: Callable[[Path], Awaitable[None]] | None = None
    ) -> Merge:
        """Merge a branch into a target in a tree of its own, where the check runs; the target stays where it is.

        Raises `MergeConflict` with the files, and whatever the check raises.
        """
        return await merge_branch(await self._layout(), branch, target, check)

    async def repository_state(self) -> dict[str, str]:
        """Return the refs, settings and hooks of the user's repository, for `changes_between`."""
        return await repository_state(await self._layout())

    async def combine(self, name: str, work: Mapping[str, str]) -> str:
        """Return one commit with the work of several, at which the tree of a name can begin.

        `work` has what each commit is called. Raises `MergeConflict` with the files.
        """
        return await combined_commit(await self._layout(), name, work)

    async def contains(self, commit: str, older: str) -> bool:
        """Return whether a commit has another one in its history."""
        return await is_ancestor((await self._layout()).git, older, commit)

    async def apply(self, merge: Merge) -> None:
        """Fast-forward the target to a merge, if it has not moved and the tree that has it checked out is clean."""
        await apply_merge(await self._layout(), merge)

    async def collect(
        self, *, dry_run: bool, expired: Callable[[str], bool], active: Collection[str] = ()
    ) -> tuple[Collected, ...]:
        """Remove the trees that hold nothing which is not elsewhere; say of each what was done and why.

        `active` names the trees of agents at work, which stay.
        """
        return await collect_trees(await self._layout(), dry_run=dry_run, expired=expired, active=frozenset(active))

    async def _layout(self) -> Layout:
        return await find_layout(self._git, self._base_dir, self._lock_seconds)

    async def _make(
        self,
        layout: Layout,
        name: str,
        kind: Isolation,
        ref: str | None,
        copy: Sequence[str],
        before: TreeRecord | None,
    ) -> Worktree:
        """Make a tree; a failure leaves nothing of it, a crash leaves a record that says so."""
        lost = before is not None and before.state is TreeState.READY  # somebody deleted its folder
        base = before.base if before is not None and lost else await start_commit(layout, ref)
        if before is not None:
            before = await keep_head(layout, before) if lost else before
            await discard(layout, before)
        elif is_taken(layout.path(name)):
            raise Conflict(
                f"{layout.path(name)} is there already, and was not made by Muster",
                suggestions=("move it away, or use another name or base folder",),
            )
        made = uuid4().hex[:12]
        record = TreeRecord(name=name, kind=kind, state=TreeState.MAKING, branch="", base=base, made=made)
        if before is not None and lost:
            record = replace(record, branch=before.branch, others=before.others, fetched=before.fetched)
        try:
            record = await _add(layout, record)
            await _check_out(layout, record)
            copied = await asyncio.to_thread(copy_files, layout, name, copy)
            notes = await _notes(layout, record)
            done = layout.remember(replace(record, state=TreeState.READY, copied=copied, notes=notes))
        except Exception as error:
            failure = await asyncio.to_thread(_failed, layout, name, error)
            await _undo(layout, record, lost)
            raise failure from error
        return layout.tree(done)


async def _add(layout: Layout, record: TreeRecord) -> TreeRecord:
    """Add a tree without files; only what others could disturb is done under the lock of the repository."""
    path = layout.path(record.name)
    async with layout.repository_lock() as held:
        await exclude_base_dir(held)
        branches = await our_branches(held.git)
        here = record.fetched[record.branch][0] if record.branch in record.fetched else record.branch
        if here in branches:
            start = tip = branches[here]
        else:
            branch, found = await branch_for(held, record.name, record.base)
            record = replace(record, branch=branch, new_branch=found is None)
            tip, start = found or "", record.base
        held.remember(record)
        await asyncio.to_thread(remove_stale, held.git_locks(record), path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if record.kind is Isolation.WORKTREE:
            if tip and tip != start:
                await move_branch(held.git, record.branch, start, tip)
            place = (str(path), record.branch) if tip else ("--no-track", "-b", record.branch, str(path), start)
            await held.git.ask("worktree", "add", "--quiet", "--no-checkout", *place)
            return held.remember(replace(record, admin=_admin(path)))
    await _clone(layout, record, start)
    return record


async def _clone(layout: Layout, record: TreeRecord, start: str) -> None:
    """Clone the repository; what the agent pushes does not arrive in it."""
    options = ("--quiet", "--no-hardlinks", "--no-checkout", "--template=", "--origin=origin", "--no-reject-shallow")
    await layout.git.ask("clone", *options, "--", str(layout.common), str(layout.path(record.name)))
    git = layout.tree_git(record)
    await git.ask("config", "remote.origin.pushurl", "pushing-is-off")
    await git.ask("update-ref", HEADS + record.branch, start)
    await git.ask("symbolic-ref", "HEAD", HEADS + record.branch)


async def _check_out(layout: Layout, record: TreeRecord) -> None:
    """Write the files of a tree; no lock of the repository is needed for that."""
    git = layout.tree_git(record).configured(*NO_SMUDGE)
    await git.ask("reset", "--hard", "--quiet", "--no-recurse-submodules")


async def _notes(layout: Layout, record: TreeRecord) -> tuple[str, ...]:
    """Return what a checkout leaves out: submodules are not initialised, files of Git LFS are pointers."""
    git = layout.tree_git(record)
    entries = (await git.ask("ls-files", "--stage", "-z")).shown
    modules = [entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")]
    notes = []
    if modules:
        more = ", …" if len(modules) > _MAX_NAMED else ""
        notes.append(f"submodules are not initialised: {', '.join(modules[:_MAX_NAMED])}{more}")
    if pointers := (await git.ask("ls-files", "-z", ":(attr:filter=lfs)")).parts:
        are = "is a pointer" if len(pointers) == 1 else "are pointers"
        notes.append(f"{count(len(pointers), 'file')} of Git LFS {are}; git lfs pull gets the contents")
    return tuple(notes)


async def _undo(layout: Layout, record: TreeRecord, keep: bool) -> None:
    """Remove what was made of a tree; the first error is the one to be shown."""
    try:
        record = layout.record(record.name) or record  # with the branch that was chosen
        await discard(layout, record)
        if keep:  # its branch holds work: the next try goes on with it
            layout.remember(replace(record, state=TreeState.READY))
        else:
            await _drop_branch(layout, record)
            layout.forget(record.name)
    except (MusterError, OSError):
        return  # the record says that it is half-made: the next one that comes by removes it


async def _drop_branch(layout: Layout, record: TreeRecord) -> None:
    """Delete a branch that was just made for a tree."""
    if record.new_branch and await commit_of(layout.git, HEADS + record.branch) == record.base:
        await layout.git.ask("update-ref", "-d", HEADS + record.branch, record.base)


def _failed(layout: Layout, name: str, error: Exception) -> Exception:
    """Return the error for a tree that could not be made."""
    if isinstance(error, BadArgument | Conflict):
        return error
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    full = any(_is_full(folder) for folder in (layout.base_dir, layout.common))
    return MusterError(
        f"the worktree {layout.path(name)} could not be made: {'the disk is full: ' if full else ''}{reason}",
        suggestions=(
            "free some space, for example with muster pool gc"
            if full
            else "is there space on the disk, and is the folder writable?",
        ),
    )


def _is_full(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _MIN_FREE
    except OSError:
        return False


def _reopen(layout: Layout, record: TreeRecord) -> bool:
    """Prepare a tree that is there for more work; False when its folder is gone."""
    path, git_dir = layout.path(record.name), layout.git_dir(record)
    if not layout.is_there(record.name):
        return False
    if not git_dir.is_dir():
        raise Conflict(
            f"git no longer knows the worktree {path}: {git_dir} is gone",
            suggestions=("move the folder away if you need its files, else delete it",),
        )
    remove_stale(layout.git_locks(record), path)
    if record.kind is Isolation.WORKTREE and not (path / ".git").is_dir():
        _write(path / ".git", f"gitdir: {git_dir}\n")  # it was deleted, or the repository was moved
        _write(git_dir / "gitdir", f"{path / '.git'}\n")
    return True


def _write(file: Path, text: str) -> None:
    data = os.fsencode(text)
    if not file.is_file() or file.read_bytes() != data:
        file.write_bytes(data)


def _known(layout: Layout, name: str) -> TreeRecord:
    record = layout.record(name)
    if record is None or record.state is not TreeState.READY:
        raise NotFound(f"worktree {name} not found in {layout.base_dir}")
    for place in (layout.path(name), layout.git_dir(record)):
        if place.is_symlink() or not place.is_dir():
            raise Conflict(
                f"the worktree {name} cannot be saved: {place} is gone",
                suggestions=(f"what was committed is on the branch {record.branch}",),
            )
    return record


def _admin(path: Path) -> str:
    """Return the name that git gave a worktree, from the file `.git` in it."""
    return Path(os.fsdecode((path / ".git").read_bytes()).removeprefix("gitdir: ").rstrip("\n")).name
