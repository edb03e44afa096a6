"""Merges of a branch in a tree of its own, and the fast-forward of the target that makes one count."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from muster.domain.errors import BadArgument, Conflict, MergeConflict, NotFound
from muster.git.branches import checked_out, commit_of, is_ancestor, start_commit
from muster.git.commands import NO_SMUDGE, GitCommands
from muster.git.layout import HEADS, Layout
from muster.git.locks import remove_stale
from muster.git.snapshots import operation_in
from muster.git.temporary_trees import temporary_tree

_MAX_NAMED = 10  # files that are named in a message
_KEPT = "refs/muster/merges/"  # git deletes no merge before it is applied


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A merge that is ready; the target is not moved yet."""

    branch: str
    target: str
    before: str  # the commit that the target must still have
    commit: str  # what it would be moved to

    @property
    def is_empty(self) -> bool:
        """Return whether the target has all of the branch already."""
        return self.commit == self.before


async def merge_branch(
    layout: Layout, branch: str, target: str | None, check: Callable[[Path], Awaitable[None]] | None
) -> Merge:
    """Merge a branch into the newest commit of a target, and run the check on the result."""
    target = target or await _current_branch(layout)
    work, before = await _branch_commit(layout, branch), await _branch_commit(layout, target)
    async with temporary_tree(layout, _tree_name(branch, target), before) as git:
        commit = before
        if not await is_ancestor(git, work, before):
            commit = await _merge(git, branch, target, work)
        if check is not None:
            await check(git.folder)
        if commit != before:
            kept = _kept(branch, target)
            await asyncio.to_thread(remove_stale, [layout.ref_lock(kept)], git.folder)
            await git.ask("update-ref", kept, commit)
    return Merge(branch=branch, target=target, before=before, commit=commit)


async def combined_commit(layout: Layout, name: str, work: Mapping[str, str]) -> str:
    """Return one commit that has all of some: HEAD for those that it has, else a merge, which no branch holds.

    `work` has what each commit is called. Raises MergeConflict with the files, and NotFound for a commit that git does
    not have any more.
    """
    for commit, called in work.items():
        if await commit_of(layout.git, commit) is None:
            raise NotFound(f"{layout.root} does not have the commit {commit[:12]} of {called} any more")
    head = await start_commit(layout, None)
    merged = [commit for commit in work if await is_ancestor(layout.git, commit, head)]
    first, *others = await _newest(layout, [head] * bool(merged) + [one for one in work if one not in merged])
    if not others:
        return first
    async with temporary_tree(layout, _tree_name(name, "start"), first) as git:
        for other in others:
            try:
                first = await _merge(git, other[:12], name, other)
            except MergeConflict as error:
                raise _conflict_of_work(work[other], error) from None
    return first


def _conflict_of_work(called: str, error: MergeConflict) -> MergeConflict:
    return MergeConflict(
        f"the work of {called} conflicts with that of the others on which it depends, in {_named(error.files)}",
        files=error.files,
        suggestions=("merge both into your branch, resolve the conflict, and try the task again",),
    )


async def _newest(layout: Layout, commits: Sequence[str]) -> list[str]:
    """Return those of some commits that none of the others has."""
    kept: list[str] = []
    for commit in dict.fromkeys(commits):
        if not any([await is_ancestor(layout.git, commit, other) for other in kept]):
            kept = [other for other in kept if not await is_ancestor(layout.git, other, commit)] + [commit]
    return kept


async def apply_merge(layout: Layout, merge: Merge) -> None:
    """Move the target to a merge: with its files where it is checked out. Hooks do not run."""
    async with layout.repository_lock() as held:
        now = await commit_of(held.git, HEADS + merge.target)
        if now not in (merge.before, merge.commit):
            raise Conflict(
                f"{merge.target} has moved since {merge.branch} was merged: it was {merge.before[:12]},"
                f" and is {now[:12] if now else 'gone'}",
                suggestions=("merge again",),
            )
        tree = (await checked_out(held.git)).get(merge.target)
        if now == merge.commit:
            pass
        elif tree is None:
            await held.git.ask("update-ref", "-m", "muster: merge", HEADS + merge.target, merge.commit, merge.before)
        else:
            await _fast_forward(replace(held.git.at(tree), skip_smudge=False), merge)
        if await commit_of(held.git, _kept(merge.branch, merge.target)) == merge.commit:
            await held.git.ask("update-ref", "-d", _kept(merge.branch, merge.target), merge.commit)


async def _fast_forward(git: GitCommands, merge: Merge) -> None:
    """Fast-forward a clean working tree; files that git does not know are never overwritten."""
    git_dir = Path((await git.ask("rev-parse", "--absolute-git-dir")).text)
    if operation := operation_in(git_dir):
        raise Conflict(
            f"{git.folder} is in the middle of a {operation}", suggestions=("finish or abort it, then apply again",)
        )
    status = ("status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames")
    if changed := [part[3:] for part in (await git.ask(*status)).shown]:
        raise Conflict(
            f"{git.folder} has {merge.target} checked out and has uncommitted changes: {_named(changed)}",
            suggestions=("commit or stash them, then apply again",),
        )
    quiet = ("merge.verifySignatures=false", "merge.autoStash=false")
    arguments = ("merge", "--ff-only", "--quiet", "--no-overwrite-ignore", merge.commit)
    answer = await git.configured(*quiet).run(*arguments)
    if answer.code != 0:
        raise Conflict(
            f"{merge.target} could not be fast-forwarded in {git.folder}: {answer.words}",
            suggestions=("move the files away that are in the way, then apply again",),
        )


async def _merge(git: GitCommands, branch: str, target: str, work: str) -> str:
    """Merge a commit, and return the merge commit; raise with the files when both changed the same lines."""
    options = ("--no-ff", "--no-edit", "--no-verify", "--no-gpg-sign", "--no-autostash", "--no-rerere-autoupdate")
    message = f"Merge {branch} into {target}"
    arguments = ("merge", "--quiet", *options, "-m", message, work)
    settings = ("merge.verifySignatures=false", "rerere.enabled=false", *NO_SMUDGE)
    answer = await git.configured(*settings).run(*arguments)
    if answer.code == 0:
        return (await git.ask("rev-parse", "--verify", "HEAD")).text
    unmerged = (await git.ask("ls-files", "--unmerged", "-z")).shown
    files = tuple(sorted({entry.partition("\t")[2] for entry in unmerged}))
    if not files:
        raise git.failed(arguments, answer)
    raise MergeConflict(
        f"{branch} conflicts with {target} in {_named(files)}",
        files=files,
        suggestions=(f"merge it by hand: git merge {branch}",),
    )


async def _current_branch(layout: Layout) -> str:
    answer = await layout.git.run("symbolic-ref", "--quiet", "HEAD")
    if answer.code != 0:
        raise BadArgument(f"{layout.root} has no branch checked out", suggestions=("name the branch to merge into",))
    return answer.text.removeprefix(HEADS)


async def _branch_commit(layout: Layout, branch: str) -> str:
    found = await commit_of(layout.git, HEADS + branch)
    if found is None:
        raise BadArgument(
            f"{layout.root} has no branch {branch!r}", suggestions=("git branch --list shows those it has",)
        )
    return found


def _kept(branch: str, target: str) -> str:
    return f"{_KEPT}{sha256(f'{branch} {target}'.encode()).hexdigest()[:16]}"


def _tree_name(branch: str, target: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9]+", "-", branch.removeprefix("muster/")).strip("-")[:60]
    return f"merge-{slug}-{sha256(f'{branch} {target}'.encode()).hexdigest()[:8]}"


def _named(paths: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    return ", ".join(paths[:_MAX_NAMED]) + more
