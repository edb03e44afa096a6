"""Stashes that an agent made in its tree, moved to branches of the tree as ordinary commits.

All worktrees of a repository share one list of stashes, which is the user's. An entry names the branch on which it was
made, so those that were made on a branch of the tree are known; any other stays. A clone has a list of its own, of
which all entries are the agent's.

git stores an entry as a merge of what was staged and of new files: its patch is empty, and a merge of it leaves the new
files out. So a branch gets one commit with all its files, after one with what was staged where that differs.
"""

import re
from dataclasses import dataclass, replace

from muster.domain.isolation import Isolation
from muster.git.branches import commit_of, move_branch, our_branches, unused
from muster.git.commands import GitCommands
from muster.git.layout import Layout, TreeRecord
from muster.git.snapshots import joined_tree, tree_of

_STASH = "refs/stash"
_DROPPED = re.compile(r"\(([0-9a-f]{40,64})\)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    place: int
    commit: str
    message: str  # "WIP on BRANCH: …" or "On BRANCH: …"


async def move_stashes(layout: Layout, record: TreeRecord) -> TreeRecord:
    """Let branches of a tree hold what was stashed in it, and take it off the list."""
    if not await _own(_git(layout, record), record):
        return record
    async with layout.repository_lock() as held:
        git = _git(held, record)
        for entry in await _own(git, record):
            record = await _kept(held, record, git, entry)
            await _drop(git, entry)
    return record


def _git(layout: Layout, record: TreeRecord) -> GitCommands:
    """Return git for the repository whose list of stashes a tree has."""
    return layout.tree_git(record) if record.kind is Isolation.CLONE else layout.git


async def _own(git: GitCommands, record: TreeRecord) -> list[_Entry]:
    listed = await _listed(git)
    if record.kind is Isolation.CLONE:
        return listed
    starts = tuple(f"{verb} {branch}:" for branch in (record.branch, *record.others) for verb in ("WIP on", "On"))
    return [entry for entry in listed if entry.message.startswith(starts)]


async def _listed(git: GitCommands) -> list[_Entry]:
    """Return the entries of the list, the newest first."""
    if await commit_of(git, _STASH) is None:
        return []
    parts = (await git.ask("log", "--walk-reflogs", "-z", "--format=%H %gs", _STASH, "--")).shown
    return [
        _Entry(place=place, commit=part.partition(" ")[0], message=part.partition(" ")[2])
        for place, part in enumerate(parts)
    ]


async def _kept(layout: Layout, record: TreeRecord, git: GitCommands, entry: _Entry) -> TreeRecord:
    """Let a branch hold an entry; one that a killed process made for it is used."""
    branches, commit = await our_branches(git), await _ordinary_commit(layout, record, git, entry.commit)
    if any(branches.get(other) == commit for other in record.others):
        return record
    other = unused(record.name, branches)
    record = layout.remember(replace(record, others=(*record.others, other)))
    await move_branch(git, other, commit, None)
    return record


async def _ordinary_commit(layout: Layout, record: TreeRecord, git: GitCommands, stash: str) -> str:
    """Return a commit with the files of a stash, always the same one; any other commit is left as it is."""
    parents = (await git.ask("rev-parse", f"{stash}^@")).text.split()
    if not 2 <= len(parents) <= 3:
        return stash
    base, staged, *new = parents
    files = await joined_tree(layout, record, stash, new[0]) if new else await tree_of(git, stash)
    apart = await tree_of(git, staged) not in (files, await tree_of(git, base))
    raw = (await git.ask("cat-file", "commit", stash)).output
    told = _with_parent(raw, files, staged if apart else base)
    return (await git.ask("hash-object", "-t", "commit", "-w", "--stdin", told=told)).text


def _with_parent(commit: bytes, tree: str, parent: str) -> bytes:
    """Return a commit with another tree and one parent; who made it, when and its message stay."""
    head, _, message = commit.partition(b"\n\n")
    kept = [line for line in head.split(b"\n") if line.startswith((b"author ", b"committer ", b"encoding "))]
    return b"\n".join([f"tree {tree}".encode(), f"parent {parent}".encode(), *kept]) + b"\n\n" + message


async def _drop(git: GitCommands, entry: _Entry) -> None:
    """Take an entry off the list; if the user changed the list meanwhile, what was dropped instead is put back."""
    now = next((one for one in await _listed(git) if one.commit == entry.commit), None)
    if now is None:
        return
    answer = await git.run("stash", "drop", f"stash@{{{now.place}}}")
    dropped = _DROPPED.search(answer.text)
    if answer.code == 0 and dropped is not None and dropped[1] != entry.commit:
        await git.ask("stash", "store", "--message", "put back", dropped[1])
