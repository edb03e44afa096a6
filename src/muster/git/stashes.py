"""Stashes that an agent made in a worktree, moved to branches of the tree.

All worktrees of a repository share one list of stashes, which is the user's. An entry names the branch on which it was
made, so those that were made on a branch of the tree are known; any other stays.
"""

import re
from dataclasses import dataclass, replace

from muster.git.branches import commit_of, move_branch, our_branches, unused
from muster.git.commands import GitCommands
from muster.git.layout import Isolation, Layout, TreeRecord

_STASH = "refs/stash"
_DROPPED = re.compile(r"\(([0-9a-f]{40,64})\)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    place: int
    commit: str
    message: str  # "WIP on BRANCH: …" or "On BRANCH: …"


async def move_stashes(layout: Layout, record: TreeRecord) -> TreeRecord:
    """Let branches of a worktree hold what was stashed on them, and take it off the user's list."""
    if record.kind is not Isolation.WORKTREE or not await _own(layout.git, record):
        return record
    async with layout.repository_lock() as held:
        for entry in await _own(held.git, record):
            record = await _kept(held, record, entry)
            await _drop(held.git, entry)
    return record


async def _own(git: GitCommands, record: TreeRecord) -> list[_Entry]:
    starts = tuple(f"{verb} {branch}:" for branch in (record.branch, *record.others) for verb in ("WIP on", "On"))
    return [entry for entry in await _listed(git) if entry.message.startswith(starts)]


async def _listed(git: GitCommands) -> list[_Entry]:
    """Return the entries of the list, the newest first."""
    if await commit_of(git, _STASH) is None:
        return []
    parts = (await git.ask("log", "--walk-reflogs", "-z", "--format=%H %gs", _STASH, "--")).shown
    return [
        _Entry(place=place, commit=part.partition(" ")[0], message=part.partition(" ")[2])
        for place, part in enumerate(parts)
    ]


async def _kept(layout: Layout, record: TreeRecord, entry: _Entry) -> TreeRecord:
    """Let a branch hold an entry; one that a killed process made for it is used."""
    branches = await our_branches(layout.git)
    if any(branches.get(other) == entry.commit for other in record.others):
        return record
    other = unused(record.name, branches)
    record = layout.remember(replace(record, others=(*record.others, other)))
    await move_branch(layout.git, other, entry.commit, None)
    return record


async def _drop(git: GitCommands, entry: _Entry) -> None:
    """Take an entry off the list; if the user changed the list meanwhile, what was dropped instead is put back."""
    now = next((one for one in await _listed(git) if one.commit == entry.commit), None)
    if now is None:
        return
    answer = await git.run("stash", "drop", f"stash@{{{now.place}}}")
    dropped = _DROPPED.search(answer.text)
    if answer.code == 0 and dropped is not None and dropped[1] != entry.commit:
        await git.ask("stash", "store", "--message", "put back", dropped[1])
