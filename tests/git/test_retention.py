"""Trees are removed only when nothing in them would be lost, and every decision has its reason."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from muster.domain.errors import Conflict
from muster.domain.isolation import Isolation
from muster.git.layout import Worktree
from muster.git.worktrees import Worktrees
from tests.git.repository import Repository
from tests.git.trees import git_in, hooks_ran, user_repository, users_state, worktrees
from tests.variants import first_of

KINDS = (Isolation.WORKTREE, Isolation.CLONE)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return user_repository(tmp_path / "repository")


async def collected(
    trees: Worktrees, *, dry_run: bool = False, expired: bool = False, active: tuple[str, ...] = ()
) -> dict[str, tuple[bool, str]]:
    found = await trees.collect(dry_run=dry_run, expired=lambda name: expired, active=active)
    return {one.name: (one.removed, one.reason) for one in found}


async def saved_tree(trees: Worktrees, name: str, kind: Isolation) -> Worktree:
    tree = await trees.create(name, kind)
    (tree.path / f"{name}.py").write_text(name)
    await trees.save(tree, name)
    return tree


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_a_tree_goes_when_its_branch_is_merged_and_the_branch_stays(
    repository: Repository, kind: Isolation
) -> None:
    trees = worktrees(repository.folder)
    tree = await saved_tree(trees, "one", kind)
    assert await collected(trees) == {"one": (False, "muster/one is not merged")}
    git_in(repository.folder, "branch", "release", "muster/one")
    assert await collected(trees) == {"one": (False, "muster/one is not merged")}, "anybody may have made that branch"
    git_in(repository.folder, "branch", "--set-upstream-to=main", "release")
    before = users_state(repository)
    assert await collected(trees, dry_run=True) == {"one": (True, "muster/one is merged into release")}
    assert tree.path.is_dir()
    assert await collected(trees) == {"one": (True, "muster/one is merged into release")}
    assert not tree.path.exists()
    assert "muster/one" in repository.git("branch", "--list")
    assert await collected(trees) == {}
    assert users_state(repository) == before
    assert not hooks_ran(repository)
    assert repository.git("worktree", "list").count("\n") == 1


async def test_work_on_a_branch_that_an_agent_made_is_not_merged(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    git_in(tree.path, "checkout", "-q", "-b", "side")
    (tree.path / "side.py").write_text("side")
    await trees.save(tree, "side")
    git_in(tree.path, "branch", "copy")
    assert await collected(trees) == {"one": (False, "muster/one is not merged")}
    git_in(repository.folder, "stash", "--quiet")
    git_in(repository.folder, "merge", "-q", "--ff-only", "muster/one")
    assert await collected(trees) == {"one": (True, "muster/one is merged into main")}


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_an_expired_tree_goes_and_its_work_stays_on_its_branch(repository: Repository, kind: Isolation) -> None:
    trees = worktrees(repository.folder)
    tree = await saved_tree(trees, "one", kind)
    assert await collected(trees, expired=True) == {"one": (True, "it is expired")}
    assert not tree.path.exists()
    assert repository.git("show", "muster/one:one.py") == "one"
    assert (await trees.create("one", kind)).branch == "muster/one-2"


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_a_tree_without_work_goes_with_its_branch(repository: Repository, kind: Isolation) -> None:
    trees = worktrees(repository.folder)
    await trees.create("one", kind)
    assert await collected(trees, active=("one",)) == {"one": (False, "an agent works in it")}
    assert await collected(trees) == {"one": (True, "it holds no work")}
    assert "muster/" not in repository.git("branch", "--list")


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_files_that_are_in_no_commit_keep_a_tree(repository: Repository, kind: Isolation) -> None:
    trees = worktrees(repository.folder)
    for name, path in (("changed", "a.py"), ("new", "new.py"), ("ignored", "x.log")):
        tree = await saved_tree(trees, name, kind)
        (tree.path / path).write_text("unsaved\n")
    assert await collected(trees, expired=True) == {
        "changed": (False, "it has uncommitted files: a.py"),
        "ignored": (False, "it has ignored files: x.log"),
        "new": (False, "it has uncommitted files: new.py"),
    }


@pytest.mark.parametrize("kind", first_of(KINDS))
@pytest.mark.parametrize("name", [".env", "env.log"])
async def test_a_copied_file_keeps_a_tree_only_when_it_was_changed(
    repository: Repository, kind: Isolation, name: str
) -> None:
    repository.write(name, "KEY=1\n")
    trees = worktrees(repository.folder)
    await trees.create("same", kind, copy=(name,))
    changed = await trees.create("changed", kind, copy=(name,))
    (changed.path / name).write_text("KEY=2\n")
    found = await collected(trees)
    assert found["same"] == (True, "it holds no work")
    assert not found["changed"][0]
    assert (changed.path / name).exists()


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_commits_that_no_branch_holds_keep_a_tree(repository: Repository, kind: Isolation) -> None:
    trees = worktrees(repository.folder)
    tree = await saved_tree(trees, "one", kind)
    git_in(tree.path, "checkout", "-q", "--detach")
    git_in(tree.path, "commit", "-q", "--allow-empty", "-m", "on no branch")
    removed, reason = (await collected(trees, expired=True))["one"]
    assert not removed
    assert "HEAD has commits that no branch of" in reason


async def test_branches_and_stashes_of_a_clone_keep_it(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    branch, stash = [await saved_tree(trees, name, Isolation.CLONE) for name in ("branch", "stash")]
    git_in(branch.path, "branch", "aside", git_in(branch.path, "commit-tree", "HEAD^{tree}", "-m", "aside").strip())
    (stash.path / "a.py").write_text("stashed\n")
    git_in(stash.path, "stash")
    found = await collected(trees, expired=True)
    assert "aside has commits that no branch of" in found["branch"][1]
    assert "refs/stash has commits that no branch of" in found["stash"][1]
    assert not found["branch"][0]
    assert not found["stash"][0]


async def test_a_tree_in_the_middle_of_a_merge_stays(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await saved_tree(trees, "one", Isolation.WORKTREE)
    git_in(tree.path, "checkout", "-q", "-b", "side", tree.base)
    git_in(tree.path, "merge", "-q", "--no-ff", "--no-commit", "muster/one")
    assert await collected(trees, expired=True) == {"one": (False, "it is in the middle of a merge")}


async def test_a_process_in_a_tree_keeps_it(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    child = await asyncio.create_subprocess_exec("cat", cwd=tree.path, stdin=asyncio.subprocess.PIPE)
    assert await collected(trees, expired=True) == {"one": (False, "a process works in it")}
    await child.communicate(b"")
    assert (await collected(trees))["one"][0]


async def test_what_others_made_or_deleted_is_told(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await saved_tree(trees, "gone", Isolation.WORKTREE)
    shutil.rmtree(tree.path)
    repository.write(".muster/worktrees/mine/x", "mine")
    assert await collected(trees) == {
        "gone": (True, "its folder is gone"),
        "mine": (False, "it was not made by Muster"),
    }
    assert repository.git("worktree", "list").count("\n") == 1
    assert repository.git("show", "muster/gone:gone.py") == "gone"


@pytest.mark.parametrize("again", [True, False])
async def test_commits_of_a_deleted_tree_that_no_branch_held_get_one(repository: Repository, again: bool) -> None:
    trees = worktrees(repository.folder)
    tree = await saved_tree(trees, "one", Isolation.WORKTREE)
    git_in(tree.path, "checkout", "-q", "--detach", tree.base)
    git_in(tree.path, "commit", "-q", "--allow-empty", "-m", "on no branch")
    shutil.rmtree(tree.path)
    if again:
        assert (await trees.create("one")).branch == "muster/one"
    else:
        assert await collected(trees) == {"one": (True, "its folder is gone")}
    assert repository.git("log", "-1", "--format=%s", "muster/one-2").strip() == "on no branch"


async def test_a_link_in_the_place_of_a_tree_is_not_followed(repository: Repository, tmp_path: Path) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/x").write_text("mine")
    shutil.rmtree(tree.path)
    tree.path.symlink_to(tmp_path / "precious")
    with pytest.raises(Conflict, match="cannot be saved"):
        await trees.save(tree, "saved")
    assert await collected(trees, expired=True) == {"one": (True, "its folder is gone")}
    assert not tree.path.is_symlink()
    assert (tmp_path / "precious/x").read_text() == "mine"


async def test_an_initialised_submodule_keeps_a_tree(tmp_path: Path) -> None:
    inner = Repository(tmp_path / "inner")
    inner.write("inner.py")
    inner.commit()
    outer = Repository(tmp_path / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.folder), "vendor")
    outer.commit()
    trees = worktrees(outer.folder)
    tree = await trees.create("one")
    git_in(tree.path, "-c", "protocol.file.allow=always", "submodule", "update", "--init")
    assert (await trees.save(tree, "saved")).nested == ("vendor",)
    assert await collected(trees, expired=True) == {"one": (False, "it has submodules")}


async def test_a_record_that_cannot_be_read_keeps_a_tree(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    (record,) = (repository.folder / ".git/muster").glob("*-one.json")
    good = json.loads(record.read_text())
    wrong: dict[str, object] = {
        "admin": "../..",
        "name": "../../src",
        "branch": "muster/../../x",
        "others": ["main"],
        "copied": {"/etc/passwd": "0"},
        "state": "unknown",
    }
    for text in ("{", "[]", *(json.dumps(good | {key: value}) for key, value in wrong.items())):
        record.write_text(text)
        removed, reason = (await collected(trees, expired=True))["one"]
        assert not removed
        assert "cannot be read" in reason
    assert tree.path.is_dir()
