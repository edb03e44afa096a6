"""What a branch changed since its base: files, lines, and a part of them as a commit of its own."""

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from uuid import uuid4

from muster.domain.errors import MusterError
from muster.git.layout import Layout
from muster.git.saved_work import SavedWork, commit_tree
from muster.git.snapshots import tree_of

_PART_INDEX = "muster-part-"
MAX_PATCH = 32 * 1_048_576  # bytes
_OPTIONS = (
    "-p", "-r", "-U0", "--text", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv",
    "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip
_HUNK = re.compile(r"@@ -\d+(?:,(?P<removed>\d+))? \+\d+(?:,(?P<added>\d+))? @@")


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeHistory:
    """What a tree began with, and what its branch changed in between."""

    known: frozenset[str]  # files of the base
    changed: tuple[str, ...]  # by any commit since, also what a later one took back


async def history_of(layout: Layout, work: SavedWork) -> TreeHistory:
    """Return what happened on a branch."""
    known = (await layout.git.ask("ls-tree", "-r", "-z", "--name-only", "--full-tree", work.base)).parts
    listed = ("log", "-m", "-z", "--format=", "--name-only", "--no-renames", f"{work.base}..{work.head}")
    changed = (await layout.git.ask(*listed)).parts
    return TreeHistory(known=frozenset(known), changed=tuple(sorted({path.lstrip("\n") for path in changed} - {""})))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedTree:
    """A commit, which no branch need have, and the files in it."""

    commit: str
    tree: str  # equal for equal files, whenever it was committed


async def whole_of(layout: Layout, work: SavedWork) -> CommittedTree:
    """Return what a branch holds."""
    return CommittedTree(commit=work.head, tree=await tree_of(layout.git, work.head))


async def part_of(layout: Layout, work: SavedWork, paths: Collection[str], message: str) -> CommittedTree:
    """Commit, to no branch, the base with what a branch made of some regular files, and nothing else of it."""
    listed = (await layout.git.ask("ls-tree", "-r", "-z", "--full-tree", work.head)).parts
    wanted = [entry for entry in listed if entry.startswith("100") and entry.partition("\t")[2] in paths]
    index = layout.own / f"{_PART_INDEX}{uuid4().hex}"
    git = layout.git.with_index(index)
    try:
        await git.ask("read-tree", work.base)
        if wanted:
            told = b"".join(os.fsencode(entry) + b"\0" for entry in wanted)
            await git.ask("update-index", "-z", "--index-info", told=told)
        tree = (await git.ask("write-tree")).text
    finally:
        for left in (index, index.with_name(f"{index.name}.lock")):
            left.unlink(missing_ok=True)
    return CommittedTree(commit=await commit_tree(layout.git, tree, work.base, message), tree=tree)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChanges:
    """What was changed in one file; a line that differs was removed and added."""

    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


async def lines_changed(layout: Layout, work: SavedWork) -> dict[str, LineChanges]:
    """Return what a branch changed since its base, line by line; raise when that is too much to be looked at."""
    arguments = ("diff-tree", *_OPTIONS, work.base, work.head)
    answer = await layout.git.run(*arguments, most=MAX_PATCH)
    if answer.code != 0:
        raise layout.git.failed(arguments, answer)
    if answer.cut:
        raise MusterError(f"the changes on {work.branch} are more than {MAX_PATCH // 1_048_576} MB")
    return read_patch(answer.output.decode("utf-8", "replace"))


def read_patch(patch: str) -> dict[str, LineChanges]:
    """Read a patch without context; hunks are as long as they say, whatever their lines look like."""
    removed: dict[str, list[str]] = {}
    added: dict[str, list[str]] = {}
    path, lines = "", iter(patch.split("\n"))
    for line in lines:
        if line.startswith(("--- ", "+++ ")) and (named := _path(line[4:])):
            path = named
        elif hunk := _HUNK.match(line):
            removed.setdefault(path, []).extend(_taken(lines, int(hunk["removed"] or 1)))
            added.setdefault(path, []).extend(_taken(lines, int(hunk["added"] or 1)))
    return {
        path: LineChanges(removed=tuple(removed[path]), added=tuple(added[path])) for path in sorted({*removed, *added})
    }


def _taken(lines: Iterator[str], number: int) -> Iterator[str]:
    """Yield the next lines of a hunk, without their signs."""
    while number:
        line = next(lines, None)
        if line is None:
            return
        if not line.startswith("\\"):  # the end of the file has no line end
            number -= 1
            yield line[1:]


def _path(name: str) -> str:
    """Return the path in a header; git puts quotation marks around unusual ones."""
    name = name.removesuffix("\t")
    if name.startswith('"'):
        name = (
            name[1:-1].encode("ascii", "replace").decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")
        )
    return "" if name == "/dev/null" else name[2:]
