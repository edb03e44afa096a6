"""A process is killed in the middle of making, saving or merging; the next one goes on, and nothing is lost."""

import asyncio
import fcntl
import os
import signal
from pathlib import Path

import pytest

from muster.agents.processes.system import working_in
from muster.domain.errors import Conflict, MusterError
from muster.domain.isolation import Isolation
from muster.git.worktrees import Worktrees
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
from tests.variants import first_of

MOMENTS = ("before", "after")
CREATE = {Isolation.WORKTREE: ("worktree", "reset", "ls-files"), Isolation.CLONE: ("clone", "config", "reset")}
SAVE = ("add", "write-tree", "commit-tree", "update-ref", "symbolic-ref", "rev-list")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return user_repository(tmp_path / "repository")


def killed_at(repository: Repository, command: str, moment: str, code: str) -> None:
    """Run some code in a process that is killed at a command of git's, which goes on."""
    kill = "kill -9 $PPID"
    before, after = (kill, ":") if moment == "before" else (":", kill)
    killed(repository, killing_git(repository.folder.parent / "bin", command, before, after), code)


def wait_for_git(repository: Repository) -> None:
    """Wait until no git of a killed process is left: it holds our locks for as long as it lives."""
    for path in (repository.folder / ".git/muster").glob("*lock"):
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)


def killed(repository: Repository, path: str, code: str) -> None:
    """Run some code with a PATH whose git kills its process."""
    child = program(code, str(repository.folder), env=environment(PATH=path))
    _, errors = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL, errors


@pytest.mark.parametrize("moment", first_of(MOMENTS))
@pytest.mark.parametrize(("kind", "command"), [(kind, command) for kind in CREATE for command in CREATE[kind]])
async def test_a_tree_whose_maker_was_killed_is_made_anew(
    repository: Repository, kind: Isolation, command: str, moment: str
) -> None:
    before = users_state(repository)
    killed_at(repository, command, moment, f"await trees.create('one', Isolation('{kind}'))")
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    assert tree.branch == "muster/one"
    assert git_in(tree.path, "status", "--porcelain") == ""
    assert (tree.path / "src/b.py").exists()
    assert users_state(repository) == before
    assert not hooks_ran(repository)
    assert repository.git("worktree", "list").count("\n") == (2 if kind is Isolation.WORKTREE else 1)
    assert "error" not in repository.git("fsck", "--strict")


@pytest.mark.parametrize("kind", CREATE)
async def test_a_half_made_tree_that_nobody_wants_is_collected(repository: Repository, kind: Isolation) -> None:
    killed_at(repository, "reset", "before", f"await trees.create('one', Isolation('{kind}'))")
    wait_for_git(repository)
    trees = worktrees(repository.folder)
    (found,) = await trees.collect(dry_run=False, expired=lambda name: False)
    assert (found.removed, found.reason) == (True, "it was never finished")
    assert list((repository.folder / ".muster/worktrees").iterdir()) == []
    assert "muster/" not in repository.git("branch", "--list")
    assert repository.git("worktree", "list").count("\n") == 1


@pytest.mark.parametrize("moment", first_of(MOMENTS))
@pytest.mark.parametrize("kind", first_of(CREATE))
@pytest.mark.parametrize("command", SAVE)
async def test_work_whose_saver_was_killed_is_saved_by_the_next(
    repository: Repository, kind: Isolation, command: str, moment: str
) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    before = users_state(repository)
    git_in(tree.path, "checkout", "-q", "--detach")
    (tree.path / "a.py").write_text("changed\n")
    (tree.path / "new.py").write_text("new\n")
    code = f"await trees.save(await trees.create('one', Isolation('{kind}')), 'saved')"
    killed_at(repository, command, moment, code)
    saved = await trees.save(tree, "saved")
    assert [file.path for file in saved.files] == ["a.py", "new.py"]
    assert (saved.commits, saved.others) == (1, ())
    assert git_in(tree.path, "status", "--porcelain", "--branch").strip() == "## muster/one"
    assert users_state(repository) == before
    assert "error" not in repository.git("fsck", "--strict")
    (found,) = await trees.collect(dry_run=False, expired=lambda name: True)
    assert found.removed


@pytest.mark.parametrize("moment", MOMENTS)
async def test_work_of_a_clone_whose_fetch_was_killed_arrives_later(repository: Repository, moment: str) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", Isolation.CLONE)
    (tree.path / "new.py").write_text("new\n")
    killed_at(repository, "fetch", moment, "await trees.save(await trees.find('one'), 'saved')")
    saved = await trees.save(tree, "saved")
    assert saved.branch == "muster/one"
    assert repository.git("show", "muster/one:new.py") == "new\n"
    assert "refs/muster" not in repository.git("for-each-ref")


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_merge_that_was_killed_leaves_nothing_for_long(repository: Repository, moment: str) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    (tree.path / "new.py").write_text("new\n")
    branch = (await trees.save(tree, "saved")).branch
    before = users_state(repository)
    killed_at(repository, "merge", moment, f"await trees.merge('{branch}')")
    assert repository.git("worktree", "list").count("\n") == 3
    await trees.merge(branch)
    assert repository.git("worktree", "list").count("\n") == 2
    killed_at(repository, "merge", moment, f"await trees.merge('{branch}')")
    wait_for_git(repository)
    found = await trees.collect(dry_run=False, expired=lambda name: False)
    assert [one.removed for one in found] == [True, False]
    assert users_state(repository) == before


async def test_the_next_process_waits_for_a_git_that_outlived_its_starter(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    (tree.path / "new.py").write_text("new\n")
    gate = repository.folder.parent / "gate"
    os.mkfifo(gate)
    path = killing_git(repository.folder.parent / "bin", "add", f"kill -9 $PPID; cat {gate}", ":")
    killed(repository, path, "await trees.save(await trees.find('one'), 'saved')")
    (found,) = await trees.collect(dry_run=False, expired=lambda name: True)
    assert (found.removed, found.reason) == (False, "another process works on it")
    with pytest.raises(Conflict, match="another process works on the worktree one"):
        await worktrees(repository.folder, lock_seconds=0).save(tree, "saved")
    saving = asyncio.create_task(trees.save(tree, "saved"))
    await asyncio.to_thread(gate.write_text, "go on")
    assert [file.path for file in (await saving).files] == ["new.py"]


@pytest.mark.parametrize("kind", CREATE)
async def test_lock_files_of_a_git_that_was_killed_too_block_nobody(repository: Repository, kind: Isolation) -> None:
    refs = repository.folder / ".git/refs"
    trees = worktrees(repository.folder)
    (refs / "heads/muster").mkdir()
    (refs / "heads/muster/one.lock").touch()
    tree = await trees.create("one", kind)
    git_dir = Path(git_in(tree.path, "rev-parse", "--absolute-git-dir").strip())
    (refs / "muster/incoming").mkdir(parents=True)
    left = {
        git_dir / "index.lock",
        git_dir / "HEAD.lock",
        refs / "heads/muster/one.lock",
        git_dir / "refs/heads/muster/one.lock" if kind is Isolation.CLONE else git_dir / "index.lock",
        refs / "muster/incoming/one.lock" if kind is Isolation.CLONE else git_dir / "index.lock",
    }
    for file in left:
        file.touch()
    (tree.path / "new.py").write_text("new\n")
    assert (await trees.save(tree, "saved")).commits == 1
    assert not any(file.exists() for file in left)


async def test_a_git_that_hangs_is_ended_and_nothing_is_left(repository: Repository) -> None:
    gate = repository.folder.parent / "gate"
    os.mkfifo(gate)
    path = killing_git(repository.folder.parent / "bin", "reset", f"cat {gate}", ":")
    slow = Worktrees(repository.folder, environment=environment(PATH=path), seconds=1)
    with pytest.raises(MusterError, match=r"could not be made: git reset took longer than 1 s"):
        await slow.create("one")
    assert list((repository.folder / ".muster/worktrees").iterdir()) == []
    assert "muster/" not in repository.git("branch", "--list")
    assert not any(working_in(repository.folder))


async def test_a_tree_whose_making_was_canceled_is_made_anew(repository: Repository) -> None:
    gate = repository.folder.parent / "gate"
    os.mkfifo(gate)
    path = killing_git(repository.folder.parent / "bin", "reset", f": > {gate}; cat {gate}", ":")
    making = asyncio.create_task(Worktrees(repository.folder, environment=environment(PATH=path)).create("one"))
    await asyncio.to_thread(gate.read_bytes)  # git is at work
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    assert not any(working_in(repository.folder))
    tree = await worktrees(repository.folder, lock_seconds=1).create("one")
    assert git_in(tree.path, "status", "--porcelain") == ""
