"""What an agent left in its tree is kept on branches, whatever state the tree is in."""

import asyncio
import os
from pathlib import Path

import pytest

from muster.domain.errors import Conflict
from muster.domain.isolation import Isolation
from muster.git.layout import Worktree
from muster.git.saved_work import BranchRange, FileChange
from tests.git.repository import Repository
from tests.git.trees import environment, git_in, hooks_ran, program, user_repository, users_state, worktrees
from tests.variants import first_of

KINDS = (Isolation.WORKTREE, Isolation.CLONE)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return user_repository(tmp_path / "repository")


def shown(repository: Repository, commit: str, path: str) -> str:
    return repository.git("show", f"{commit}:{path}")


def change(tree: Worktree) -> None:
    """Do what agents do: commit some, stage some, change, delete and write some."""
    (tree.path / "a.py").write_text("committed\n")
    git_in(tree.path, "commit", "-q", "-a", "-m", "by the agent")
    (tree.path / "staged.py").write_text("staged\n")
    git_in(tree.path, "add", "staged.py")
    (tree.path / "src/b.py").unlink()
    (tree.path / "new file.py").write_text("new\n")
    (tree.path / "binary").write_bytes(b"\0\1\2")
    (tree.path / "ignored").mkdir()
    (tree.path / "ignored/x").write_text("ignored\n")


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_what_is_uncommitted_is_committed_to_the_branch(repository: Repository, kind: Isolation) -> None:
    repository.git("config", "commit.gpgSign", "true")
    repository.git("config", "gpg.program", "no-such-program")
    before = users_state(repository)
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    change(tree)
    saved = await trees.save(tree, "Task one\n\nDone.")
    assert (saved.branch, saved.base, saved.commits, saved.uncommitted) == ("muster/one", tree.base, 2, True)
    assert saved.head == repository.git("rev-parse", "muster/one").strip()
    assert saved.files == (
        FileChange(path="a.py", status="M", added=1, deleted=3),
        FileChange(path="binary", status="A", added=None, deleted=None),
        FileChange(path="new file.py", status="A", added=1, deleted=0),
        FileChange(path="src/b.py", status="D", added=0, deleted=1),
        FileChange(path="staged.py", status="A", added=1, deleted=0),
    )
    assert saved.summary == "muster/one: 2 commits, 5 files changed, +3 -4 lines"
    who = repository.git("show", "--no-patch", "--format=%an <%ae> %cn <%ce> %G?|%B", saved.head)
    assert who.strip() == "muster <muster@localhost> muster <muster@localhost> N|Task one\n\nDone."
    assert git_in(tree.path, "status", "--porcelain") == ""
    assert users_state(repository) == before
    assert not hooks_ran(repository)
    assert "error" not in repository.git("fsck", "--strict")


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_saving_again_adds_nothing_and_later_work_follows(repository: Repository, kind: Isolation) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    empty = await trees.save(tree, "nothing")
    assert (empty.commits, empty.files, empty.uncommitted) == (0, (), False)
    assert empty.summary == "muster/one: no changes"
    change(tree)
    first = await trees.save(tree, "first")
    again = await trees.save(tree, "again")
    assert (again.head, again.uncommitted) == (first.head, False)
    (tree.path / "later.py").write_text("later\n")
    later = await trees.save(tree, "later")
    assert later.commits == first.commits + 1
    assert repository.git("rev-parse", f"{later.head}^").strip() == first.head


@pytest.mark.parametrize("kind", first_of(KINDS))
@pytest.mark.parametrize("operation", ["merge", "rebase", "cherry-pick"])
async def test_a_tree_in_the_middle_of_an_operation_stays_and_its_files_are_kept(
    repository: Repository, kind: Isolation, operation: str
) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    git_in(tree.path, "checkout", "-q", "-b", "theirs")
    (tree.path / "a.py").write_text("theirs\n")
    git_in(tree.path, "commit", "-q", "-a", "-m", "theirs")
    git_in(tree.path, "checkout", "-q", "muster/one")
    (tree.path / "a.py").write_text("ours\n")
    git_in(tree.path, "commit", "-q", "-a", "-m", "ours")
    ours = git_in(tree.path, "rev-parse", "HEAD").strip()
    git_in(tree.path, operation, "theirs", check=False)
    (tree.path / "new.py").write_text("new\n")
    status = git_in(tree.path, "status")
    saved = await trees.save(tree, "half done")
    assert (saved.branch, saved.head, saved.others) == ("muster/one", ours, ("muster/one-2",))
    assert (saved.operation, saved.uncommitted) == (operation, True)
    assert f"in the middle of a {operation}; more work on muster/one-2" in saved.summary
    assert "<<<<<<<" in shown(repository, "muster/one-2", "a.py")
    assert shown(repository, "muster/one-2", "new.py") == "new\n"
    assert git_in(tree.path, "status") == status
    assert (await trees.save(tree, "half done")).others == ("muster/one-2",)


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_work_on_a_detached_head_goes_to_the_branch(repository: Repository, kind: Isolation) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    git_in(tree.path, "checkout", "-q", "--detach")
    git_in(tree.path, "commit", "-q", "--allow-empty", "-m", "on no branch")
    (tree.path / "new.py").write_text("new\n")
    saved = await trees.save(tree, "saved")
    assert (saved.commits, saved.others) == (2, ())
    assert git_in(tree.path, "symbolic-ref", "HEAD").strip() == "refs/heads/muster/one"


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_work_on_a_branch_of_the_agents_leaves_that_branch_where_it_is(
    repository: Repository, kind: Isolation
) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    git_in(tree.path, "checkout", "-q", "-b", "feature")
    git_in(tree.path, "commit", "-q", "--allow-empty", "-m", "a feature")
    feature = git_in(tree.path, "rev-parse", "HEAD").strip()
    (tree.path / "new.py").write_text("new\n")
    saved = await trees.save(tree, "saved")
    assert repository.git("rev-parse", f"{saved.head}^").strip() == feature
    assert git_in(tree.path, "rev-parse", "feature").strip() == feature


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_work_that_left_the_history_of_the_branch_gets_a_second_one(
    repository: Repository, kind: Isolation
) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    git_in(tree.path, "commit", "-q", "--allow-empty", "-m", "on the branch")
    git_in(tree.path, "checkout", "-q", "-b", "feature", tree.base)
    (tree.path / "new.py").write_text("new\n")
    saved = await trees.save(tree, "saved")
    assert (saved.branch, saved.commits, saved.others) == ("muster/one", 1, ("muster/one-2",))
    assert shown(repository, "muster/one-2", "new.py") == "new\n"
    (tree.path / "new.py").write_text("newer\n")
    assert (await trees.save(tree, "saved")).others == ("muster/one-2",)
    assert shown(repository, "muster/one-2", "new.py") == "newer\n"


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_branches_that_were_deleted_renamed_or_begun_anew_lose_nothing(
    repository: Repository, kind: Isolation
) -> None:
    trees = worktrees(repository.folder)
    renamed, orphan, looked = [await trees.create(name, kind) for name in ("renamed", "orphan", "looked")]
    git_in(renamed.path, "branch", "-m", "feature-x")
    (renamed.path / "new.py").write_text("new\n")
    assert (await trees.save(renamed, "saved")).commits == 1
    git_in(orphan.path, "checkout", "-q", "--orphan", "begun-anew")
    (orphan.path / "new.py").write_text("new\n")
    saved = await trees.save(orphan, "saved")
    assert (saved.commits, saved.others) == (0, ("muster/orphan-2",))
    git_in(looked.path, "commit", "-q", "--allow-empty", "-m", "done")
    git_in(looked.path, "checkout", "-q", looked.base)
    assert (await trees.save(looked, "saved")).others == ()


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_repositories_inside_of_a_tree_are_named_and_stay(repository: Repository, kind: Isolation) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    for name in ("empty", "full", "added"):
        (tree.path / name).mkdir()
        git_in(tree.path / name, "init", "-q")
        (tree.path / name / "x.py").write_text("x\n")
    for name in ("full", "added"):
        git_in(tree.path / name, "add", "x.py")
        git_in(tree.path / name, "commit", "-q", "-m", "inner")
    git_in(tree.path, "add", "added")
    (tree.path / "beside.py").write_text("beside\n")
    saved = await trees.save(tree, "saved")
    assert saved.nested == ("added", "empty", "full")
    assert [file.path for file in saved.files] == ["added", "beside.py"]
    assert "nested git repositories: added, empty, full" in saved.summary
    assert (tree.path / "empty/x.py").exists()
    (found,) = await trees.collect(dry_run=False, expired=lambda name: True)
    assert not found.removed


async def test_a_tree_whose_link_to_git_was_replaced_is_saved_all_the_same(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    (tree.path / ".git").unlink()
    (tree.path / "new.py").write_text("new\n")
    assert [file.path for file in (await trees.save(tree, "saved")).files] == ["new.py"]
    git_in(tree.path, "init", "-q")
    (tree.path / "more.py").write_text("more\n")
    assert (await trees.save(tree, "saved")).commits == 2
    (found,) = await trees.collect(dry_run=False, expired=lambda name: True)
    assert found.reason == "it contains another git repository"


async def test_a_missing_link_to_git_is_written_again_for_the_next_agent(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    (tree.path / ".git").unlink()
    await trees.create("one")
    assert git_in(tree.path, "symbolic-ref", "HEAD").strip() == "refs/heads/muster/one"


async def test_a_repository_that_was_moved_keeps_its_trees(repository: Repository, tmp_path: Path) -> None:
    tree = await worktrees(repository.folder).create("one")
    (tree.path / "new.py").write_text("new\n")
    moved = repository.folder.rename(tmp_path / "moved")
    trees = worktrees(moved)
    tree = await trees.create("one")
    assert tree.path == moved.resolve() / ".muster/worktrees/one"
    assert git_in(tree.path, "status", "--porcelain").strip() == "?? new.py"
    assert (await trees.save(tree, "saved")).commits == 1
    (found,) = await trees.collect(dry_run=False, expired=lambda name: True)
    assert found.removed


async def test_a_folder_that_became_a_repository_is_saved_as_far_as_it_was_known(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    git_in(tree.path / "src", "init", "-q")
    (tree.path / "src/b.py").write_text("changed\n")
    (tree.path / "src/new.py").write_text("new\n")
    saved = await trees.save(tree, "saved")
    assert [file.path for file in saved.files] == ["src/b.py", "src/new.py"]


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_files_that_git_was_told_to_overlook_are_saved(repository: Repository, kind: Isolation) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    git_in(tree.path, "update-index", "--assume-unchanged", "a.py")
    git_in(tree.path, "update-index", "--skip-worktree", "src/b.py")
    for name in ("a.py", "src/b.py"):
        (tree.path / name).write_text("changed\n")
    (found,) = await trees.collect(dry_run=False, expired=lambda name: True)
    assert found.reason == "it has files whose changes git is set to ignore: a.py, src/b.py"
    saved = await trees.save(tree, "saved")
    assert [file.path for file in saved.files] == ["a.py", "src/b.py"]


async def test_files_that_a_sparse_checkout_leaves_out_are_not_deleted(repository: Repository) -> None:
    git_in(repository.folder, "stash")
    git_in(repository.folder, "sparse-checkout", "set", "--no-cone", "/a.py")
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    (tree.path / "a.py").write_text("changed\n")
    assert not (tree.path / "src").exists()
    assert [file.path for file in (await trees.save(tree, "saved")).files] == ["a.py"]


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_a_full_disk_while_saving_is_told_and_the_files_stay(repository: Repository, kind: Isolation) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    (tree.path / "large").write_bytes(os.urandom(300_000))
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))\n"
        "    await trees.save(await trees.find('one'), 'saved')"
    )
    child = program(code, str(repository.folder), env=environment())
    _, errors = child.communicate(timeout=60)
    assert "git add failed" in errors
    saved = await trees.save(tree, "saved")
    assert ([file.path for file in saved.files], saved.commits) == (["large"], 1)


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_an_index_that_is_broken_or_locked_stands_in_no_ones_way(repository: Repository, kind: Isolation) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    git_dir = Path(git_in(tree.path, "rev-parse", "--absolute-git-dir").strip())
    (git_dir / "index").write_bytes(b"broken")
    (git_dir / "index.lock").write_bytes(b"")
    (tree.path / "new.py").write_text("new\n")
    saved = await trees.save(tree, "saved")
    assert [file.path for file in saved.files] == ["new.py"]
    assert git_in(tree.path, "status", "--porcelain") == ""
    (git_dir / "index.lock").write_bytes(b"")
    await trees.create("one", kind)
    git_in(tree.path, "commit", "-q", "--allow-empty", "-m", "not blocked")


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_copied_files_are_never_committed(repository: Repository, kind: Isolation) -> None:
    repository.write(".env", "KEY=1\n")
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind, copy=(".env",))
    (tree.path / ".env").write_text("KEY=2\n")
    (tree.path / "new.py").write_text("new\n")
    assert [file.path for file in (await trees.save(tree, "saved")).files] == ["new.py"]


async def test_odd_names_are_saved_as_they_are(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    names = sorted(("ä b.py", 'quo"te.py', "new\nline.py", "-option.py", "[x]*.py", ":(top)magic.py", "tab\t.py"))
    for name in names:
        (tree.path / name).write_text("x\n")
    (tree.path / "[x]*").mkdir()
    git_in(tree.path / "[x]*", "init", "-q")
    saved = await trees.save(tree, "saved")
    assert [file.path for file in saved.files] == names
    assert saved.nested == ("[x]*",)


async def test_names_that_are_not_utf8_are_saved_and_can_be_stored(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    (tree.path / os.fsdecode(b"caf\xe9.py")).write_text("x\n")
    (tree.path / os.fsdecode(b"nest\xe9")).mkdir()
    git_in(tree.path / os.fsdecode(b"nest\xe9"), "init", "-q")
    saved = await trees.save(tree, "saved")
    assert [file.path for file in saved.files] == ["caf\ufffd.py"]
    assert saved.nested == ("nest\ufffd",)
    assert saved.unsaved == ()


async def test_a_clone_that_was_saved_and_moved_by_the_user_gets_another_branch(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", Isolation.CLONE)
    (tree.path / "new.py").write_text("new\n")
    await trees.save(tree, "saved")
    mine = repository.git("commit-tree", "main^{tree}", "-p", "main", "-m", "mine").strip()
    git_in(repository.folder, "branch", "-f", "muster/one", mine)
    (tree.path / "new.py").write_text("newer\n")
    saved = await trees.save(tree, "saved")
    assert saved.branch == "muster/one-2"
    assert shown(repository, saved.head, "new.py") == "newer\n"
    assert repository.git("rev-parse", "muster/one").strip() == mine


async def test_a_clone_whose_agent_rewrote_its_commits_moves_the_branch(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", Isolation.CLONE)
    (tree.path / "new.py").write_text("new\n")
    await trees.save(tree, "saved")
    git_in(tree.path, "commit", "-q", "--amend", "-m", "rewritten")
    saved = await trees.save(tree, "saved")
    assert (saved.branch, saved.commits) == ("muster/one", 1)
    assert repository.git("log", "-1", "--format=%s", "muster/one").strip() == "rewritten"


async def test_a_clone_cannot_push_into_the_repository(repository: Repository) -> None:
    tree = await worktrees(repository.folder).create("one", Isolation.CLONE)
    before = repository.git("for-each-ref")
    assert "pushing-is-off" in git_in(tree.path, "push", "origin", "HEAD:refs/heads/pushed", check=False)
    assert repository.git("for-each-ref") == before


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_a_patch_is_bounded_and_of_a_tree_shows_what_is_uncommitted(
    repository: Repository, kind: Isolation
) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    (tree.path / "new.py").write_text("a new line\n" * 1_000)
    before = git_in(tree.path, "status", "--porcelain")
    whole = await trees.diff(tree, 1_000_000)
    assert whole.count("+a new line") == 1_000
    assert git_in(tree.path, "status", "--porcelain") == before
    saved = await trees.save(tree, "saved")
    kept = BranchRange(branch=saved.branch, base=saved.base)
    assert await trees.diff(kept, 1_000_000) == whole
    cut = await trees.diff(kept, 500)
    assert cut == whole[:500] + "\n[… cut after 500 bytes …]\n"


async def test_a_tree_that_is_gone_is_told_with_its_branch(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    tree.path.rename(tree.path.with_name("moved"))
    with pytest.raises(Conflict, match=r"cannot be saved: .*/one is gone") as caught:
        await trees.save(tree, "saved")
    assert caught.value.suggestions == ("what was committed is on the branch muster/one",)


async def test_a_lock_of_a_git_that_may_live_is_left_and_the_work_is_saved(repository: Repository) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one")
    lock = repository.folder / ".git/worktrees/one/index.lock"
    lock.write_bytes(b"")
    (tree.path / "new.py").write_text("new\n")
    child = await asyncio.create_subprocess_exec("cat", cwd=tree.path, stdin=asyncio.subprocess.PIPE)
    try:
        assert (await trees.save(tree, "saved")).commits == 1
        assert lock.exists()
    finally:
        await child.communicate(b"")
    assert (await trees.save(tree, "saved")).commits == 1
    assert not lock.exists()
    assert git_in(tree.path, "status", "--porcelain") == ""


@pytest.mark.parametrize("kind", first_of(KINDS))
async def test_a_file_changed_in_the_second_of_the_checkout_to_the_same_size_is_saved(
    repository: Repository, kind: Isolation
) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    index = Path(git_in(tree.path, "rev-parse", "--absolute-git-dir").strip()) / "index"
    git_in(tree.path, "config", "core.trustctime", "false")  # a test can set every time but that
    file, second = tree.path / "src/c.py", 1_700_000_000
    os.utime(file, (second, second))
    git_in(tree.path, "update-index", "--refresh")
    file.write_text("y = 2\n")  # as long as before
    for path in (file, index):
        os.utime(path, (second, second))
    saved = await trees.save(tree, "work")
    assert [change.path for change in saved.files] == ["src/c.py"]
    assert shown(repository, saved.branch, "src/c.py") == "y = 2\n"


async def test_the_files_of_the_user_are_committed_without_touching_anything_of_theirs(repository: Repository) -> None:
    repository.write("ignored/x.py", "ignored\n")
    repository.write("other.txt", "nobody asked for it\n")
    (repository.folder / "a.py").unlink()
    before = users_state(repository)
    trees = worktrees(repository.folder)
    commit = await trees.commit_files(["notes.txt", "src/b.py", "ignored/x.py", "gone.py"], "as they are")
    files = repository.git("ls-tree", "-r", "--name-only", commit).split()
    assert files == [".gitignore", "notes.txt", "src/b.py", "src/c.py"]
    assert [shown(repository, commit, name) for name in files[1:]] == ["new\n", "staged\n", "changed\n"]
    assert users_state(repository) == before
    assert not hooks_ran(repository)
    assert not list((repository.folder / ".git").glob("muster-files-*"))
    tree = await trees.create("one", ref=commit)
    assert (tree.path / "notes.txt").read_text() == "new\n"


async def test_files_that_are_all_committed_are_those_of_head(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "plain")
    repository.write("a.py")
    repository.commit()
    assert await worktrees(repository.folder).commit_files(["a.py"], "x") == repository.git("rev-parse", "HEAD").strip()
