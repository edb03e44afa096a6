"""Branches that changed the same files: found with and without conflicts, and nothing is moved."""

from pathlib import Path

import pytest

from muster.git.overlaps import BranchEdits, Overlap
from muster.git.worktrees import Worktrees
from tests.git.repository import Repository
from tests.git.trees import hooks_ran, user_repository, users_state, worktrees

LINES = [f"line {n}\n" for n in range(20)]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = user_repository(tmp_path / "repository")
    made.git("-c", "core.hooksPath=/dev/null", "stash", "drop")
    return made


async def branch(trees: Worktrees, name: str, **files: str) -> BranchEdits:
    """Make a branch that has some files; `a` is the file a.py."""
    tree = await trees.create(name)
    for path, text in files.items():
        (tree.path / f"{path}.py").write_text(text)
    saved = await trees.save(tree, name)
    return BranchEdits(branch=saved.branch, base=saved.base)


async def test_paths_that_two_branches_changed_overlap(repository: Repository) -> None:
    trees, before = worktrees(repository.folder), users_state(repository)
    one = await branch(trees, "one", a="one", x="one")
    edits = [one, await branch(trees, "two", a="two", y="two"), await branch(trees, "three", z="3", y="3"), one]
    found = {overlap.path: overlap for overlap in await trees.overlaps(edits)}
    both = ("muster/one", "muster/two")
    assert found == {
        "a.py": Overlap(path="a.py", branches=both, conflicts=(both,)),
        "y.py": Overlap(
            path="y.py", branches=("muster/two", "muster/three"), conflicts=(("muster/two", "muster/three"),)
        ),
    }
    assert users_state(repository) == before
    assert not hooks_ran(repository)


async def test_other_lines_of_the_same_file_do_not_conflict(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    repository.write("long.py", "".join(LINES))
    repository.git("add", "long.py")
    repository.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "long", "long.py")
    edits = [
        await branch(trees, "first", long="".join(["changed\n", *LINES[1:]])),
        await branch(trees, "last", long="".join([*LINES[:-1], "changed\n"])),
        await branch(trees, "also", long="".join(["otherwise\n", *LINES[1:]])),
    ]
    (found,) = await trees.overlaps(edits)
    assert found.branches == ("muster/first", "muster/last", "muster/also")
    assert (found.conflicts, found.examined) == ((("muster/first", "muster/also"),), True)


async def test_what_is_merged_or_gone_overlaps_with_nothing(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    edits = [await branch(trees, name, b=name) for name in ("one", "two", "three")]
    assert len(await trees.overlaps(edits)) == 1
    merge = await trees.merge("muster/one", "main")
    repository.git("-c", "core.hooksPath=/dev/null", "reset", "-q", "--hard")
    await trees.apply(merge)
    repository.git("-c", "core.hooksPath=/dev/null", "worktree", "remove", "--force", ".muster/worktrees/two")
    repository.git("-c", "core.hooksPath=/dev/null", "branch", "-q", "-D", "muster/two")
    assert await trees.overlaps(edits) == ()
