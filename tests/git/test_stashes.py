"""What an agent stashed in a worktree is on branches of the tree, and the user's list of stashes is as it was."""

from pathlib import Path

import pytest

from muster.domain.isolation import Isolation
from muster.git.layout import Worktree
from tests.git.repository import Repository
from tests.git.trees import (
    environment,
    git_in,
    hooks_ran,
    killing_git,
    program,
    user_repository,
    users_state,
    worktrees,
)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return user_repository(tmp_path / "repository")


def stash(tree: Worktree, text: str, *options: str) -> None:
    (tree.path / "a.py").write_text(text)
    git_in(tree.path, "stash", "push", *options)


async def test_stashes_of_the_tree_go_to_branches_and_those_of_the_user_stay(repository: Repository) -> None:
    before = users_state(repository)
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    stash(tree, "first\n")
    (tree.path / "new.py").write_text("untracked\n")
    stash(tree, "second\n", "--include-untracked", "-m", "a name: with words")
    (tree.path / "b.txt").write_text("work\n")
    saved = await trees.save(tree, "work")
    assert users_state(repository) == before
    assert saved.others == ("muster/one-2", "muster/one-3")
    assert "more work on muster/one-2, muster/one-3" in saved.summary
    texts = {repository.git("show", f"{branch}:a.py") for branch in saved.others}
    assert texts == {"first\n", "second\n"}
    assert "+untracked" in repository.git("log", "-p", f"{saved.base}..muster/one-2")  # the newest comes first
    assert "error" not in repository.git("fsck", "--strict")
    assert not hooks_ran(repository)
    assert (await trees.save(tree, "again")).others == saved.others


async def test_a_list_that_had_none_has_none_afterwards(repository: Repository) -> None:
    git_in(repository.folder, "stash", "drop")
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    stash(tree, "first\n")
    await trees.save(tree, "work")
    assert repository.git("stash", "list") == ""
    assert repository.git("show", "muster/one-2:a.py") == "first\n"


async def test_stashes_of_other_trees_and_later_ones_of_the_user_stay_in_their_order(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    one, other = await trees.create("one"), await trees.create("one-more")
    stash(one, "one\n")
    stash(other, "other\n")
    git_in(repository.folder, "stash", "push", "-m", "mine", "src/c.py")
    stash(one, "one again\n")
    await trees.save(one, "work")
    listed = [line.split(": ", 1)[1] for line in repository.git("stash", "list").splitlines()]
    assert [line.partition(":")[0] for line in listed] == ["On main", "WIP on muster/one-more", "WIP on main"]


async def test_what_was_staged_when_it_was_stashed_is_a_commit_of_its_own(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    (tree.path / "a.py").write_text("staged\n")
    git_in(tree.path, "add", "a.py")
    stash(tree, "later\n")
    await trees.save(tree, "work")
    texts = [repository.git("show", f"muster/one-2{back}:a.py") for back in ("", "~1", "~2")]
    assert texts == ["later\n", "staged\n", repository.git("show", f"{tree.base}:a.py")]
    assert "merge" not in repository.git("cat-file", "-p", "muster/one-2").lower()


async def test_all_stashes_of_a_clone_go_to_branches_and_its_list_is_empty(repository: Repository) -> None:
    before = users_state(repository)
    trees = worktrees(repository.folder)
    tree = await trees.create("one", Isolation.CLONE)
    stash(tree, "first\n")
    git_in(tree.path, "checkout", "-q", "--detach")
    stash(tree, "detached\n")
    saved = await trees.save(tree, "work")
    assert users_state(repository) == before
    assert {repository.git("show", f"{other}:a.py") for other in saved.others} == {"first\n", "detached\n"}
    assert git_in(tree.path, "stash", "list") == ""


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_move_that_was_killed_is_finished_by_the_next_save(repository: Repository, moment: str) -> None:
    before = users_state(repository)
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    stash(tree, "first\n")
    kill = "kill -9 $PPID; sleep 0.2"
    moments = {"before": "", "after": ""} | {moment: kill}
    path = killing_git(repository.folder.parent / "bin", "drop", moments["before"], moments["after"])
    code = "await trees.save(await trees.find('one'), 'work')"
    child = program(code, str(repository.folder), env=environment(PATH=path))
    child.communicate(timeout=60)
    assert child.returncode == -9
    saved = await trees.save(await trees.find("one"), "work")
    assert saved.others == ("muster/one-2",)
    assert users_state(repository) == before
