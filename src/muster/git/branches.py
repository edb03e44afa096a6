"""Branches and commits: which exist, which hold work, which are checked out. Nothing here changes a working tree."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from muster.domain.errors import BadArgument, Conflict
from muster.git.commands import GitCommands
from muster.git.layout import HEADS, PREFIX, Layout

_ABSENT = ""  # for update-ref: the branch must not exist yet
_MAX_SUFFIX = 1_000


async def commit_of(git: GitCommands, ref: str) -> str | None:
    """Return the commit of a name; None when there is none."""
    if ref.startswith("-") or "\0" in ref:
        return None
    answer = await git.run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    return answer.text if answer.code == 0 else None


async def start_commit(layout: Layout, ref: str | None) -> str:
    """Return the commit at which a new tree begins: HEAD unless told."""
    found = await commit_of(layout.git, ref or "HEAD")
    if found is not None:
        return found
    if ref is None:
        raise BadArgument(
            f"{layout.root} has no commit yet, so no worktree can be made",
            suggestions=("commit something first, for example: git commit --allow-empty -m start",),
        )
    raise BadArgument(
        f"{ref!r} is not a commit of {layout.root}",
        suggestions=("use a commit, a branch or a tag; git log --oneline --all lists them",),
    )


async def is_ancestor(git: GitCommands, older: str, newer: str) -> bool:
    """Return whether a commit is part of the history of another, or is the same."""
    if older == newer:
        return True
    arguments = ("merge-base", "--is-ancestor", older, newer)
    answer = await git.run(*arguments)
    if answer.code not in (0, 1):
        raise git.failed(arguments, answer)
    return answer.code == 0


async def our_branches(git: GitCommands) -> dict[str, str]:
    """Return the branches below `muster/` with their commits."""
    answer = await git.ask("for-each-ref", "--format=%(refname) %(objectname)", HEADS + PREFIX.rstrip("/"))
    pairs = (line.split(" ") for line in answer.text.splitlines())
    return {name.removeprefix(HEADS): commit for name, commit in pairs}


async def checked_out(git: GitCommands) -> dict[str, Path]:
    """Return the branches that are checked out, with the trees that have them."""
    answer = await git.ask("worktree", "list", "--porcelain", "-z")
    found: dict[str, Path] = {}
    path = Path()
    for part in answer.parts:
        word, _, value = part.partition(" ")
        if word == "worktree":
            path = Path(value)
        elif word == "branch":
            found[value.removeprefix(HEADS)] = path
    return found


async def branch_for(layout: Layout, name: str, base: str) -> tuple[str, str | None]:
    """Return the branch for a new tree and the commit it has now; one with work that is not in `base` is not used."""
    branches = await our_branches(layout.git)
    if PREFIX.rstrip("/") in branches:
        raise Conflict(
            f"{layout.root} has a branch named {PREFIX.rstrip('/')}, so no branch can be named {PREFIX}{name}",
            suggestions=(f"rename it: git branch -m {PREFIX.rstrip('/')} OTHER",),
        )
    busy = await checked_out(layout.git)
    for branch in candidates(name):
        commit = branches.get(branch)
        if commit is None and not _is_folder(branch, branches):
            return branch, None
        if commit is not None and branch not in busy and await is_ancestor(layout.git, commit, base):
            return branch, commit
    raise Conflict(f"{layout.root} has too many branches named {PREFIX}{name}-N", suggestions=("delete old ones",))


def candidates(name: str) -> Iterator[str]:
    """Yield the names of branches for a tree: its own first, then with numbers."""
    yield f"{PREFIX}{name}"
    yield from more_candidates(name)


def more_candidates(name: str) -> Iterator[str]:
    """Yield the names of more branches for a tree."""
    yield from (f"{PREFIX}{name}-{number}" for number in range(2, _MAX_SUFFIX))


def unused(name: str, branches: Mapping[str, str]) -> str:
    """Return the first name of another branch for a tree that nobody has."""
    return next(one for one in more_candidates(name) if one not in branches and not _is_folder(one, branches))


async def move_branch(git: GitCommands, branch: str, commit: str, before: str | None) -> None:
    """Move a branch from the commit that it is known to have; None when it must not exist."""
    await git.ask("update-ref", "-m", "muster", HEADS + branch, commit, before or _ABSENT)


def _is_folder(branch: str, branches: Mapping[str, str]) -> bool:
    return any(other.startswith(f"{branch}/") for other in branches)
