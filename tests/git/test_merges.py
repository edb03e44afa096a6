"""A branch is merged in a tree of its own; the target moves only when that is asked for and safe."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from muster.domain.errors import BadArgument, Conflict, MergeConflict
from muster.git.worktrees import Worktrees
from tests.git.repository import Repository
from tests.git.trees import git_in, hooks_ran, set_hooks, user_repository, users_state, worktrees


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository whose user has changed nothing."""
    made = Repository(tmp_path / "repository")
    made.write(".gitignore", "*.log\n")
    made.write("a.py", "first\nsecond\nthird\n")
    made.write("b.py", "b\n")
    made.commit("the beginning")
    set_hooks(made)
    return made


async def work(trees: Worktrees, name: str, path: str, text: str) -> str:
    tree = await trees.create(name)
    (tree.path / path).write_text(text)
    return (await trees.save(tree, name)).branch


def head(repository: Repository, ref: str = "main") -> str:
    return repository.git("rev-parse", ref).strip()


def failing(seen: list[Path]) -> Callable[[Path], Awaitable[None]]:
    async def check(folder: Path) -> None:
        seen.append(folder)
        (folder / "left.txt").write_text("left behind")
        raise BadArgument("the check failed")

    return check


async def test_a_merge_leaves_the_target_until_it_is_applied(tmp_path: Path) -> None:
    repository = user_repository(tmp_path / "repository")
    trees = worktrees(repository.folder)
    branch = await work(trees, "one", "a.py", "merged\n")
    before = users_state(repository)
    merge = await trees.merge(branch, "main")
    assert users_state(repository) == before
    assert repository.git("show", f"{merge.commit}:a.py") == "merged\n"
    assert repository.git("show", "--no-patch", "--format=%P|%an|%s", merge.commit).strip() == (
        f"{head(repository)} {head(repository, branch)}|muster|Merge muster/one into main"
    )
    assert "merge-" not in repository.git("worktree", "list")
    with pytest.raises(Conflict, match=r"has uncommitted changes: src/b\.py, src/c\.py"):
        await trees.apply(merge)
    assert users_state(repository) == before
    assert not hooks_ran(repository)


async def test_applying_moves_branch_and_files_without_hooks(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    branch = await work(trees, "one", "a.py", "merged\n")
    repository.write("untracked.txt", "mine")
    merge = await trees.merge(branch)
    await trees.apply(merge)
    await trees.apply(merge)
    assert head(repository) == merge.commit
    assert (repository.folder / "a.py").read_text() == "merged\n"
    assert repository.git("status", "--porcelain").strip() == "?? untracked.txt"
    assert not hooks_ran(repository)
    assert "refs/muster" not in repository.git("for-each-ref")
    assert "error" not in repository.git("fsck", "--strict")
    assert (await trees.merge(branch)).commit == merge.commit


async def test_a_target_that_is_not_checked_out_is_moved_alone(repository: Repository) -> None:
    git_in(repository.folder, "branch", "release/1.0")
    trees = worktrees(repository.folder)
    branch = await work(trees, "one", "a.py", "merged\n")
    before = users_state(repository)
    merge = await trees.merge(branch, "release/1.0")
    await trees.apply(merge)
    assert head(repository, "release/1.0") == merge.commit
    assert users_state(repository) == before


async def test_a_conflict_names_the_files_and_leaves_nothing(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    first = await work(trees, "one", "a.py", "one\n")
    second = await work(trees, "two", "a.py", "two\n")
    await trees.apply(await trees.merge(first))
    before = users_state(repository)
    with pytest.raises(MergeConflict, match=r"muster/two conflicts with main in a\.py") as caught:
        await trees.merge(second)
    assert caught.value.files == ("a.py",)
    assert caught.value.record()["files"] == ["a.py"]
    assert users_state(repository) == before
    assert sorted(path.name for path in (repository.folder / ".muster/worktrees").iterdir()) == ["one", "two"]


async def test_a_check_sees_the_merged_files_and_can_refuse(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    branch = await work(trees, "one", "a.py", "merged\n")
    seen: list[Path] = []
    with pytest.raises(BadArgument, match="the check failed"):
        await trees.merge(branch, check=failing(seen))
    assert not seen[0].exists()
    texts = []

    async def check(folder: Path) -> None:
        texts.append((folder / "a.py").read_text())

    await trees.merge(branch, check=check)
    assert texts == ["merged\n"]


async def test_a_target_that_moved_is_not_overrun(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    merge = await trees.merge(await work(trees, "one", "a.py", "merged\n"))
    git_in(repository.folder, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    moved = head(repository)
    with pytest.raises(Conflict, match="main has moved since"):
        await trees.apply(merge)
    assert head(repository) == moved
    git_in(repository.folder, "branch", "-m", "main", "other")
    with pytest.raises(Conflict, match="and is gone"):
        await trees.apply(merge)


@pytest.mark.parametrize("name", ["new.txt", "new.log"])
async def test_a_file_of_the_users_that_is_in_the_way_is_not_overwritten(repository: Repository, name: str) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    (tree.path / name).write_text("theirs")
    git_in(tree.path, "add", "--force", name)
    merge = await trees.merge((await trees.save(tree, "one")).branch)
    repository.write(name, "mine")
    before = users_state(repository)
    with pytest.raises(Conflict, match="could not be fast-forwarded"):
        await trees.apply(merge)
    assert users_state(repository) == before


async def test_a_users_tree_in_the_middle_of_a_merge_is_left_alone(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    merge = await trees.merge(await work(trees, "one", "a.py", "merged\n"))
    git_in(repository.folder, "branch", "side")
    git_in(repository.folder, "merge", "-q", "--no-ff", "--no-commit", "muster/one", check=False)
    with pytest.raises(Conflict, match="is in the middle of a merge"):
        await trees.apply(merge)


async def test_branches_that_are_not_there_are_told(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    for branch in ("nothing", "--all", "HEAD"):
        with pytest.raises(BadArgument, match="has no branch"):
            await trees.merge(branch, "main")
    git_in(repository.folder, "checkout", "-q", "--detach")
    with pytest.raises(BadArgument, match="has no branch checked out"):
        await trees.merge("main")


async def test_a_folder_in_the_place_of_a_merge_is_left_alone(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    branch = await work(trees, "one", "a.py", "merged\n")
    seen: list[Path] = []
    with pytest.raises(BadArgument):
        await trees.merge(branch, check=failing(seen))
    seen[0].mkdir()
    (seen[0] / "precious").write_text("mine")
    with pytest.raises(Conflict, match="is in the way"):
        await trees.merge(branch)
    assert (seen[0] / "precious").read_text() == "mine"
