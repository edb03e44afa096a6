"""Where the worktrees of a repository are: its root, its shared git folder, the base folder, their locks and records.

A record is written before anything is made and again when it is whole, so that what a killed process left is known:
a tree whose record is not `ready` was never handed to anybody, and may be deleted.
"""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

from muster.domain.errors import BadArgument, MusterError
from muster.domain.isolation import Isolation
from muster.git.commands import GitCommands
from muster.git.locks import locked

DEFAULT_BASE_DIR = Path(".muster/worktrees")
PREFIX = "muster/"  # of our branches
HEADS = "refs/heads/"
LOCK_SECONDS = 120.0  # to wait for other processes: what is done under the lock of a repository is short
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?")
_MAX_RECORD = 4 * 1_048_576  # bytes


class TreeState(StrEnum):
    """How far a tree was made."""

    MAKING = "making"  # nobody has worked in it
    READY = "ready"
    TEMPORARY = "temporary"  # for a merge; nobody's work is in it
    REMOVING = "removing"  # all that was in it is elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """A working tree of its own, for one slot, task or chain."""

    name: str
    path: Path
    branch: str
    base: str  # the commit it began at
    repository: Path  # the root of the user's repository
    kind: Isolation
    notes: tuple[str, ...] = ()  # what is not there: submodules, contents of Git LFS
    made: str = ""  # another one whenever its files were made anew


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRecord:
    """What is remembered of a tree, in the shared git folder."""

    name: str
    kind: Isolation
    state: TreeState
    branch: str
    base: str
    new_branch: bool = False  # it was made with the tree
    admin: str | None = None  # the name of its folder below `worktrees` of the shared git folder
    others: tuple[str, ...] = ()  # more branches that hold work of it
    fetched: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # of a clone's branches: the name here, commit
    copied: Mapping[str, str] = field(default_factory=dict)  # digests of files that were copied into it
    notes: tuple[str, ...] = ()
    made: str = ""  # another one whenever its files were made anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The places of one repository."""

    root: Path  # of the user's working tree
    own: Path  # the git folder of that working tree
    common: Path  # the git folder that all its worktrees share
    base_dir: Path
    git: GitCommands
    lock_seconds: float = LOCK_SECONDS

    def path(self, name: str) -> Path:
        """Return where a tree is."""
        return self.base_dir / name

    def is_there(self, name: str) -> bool:
        """Return whether the folder of a tree is in its place; a link to another one does not count."""
        return self.path(name).is_dir() and not self.path(name).is_symlink()

    def git_dir(self, record: TreeRecord) -> Path:
        """Return the git folder of a tree."""
        if record.kind is Isolation.CLONE:
            return self.path(record.name) / ".git"
        return self.common / "worktrees" / (record.admin or record.name)

    def tree_git(self, record: TreeRecord) -> GitCommands:
        """Return git for a tree, whatever became of the file `.git` in it."""
        return self.git.at(self.path(record.name), self.git_dir(record))

    def git_locks(self, record: TreeRecord) -> tuple[Path, ...]:
        """Return the lock files that a killed git may have left for a tree."""
        git_dir = self.git_dir(record)
        branches = (record.branch, *record.others)
        files = [git_dir / "index.lock", git_dir / "HEAD.lock"]
        files += [self.ref_lock(HEADS + branch) for branch in branches]
        if record.kind is Isolation.CLONE:
            files += [git_dir / f"{HEADS}{branch}.lock" for branch in branches]
            files += [self.ref_lock(HEADS + here) for here, _ in record.fetched.values()]
            files.append(self.ref_lock(incoming_ref(record.name)))
        return tuple(files)

    def ref_lock(self, ref: str) -> Path:
        """Return the lock file of a branch or another ref of the repository."""
        return self.common / f"{ref}.lock"

    def tree(self, record: TreeRecord) -> Worktree:
        """Return the tree of a record."""
        return Worktree(
            name=record.name,
            path=self.path(record.name),
            branch=record.branch,
            base=record.base,
            repository=self.root,
            kind=record.kind,
            notes=record.notes,
            made=record.made,
        )

    @asynccontextmanager
    async def repository_lock(self) -> AsyncIterator["Layout"]:
        """Hold the lock under which branches and worktrees are added; held for short whiles only."""
        async with locked(self.common / "muster" / "lock", self.lock_seconds, str(self.root)) as handle:
            yield replace(self, git=self.git.holding(handle))

    @asynccontextmanager
    async def tree_lock(self, name: str, seconds: float | None = None) -> AsyncIterator["Layout"]:
        """Hold the lock of one tree, which is taken before that of the repository."""
        limit = self.lock_seconds if seconds is None else seconds
        async with locked(self._file(name, "lock"), limit, f"the worktree {name}") as handle:
            yield replace(self, git=self.git.holding(handle))

    def record(self, name: str) -> TreeRecord | None:
        """Return what is remembered of a tree; None when there is none of this name."""
        path = self._file(name, "json")
        try:
            with path.open("rb") as file:
                return _decode(json.loads(file.read(_MAX_RECORD)), name)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MusterError(
                f"the record {path} of the worktree {name} cannot be read: {error}",
                suggestions=(f"look at {self.path(name)}, and delete the record when nothing in there is needed",),
            ) from error

    def names(self) -> list[str]:
        """Return the names of all trees with a record."""
        start = self._key("")
        found = (self.common / "muster").glob(f"{start}*.json")
        return sorted(path.name.removeprefix(start).removesuffix(".json") for path in found)

    def remember(self, record: TreeRecord) -> TreeRecord:
        """Write a record as a whole, and return it."""
        path = self._file(record.name, "json")
        unfinished = self._file(record.name, "part")  # only who holds the lock of the tree writes it
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("w", encoding="utf-8") as file:
                json.dump(asdict(record), file)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except OSError as error:
            raise MusterError(f"{path} cannot be written: {error.strerror}") from error
        finally:
            unfinished.unlink(missing_ok=True)
        return record

    def forget(self, name: str) -> None:
        """Remove the record and the lock of a tree; the caller holds that lock."""
        for ending in ("json", "part", "lock"):
            self._file(name, ending).unlink(missing_ok=True)

    def _file(self, name: str, ending: str) -> Path:
        return self.common / "muster" / f"{self._key(name)}.{ending}"

    def _key(self, name: str) -> str:
        """Return the name of a record's file: the same after the repository was moved with its base folder."""
        place = str(self.base_dir)
        if self.base_dir.is_relative_to(self.root):  # each worktree of the user's has a base folder of its own
            place = f"{os.path.relpath(self.own, self.common)}:{self.base_dir.relative_to(self.root)}"
        return f"{sha256(os.fsencode(place)).hexdigest()[:8]}-{name}"


def incoming_ref(name: str) -> str:
    """Return the ref under which the work of a clone arrives."""
    return f"refs/muster/incoming/{name}"


def check_name(name: str) -> None:
    """Raise when a name cannot be that of a folder and a branch."""
    if not _NAME.fullmatch(name) or ".." in name or name.endswith(".lock"):
        raise BadArgument(
            f"{name[:200]!r} cannot be the name of a worktree",
            suggestions=("use up to 100 letters, digits, dots, hyphens and underscores",),
        )


async def find_layout(git: GitCommands, base_dir: Path | None, lock_seconds: float) -> Layout:
    """Return the places of the repository that a folder is in; raise outside of git and in bare repositories."""
    asked = ("rev-parse", "--path-format=absolute", "--is-bare-repository", "--git-common-dir", "--git-dir")
    answer = await git.run(*asked)
    if answer.code != 0:
        if "not a git repository" not in answer.words:
            raise git.failed(asked, answer)
        raise BadArgument(
            f"{git.folder} is not in a git repository, so it has no worktrees",
            suggestions=("create one with git init and commit, or choose isolation none",),
        )
    bare, common, own = os.fsdecode(answer.output).removesuffix("\n").split("\n", 2)
    top = await git.run("rev-parse", "--path-format=absolute", "--show-toplevel")
    if bare == "true" or top.code != 0:
        raise BadArgument(
            f"{git.folder} is a bare repository or inside of a git folder, so no worktree can be made from it",
            suggestions=("go to a working tree of it: git clone it, or git worktree add",),
        )
    top_folder = Path(os.fsdecode(top.output.removesuffix(b"\n")))
    places = (top_folder, Path(own), Path(common), top_folder / (base_dir or DEFAULT_BASE_DIR))
    root, own_folder, shared, base = await asyncio.to_thread(lambda: [place.resolve() for place in places])
    inside = base.is_relative_to(shared) and not root.is_relative_to(shared)
    if inside or root.is_relative_to(base):
        raise BadArgument(
            f"{base} cannot hold worktrees of {root}",
            suggestions=(f"use a separate folder, such as {root / DEFAULT_BASE_DIR}",),
        )
    return Layout(root=root, own=own_folder, common=shared, base_dir=base, git=git.at(root), lock_seconds=lock_seconds)


async def exclude_base_dir(layout: Layout) -> None:
    """Have git ignore the base folder through `info/exclude`, unless it does so already or lies elsewhere."""
    if not layout.base_dir.is_relative_to(layout.root):
        return
    place = layout.base_dir.relative_to(layout.root)
    if (await layout.git.run("check-ignore", "--quiet", "--no-index", "--", f"{place.as_posix()}/x")).code == 0:
        return
    file = layout.common / "info" / "exclude"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        before = file.read_bytes() if file.exists() else b""
        with file.open("ab") as end:
            end.write((b"" if before.endswith(b"\n") or not before else b"\n") + _exclusion(place) + b"\n")
    except OSError as error:
        raise MusterError(f"{file} cannot be written: {error.strerror}") from error


def own_exclusions(layout: Layout) -> frozenset[bytes]:
    """Return the lines of `info/exclude` that are ours."""
    places = {Path(DEFAULT_BASE_DIR)}
    if layout.base_dir.is_relative_to(layout.root):
        places.add(layout.base_dir.relative_to(layout.root))
    return frozenset(_exclusion(place) for place in places)


def _exclusion(place: Path) -> bytes:
    pattern = re.sub(r"([\\*?\[\]!# ])", r"\\\1", place.as_posix())
    return os.fsencode(f"/{pattern}/")


def is_taken(path: Path) -> bool:
    """Return whether something is at a path; an empty folder is not."""
    if path.is_symlink() or not path.is_dir():
        return os.path.lexists(path)
    return any(path.iterdir())


def _decode(found: Any, name: str) -> TreeRecord:
    """Read a record strictly: agents can write it, and folders and branches are named by it."""
    admin = found["admin"]
    if found["name"] != name or (admin is not None and Path(admin).name != admin):
        raise ValueError("it names another tree")
    branches = [found["branch"], *found["others"], *(here for here, _ in found["fetched"].values())]
    for path in (*branches, *found["copied"]):
        if ".." in Path(path).parts or Path(path).is_absolute():
            raise ValueError(f"{path!r} leads out of its folder")
    if any(branch and not branch.startswith(PREFIX) for branch in branches):
        raise ValueError("it names a branch that is not ours")
    return TreeRecord(
        name=name,
        kind=Isolation(found["kind"]),
        state=TreeState(found["state"]),
        branch=str(found["branch"]),
        base=str(found["base"]),
        new_branch=bool(found["new_branch"]),
        admin=admin,
        others=tuple(found["others"]),
        fetched={str(name): (str(here), str(commit)) for name, (here, commit) in found["fetched"].items()},
        copied=dict(found["copied"]),
        notes=tuple(found["notes"]),
        made=str(found.get("made", "")),
    )
