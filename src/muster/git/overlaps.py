"""Branches that changed the same files, and which of them changed the same lines. Nothing is merged or moved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from muster.git.branches import is_ancestor, our_branches
from muster.git.layout import Layout

MAX_PAIRS = 200  # of branches that are merged on trial
_CONFLICT = 1  # the exit code of a trial merge with conflicts


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchEdits:
    """A branch, and the commit since which it was changed."""

    branch: str
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """A path that more than one branch changed."""

    path: str
    branches: tuple[str, ...]
    conflicts: tuple[tuple[str, str], ...] = ()  # of them, two at a time: they changed the same lines
    examined: bool = True  # whether all of them were looked at for conflicts


async def find_overlaps(layout: Layout, edits: Sequence[BranchEdits]) -> tuple[Overlap, ...]:
    """Return the paths that more than one of some branches changed; merged and deleted branches are left out."""
    tips = await _unmerged(layout, {one.branch for one in edits})
    changed = {one.branch: await _paths(layout, one.base, tips[one.branch]) for one in edits if one.branch in tips}
    shared = {(one, other): both for one, other in combinations(changed, 2) if (both := changed[one] & changed[other])}
    conflicts = {pair: await _conflicts(layout, tips, pair) for pair in list(shared)[:MAX_PAIRS]}
    return tuple(
        _overlap(path, shared, conflicts) for path in sorted({path for both in shared.values() for path in both})
    )


def _overlap(
    path: str, shared: Mapping[tuple[str, str], set[str]], conflicts: Mapping[tuple[str, str], set[str] | None]
) -> Overlap:
    pairs = [pair for pair, both in shared.items() if path in both]
    known = {pair: conflicts.get(pair) for pair in pairs}
    return Overlap(
        path=path,
        branches=tuple(dict.fromkeys(branch for pair in pairs for branch in pair)),
        conflicts=tuple(pair for pair, files in known.items() if files and path in files),
        examined=all(files is not None for files in known.values()),
    )


async def _unmerged(layout: Layout, wanted: set[str]) -> dict[str, str]:
    """Return the commits of branches that are there and hold something that HEAD does not."""
    found = {name: tip for name, tip in (await our_branches(layout.git)).items() if name in wanted}
    return {name: tip for name, tip in found.items() if not await is_ancestor(layout.git, tip, "HEAD")}


async def _paths(layout: Layout, base: str, tip: str) -> set[str]:
    compare = ("diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--name-only")
    return set((await layout.git.ask(*compare, base, tip)).shown)


async def _conflicts(layout: Layout, tips: Mapping[str, str], pair: tuple[str, str]) -> set[str] | None:
    """Return the files in which two branches conflict; None when git cannot tell, as one before 2.38."""
    commits = (tips[branch] for branch in pair)
    answer = await layout.git.run("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", *commits)
    if answer.code not in (0, _CONFLICT) or answer.cut:
        return None
    return set(answer.shown[1:])  # after the tree
