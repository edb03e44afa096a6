"""Trees for agents: made, found again and prepared, beside a user's unfinished work that stays as it is."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from muster.domain.errors import BadArgument, BadConfiguration, Conflict, MusterError, NotFound
from muster.domain.isolation import Isolation
from muster.git.worktrees import Worktrees
from tests.git.repository import Repository
from tests.git.trees import environment, git_in, hooks_ran, program, user_repository, users_state, worktrees

KINDS = (Isolation.WORKTREE, Isolation.CLONE)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return user_repository(tmp_path / "repository")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_tree_has_the_files_of_head_on_a_branch_of_its_own(repository: Repository, kind: Isolation) -> None:
    before = users_state(repository)
    tree = await worktrees(repository.folder / "src").create("one", kind)
    assert tree.path == repository.folder.resolve() / ".muster/worktrees/one"
    assert (tree.branch, tree.kind, tree.repository) == ("muster/one", kind, repository.folder.resolve())
    assert tree.base == repository.git("rev-parse", "HEAD").strip()
    assert (tree.path / "src/b.py").read_text() == "x = 1\n"
    assert git_in(tree.path, "status", "--porcelain") == ""
    assert git_in(tree.path, "symbolic-ref", "HEAD").strip() == "refs/heads/muster/one"
    assert users_state(repository) == before
    assert not hooks_ran(repository)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_tree_that_is_there_is_returned_with_its_work(repository: Repository, kind: Isolation) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    (tree.path / "a.py").write_text("unfinished\n")
    assert await trees.create("one", kind, ref="HEAD") == tree
    assert await worktrees(repository.folder).find("one") == tree
    assert (tree.path / "a.py").read_text() == "unfinished\n"
    other = KINDS[1 - KINDS.index(kind)]
    with pytest.raises(Conflict, match=f"is a {kind}, and a {other} was asked for"):
        await trees.create("one", other)


async def test_no_upstream_is_set_and_no_ignore_file_is_written(repository: Repository) -> None:
    repository.git("config", "branch.autoSetupMerge", "always")
    await worktrees(repository.folder).create("one", ref="main")
    await worktrees(repository.folder).create("two", ref="main")
    assert "branch.muster" not in repository.git("config", "--list")
    excluded = (repository.folder / ".git/info/exclude").read_text().splitlines()
    assert excluded.count("/.muster/worktrees/") == 1
    assert (repository.folder / ".gitignore").read_text() == "*.log\nignored/\n"


async def test_an_exclude_file_without_a_last_newline_keeps_its_last_line(repository: Repository) -> None:
    file = repository.write(".git/info/exclude", "*.mine")
    await worktrees(repository.folder).create("one")
    assert file.read_text() == "*.mine\n/.muster/worktrees/\n"


async def test_a_folder_that_is_ignored_already_is_not_excluded_again(repository: Repository) -> None:
    file = repository.write(".git/info/exclude", ".muster\n")
    await worktrees(repository.folder).create("one")
    assert file.read_text() == ".muster\n"


async def test_a_base_folder_may_lie_elsewhere_or_have_an_odd_name(repository: Repository, tmp_path: Path) -> None:
    outside = await worktrees(repository.folder, tmp_path / "outside").create("one")
    assert outside.path == tmp_path.resolve() / "outside/one"
    before = users_state(repository)
    odd = await worktrees(repository.folder, Path("odd [x]* #")).create("one")
    assert odd.path.is_dir()
    assert odd.branch == "muster/one-2"
    assert [line for line in users_state(repository) if not line.startswith("odd")] == list(before)
    for wrong in (Path(), Path(".git/trees"), tmp_path):
        with pytest.raises(BadArgument, match="cannot hold worktrees"):
            await worktrees(repository.folder, wrong).create("two")


async def test_a_branch_with_other_work_is_left_alone_and_one_without_is_used(repository: Repository) -> None:
    repository.git("-c", "core.hooksPath=/dev/null", "branch", "muster/empty", "main")
    work = repository.git("commit-tree", "main^{tree}", "-p", "main", "-m", "work").strip()
    repository.git("-c", "core.hooksPath=/dev/null", "branch", "muster/full", work)
    repository.git("-c", "core.hooksPath=/dev/null", "branch", "muster/folder/x", work)
    trees = worktrees(repository.folder)
    assert (await trees.create("empty")).branch == "muster/empty"
    assert (await trees.create("full")).branch == "muster/full-2"
    assert (await trees.create("folder")).branch == "muster/folder-2"
    assert repository.git("rev-parse", "muster/full").strip() == work


async def test_a_branch_that_takes_the_place_of_ours_is_told(repository: Repository) -> None:
    repository.git("-c", "core.hooksPath=/dev/null", "branch", "muster")
    with pytest.raises(Conflict, match="has a branch named muster"):
        await worktrees(repository.folder).create("one")
    assert not (repository.folder / ".muster/worktrees/one").exists()


@pytest.mark.parametrize("kind", KINDS)
async def test_detached_heads_and_branches_with_slashes_do(repository: Repository, kind: Isolation) -> None:
    git_in(repository.folder, "stash")
    git_in(repository.folder, "checkout", "-q", "-b", "feature/deep/er")
    git_in(repository.folder, "commit", "-q", "--allow-empty", "-m", "deeper")
    deeper = repository.git("rev-parse", "HEAD").strip()
    git_in(repository.folder, "checkout", "-q", "--detach", "main")
    git_in(repository.folder, "commit", "-q", "--allow-empty", "-m", "on no branch")
    trees = worktrees(repository.folder)
    detached = await trees.create("detached", kind)
    assert detached.base == repository.git("rev-parse", "HEAD").strip()
    assert git_in(detached.path, "rev-parse", "HEAD").strip() == detached.base
    assert (await trees.create("slashes", kind, ref="feature/deep/er")).base == deeper


async def test_a_linked_worktree_of_the_users_has_trees_of_its_own(repository: Repository, tmp_path: Path) -> None:
    git_in(repository.folder, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "feature")
    first = await worktrees(repository.folder).create("one")
    tree = await worktrees(tmp_path / "linked").create("one")
    assert (first.branch, tree.branch) == ("muster/one", "muster/one-2")
    assert await worktrees(repository.folder).create("one") == first
    assert await worktrees(tmp_path / "linked").create("one") == tree
    assert tree.path == tmp_path.resolve() / "linked/.muster/worktrees/one"
    assert git_in(tmp_path / "linked", "status", "--porcelain") == ""


@pytest.mark.parametrize("kind", KINDS)
async def test_submodules_are_not_initialised_and_named(
    repository: Repository, tmp_path: Path, kind: Isolation
) -> None:
    inner = Repository(tmp_path / "inner")
    inner.write("inner.py")
    inner.commit()
    outer = Repository(tmp_path / "outer")
    outer.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.folder), "vendor/inner")
    outer.commit()
    trees = worktrees(outer.folder)
    tree = await trees.create("one", kind)
    assert tree.notes == ("submodules are not initialised: vendor/inner",)
    assert list((tree.path / "vendor/inner").iterdir()) == []
    assert (await trees.save(tree, "nothing")).files == ()


@pytest.mark.parametrize("kind", KINDS)
async def test_files_of_lfs_stay_pointers_without_its_program(repository: Repository, kind: Isolation) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 5\n"
    repository.write("big.bin", pointer)
    git_in(repository.folder, "add", "big.bin")
    repository.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    git_in(repository.folder, "add", ".gitattributes")
    git_in(repository.folder, "commit", "-q", "-m", "large")
    for name, value in (("process", "no-such-lfs process"), ("smudge", "no-such-lfs"), ("required", "true")):
        repository.git("config", f"filter.lfs.{name}", value)
    tree = await worktrees(repository.folder).create("one", kind)
    assert (tree.path / "big.bin").read_text() == pointer
    assert "1 file of Git LFS is a pointer; " in tree.notes[0]


@pytest.mark.parametrize("kind", KINDS)
async def test_files_are_copied_when_they_are_there_and_keep_their_mode(
    repository: Repository, kind: Isolation
) -> None:
    repository.write(".env", "KEY=1\n").chmod(0o600)
    repository.write("conf/local.log", "x")
    tree = await worktrees(repository.folder).create("one", kind, copy=(".env", "conf/local.log", "missing", "a.py"))
    assert (tree.path / ".env").read_text() == "KEY=1\n"
    assert (tree.path / ".env").stat().st_mode & 0o777 == 0o600
    assert (tree.path / "conf/local.log").exists()
    assert (tree.path / "a.py").read_text() == "first\nsecond\nthird\n"


async def test_nothing_is_copied_from_outside(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (repository.folder / "link").symlink_to(tmp_path / "secret")
    (repository.folder / "folder").symlink_to(tmp_path)
    wrong = ("../secret", str(tmp_path / "secret"), "link", "folder/secret", ".git/config", "src", "a/../../x", "")
    for path in wrong:
        with pytest.raises(BadArgument, match="cannot be copied into a worktree"):
            await worktrees(repository.folder).create("one", copy=(path,))
    assert not (repository.folder / ".muster").exists()


async def test_a_link_in_the_repository_leads_no_copy_out_of_the_tree(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (repository.folder / "conf").symlink_to(tmp_path / "outside")
    git_in(repository.folder, "add", "conf")
    git_in(repository.folder, "commit", "-q", "-m", "a link")
    (repository.folder / "conf").unlink()
    repository.write("conf/.env", "KEY=1")
    with pytest.raises(BadArgument, match="in the new tree it leads to"):
        await worktrees(repository.folder).create("one", copy=("conf/.env",))
    assert list((tmp_path / "outside").iterdir()) == []
    assert not (repository.folder / ".muster/worktrees/one").exists()


async def test_names_that_are_no_names_are_refused(repository: Repository) -> None:
    for name in ("", "../x", "a/b", ".hidden", "a..b", "x.lock", "-x", "a b", "x" * 101, "dot."):
        with pytest.raises(BadArgument, match="cannot be the name of a worktree"):
            await worktrees(repository.folder).create(name)
    with pytest.raises(BadArgument, match="isolation none has no tree"):
        await worktrees(repository.folder).create("one", Isolation.NONE)
    with pytest.raises(NotFound):
        await worktrees(repository.folder).find("one")


async def test_places_without_trees_are_told(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    git_in(tmp_path, "init", "-q", "--bare", "bare")
    empty = Repository(tmp_path / "empty")
    said = {
        tmp_path / "plain": "is not in a git repository",
        tmp_path / "bare": "is a bare repository",
        repository.folder / ".git": "is a bare repository or inside of a git folder",
        empty.folder: "has no commit yet",
        tmp_path / "missing": "git cannot be run in",
    }
    for folder, words in said.items():
        with pytest.raises(BadArgument, match=words):
            await worktrees(folder).check()
        with pytest.raises(BadArgument, match=words):
            await worktrees(folder).create("one")
    with pytest.raises(BadArgument, match="is not a commit of"):
        await worktrees(repository.folder).create("one", ref="--output=x")


async def test_a_missing_git_is_told(repository: Repository, tmp_path: Path) -> None:
    trees = Worktrees(repository.folder, environment={"PATH": str(tmp_path)})
    with pytest.raises(BadConfiguration, match="git was not found on PATH"):
        await trees.create("one")


async def test_a_folder_that_somebody_else_made_is_left_alone(repository: Repository) -> None:
    repository.write(".muster/worktrees/one/precious.txt", "mine")
    with pytest.raises(Conflict, match="was not made by Muster"):
        await worktrees(repository.folder).create("one")
    assert (repository.folder / ".muster/worktrees/one/precious.txt").read_text() == "mine"


async def test_the_environment_of_the_caller_does_not_lead_git_elsewhere(
    repository: Repository, tmp_path: Path
) -> None:
    other = Repository(tmp_path / "other")
    before = users_state(repository)
    wrong = {
        "GIT_DIR": str(other.folder / ".git"),
        "GIT_WORK_TREE": str(other.folder),
        "GIT_INDEX_FILE": str(other.folder / "index"),
        "GIT_AUTHOR_NAME": "Somebody",
    }
    code = "print((await trees.create('one')).path)"
    child = program(code, str(repository.folder), env=environment(**wrong))
    out, errors = child.communicate(timeout=60)
    assert Path(out.strip()).is_dir(), errors
    assert users_state(repository) == before
    assert not (other.folder / "index").exists()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_tree_that_was_deleted_comes_back_on_its_branch(repository: Repository, kind: Isolation) -> None:
    trees = worktrees(repository.folder)
    tree = await trees.create("one", kind)
    (tree.path / "new.py").write_text("work\n")
    saved = await trees.save(tree, "work")
    shutil.rmtree(tree.path)
    again = await trees.create("one", kind)
    assert (again.branch, again.base) == (tree.branch, tree.base)
    assert (again.path / "new.py").read_text() == "work\n"
    assert git_in(again.path, "rev-parse", "HEAD").strip() == saved.head


@pytest.mark.parametrize("kind", KINDS)
async def test_a_full_disk_is_told_and_leaves_nothing(repository: Repository, kind: Isolation) -> None:
    repository.write("large.txt", os.urandom(200_000).hex())
    git_in(repository.folder, "add", "large.txt")
    git_in(repository.folder, "commit", "-q", "-m", "large")
    before = users_state(repository), repository.git("for-each-ref"), repository.git("worktree", "list")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))\n"
        f"    await trees.create('one', Isolation('{kind}'))"
    )
    child = program(code, str(repository.folder), env=environment())
    _, errors = child.communicate(timeout=60)
    assert "could not be made: git" in errors
    assert (users_state(repository), repository.git("for-each-ref"), repository.git("worktree", "list")) == before
    assert list((repository.folder / ".muster/worktrees").iterdir()) == []
    assert (await worktrees(repository.folder).create("one", kind)).branch == "muster/one"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_base_folder_that_is_a_file_is_told(repository: Repository, tmp_path: Path, kind: Isolation) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MusterError, match=r"could not be made: (Not a directory|File exists)"):
        await worktrees(repository.folder, tmp_path / "file").create("one", kind)
    assert "muster/" not in repository.git("branch", "--list")


@pytest.mark.parametrize("name", ["lock", "tree"])
async def test_a_lock_that_somebody_holds_is_told_after_its_time(repository: Repository, name: str) -> None:
    await worktrees(repository.folder).create("one")
    file = repository.folder / ".git/muster/lock"
    if name == "tree":
        (file,) = (repository.folder / ".git/muster").glob("*-one.lock")
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Conflict, match=r"another process works on .* was not free within 0\.1 s"):
            await worktrees(repository.folder, lock_seconds=0.1).create("one" if name == "tree" else "two")
    trees = worktrees(repository.folder, lock_seconds=0.1)
    assert [(await trees.create(name)).branch for name in ("one", "two")] == ["muster/one", "muster/two"]


@pytest.mark.parametrize("kind", KINDS)
async def test_sixteen_trees_at_once_from_four_processes(repository: Repository, kind: Isolation) -> None:
    before = users_state(repository)
    code = (
        f"made = await asyncio.gather(*(trees.create(f'{{sys.argv[2]}}-{{n}}', Isolation('{kind}')) for n in range(4)),"
        " trees.create('shared'))\n"
        "    print(*(tree.branch for tree in made))"
    )
    children = [program(code, str(repository.folder), f"p{n}", env=environment()) for n in range(4)]
    ends = [child.communicate(timeout=200) for child in children]
    assert [child.returncode for child in children] == [0] * 4, ends
    assert {branch for out, _ in ends for branch in out.split()} == {
        *(f"muster/p{process}-{number}" for process in range(4) for number in range(4)),
        "muster/shared",
    }
    assert users_state(repository) == before
    assert not hooks_ran(repository)
    assert "error" not in repository.git("fsck", "--strict")
