"""What a branch changed since its base: line by line, and a part of it as files of their own."""

from pathlib import Path

import pytest

from muster.domain.errors import Conflict
from muster.git.branch_changes import LineChanges, read_patch
from muster.git.saved_work import SavedWork
from muster.git.worktrees import Worktrees

from .repository import Repository
from .trees import git_in, worktrees


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    found = Repository(tmp_path / "shop")
    found.write("a.py", "x\n")
    found.commit()
    return found


@pytest.fixture
def trees(repository: Repository) -> Worktrees:
    return worktrees(repository.folder)


async def changed(trees: Worktrees, **files: str | None) -> SavedWork:
    """Commit files to a branch; of None a link that leads to nothing is made."""
    tree = await trees.create("one")
    for name, text in files.items():
        path = tree.path / f"{name}.py"
        path.unlink(missing_ok=True)
        if text is None:
            path.symlink_to("elsewhere")
        else:
            path.write_text(text)
    return await trees.save(tree, "work")


async def test_lines_are_told_whatever_they_look_like(trees: Worktrees) -> None:
    work = await changed(trees, new="--- a/x\n+++ b/y\n@@ -1 +1 @@\nno end")
    assert await trees.lines_changed(work) == {
        "new.py": LineChanges(added=("--- a/x", "+++ b/y", "@@ -1 +1 @@", "no end"))
    }


async def test_files_that_git_is_told_to_take_for_binary_are_looked_into(
    repository: Repository, trees: Worktrees
) -> None:
    (repository.folder / ".git/info").mkdir(exist_ok=True)
    (repository.folder / ".git/info/attributes").write_text("*.py binary\n")
    assert (await trees.lines_changed(await changed(trees, new="x\n")))["new.py"].added == ("x",)


def test_unusual_names_and_deleted_files_are_read() -> None:
    patch = (
        'diff --git "a/\\303\\244.py" "b/\\303\\244.py"\n--- "a/\\303\\244.py"\n+++ "b/\\303\\244.py"\n'
        "@@ -1 +1,2 @@\n-a\n+b\n+c\n"
        "diff --git a/gone.py b/gone.py\n--- a/gone.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n"
    )
    assert read_patch(patch) == {
        "ä.py": LineChanges(removed=("a",), added=("b", "c")),
        "gone.py": LineChanges(removed=("x", "y")),
    }


async def test_a_part_of_a_branch_has_only_the_regular_files_that_are_wanted(
    repository: Repository, trees: Worktrees
) -> None:
    work = await changed(trees, wanted="x = 1\n", other="y = 1\n", link=None)
    part = await trees.part_of(work, {"wanted.py", "link.py", "not there"}, "a part")
    listed = git_in(repository.folder, "diff-tree", "-r", "--name-only", work.base, part.commit).split()
    assert listed == ["wanted.py"]
    assert (await trees.part_of(work, {"wanted.py"}, "again")).tree == part.tree
    assert git_in(repository.folder, "status", "--porcelain") == ""


async def test_a_tree_without_a_branch_is_made_anew_and_removed(repository: Repository, trees: Worktrees) -> None:
    work = await changed(trees, wanted="x = 1\n")
    path = await trees.check_out("check", work.head)
    (path / "left.txt").write_text("by a process that was killed")
    again = await trees.check_out("check", work.head)
    assert sorted(item.name for item in again.iterdir() if item.suffix) == sorted({*_names(repository), "wanted.py"})
    with pytest.raises(Conflict, match="is in the way"):
        await trees.check_out("one", work.head)  # somebody works in it
    await trees.remove("check")
    await trees.remove("one")
    assert (path.exists(), (path.parent / "one").exists()) == (False, True)
    assert "check" not in git_in(repository.folder, "worktree", "list")


def _names(repository: Repository) -> list[str]:
    return [name for name in git_in(repository.folder, "ls-files").split() if Path(name).suffix]
