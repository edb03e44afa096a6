"""What git knows of a folder; with real repositories."""

import os
import sys
from pathlib import Path

import pytest

from muster.domain.errors import BadArgument, BadConfiguration, MusterError
from muster.git.repository import Git
from tests.git.repository import Repository

ODD = ("ä b.py", 'quo"te.py', "new\nline.py", "-option.py", "[x]*.py", ":(top)magic.py")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.write(".gitignore", "ignored/\n*.log\n")
    made.write("a.py")
    made.write("src/b.py")
    made.write("src/gone.py")
    made.commit()
    return made


async def test_the_root_is_the_top_from_anywhere_below(repository: Repository, tmp_path: Path) -> None:
    assert await Git(repository.folder / "src").root() == repository.folder.resolve()
    assert await Git(tmp_path).root() is None


async def test_changed_files_are_staged_unstaged_and_new_ones(repository: Repository) -> None:
    repository.write("a.py", "changed\n")
    repository.write("src/staged.py")
    repository.git("add", "src/staged.py")
    repository.write("src/new.py")
    repository.write("ignored/x.py")
    (repository.folder / "src/gone.py").unlink()
    assert await Git(repository.folder / "src").changed() == ("a.py", "src/new.py", "src/staged.py")


async def test_a_file_that_was_only_touched_is_not_changed(repository: Repository) -> None:
    os.utime(repository.folder / "a.py", (1, 1))
    assert await Git(repository.folder).changed() == ()


async def test_changes_are_counted_from_the_commit_that_is_named(repository: Repository) -> None:
    repository.git("tag", "before")
    repository.git("mv", "a.py", "moved.py")
    repository.write("src/b.py", "changed\n")
    repository.commit()
    git = Git(repository.folder)
    assert await git.changed() == ()
    for ref in ("before", "HEAD~1", "main^"):
        assert await git.changed(ref) == ("moved.py", "src/b.py")


async def test_a_commit_that_git_does_not_know_is_told_and_no_option(repository: Repository) -> None:
    for ref in ("nothing", "--output=x", "-h", "HEAD..main", "a\0b"):
        with pytest.raises(BadArgument, match="is not a commit of"):
            await Git(repository.folder).changed(ref)
    assert not (repository.folder / "x").exists()


async def test_odd_names_come_through_as_they_are(repository: Repository) -> None:
    for name in ODD:
        repository.write(name)
    git = Git(repository.folder)
    assert await git.changed() == tuple(sorted(ODD))
    repository.git("add", "--all")
    assert await git.staged() == tuple(sorted(ODD))
    repository.write("[x]*/in.py")
    repository.write("xy/out.py")
    assert await git.listed(repository.folder / "[x]*") == ("[x]*/in.py",)


async def test_links_and_submodules_are_no_files(repository: Repository, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    other.write("inner.py")
    other.commit()
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.folder), "sub")
    (repository.folder / "link.py").symlink_to("a.py")
    (repository.folder / "src/b.py").unlink()
    (repository.folder / "src/b.py").symlink_to("../a.py")
    nested = Repository(repository.folder / "nested")
    nested.write("x.py")
    git = Git(repository.folder)
    assert await git.changed() == (".gitmodules",)
    repository.git("add", "link.py", "src/b.py")
    assert await git.staged() == (".gitmodules",)
    assert await git.listed(repository.folder) == (".gitignore", ".gitmodules", "a.py", "src/gone.py")


async def test_a_link_that_became_a_file_is_changed(repository: Repository) -> None:
    (repository.folder / "link.py").symlink_to("a.py")
    repository.commit()
    (repository.folder / "link.py").unlink()
    repository.write("link.py", "code\n")
    git = Git(repository.folder)
    assert await git.changed() == ("link.py",)
    repository.git("add", "link.py")
    assert await git.staged() == ("link.py",)


async def test_a_repository_without_a_commit_is_all_new(tmp_path: Path) -> None:
    empty = Repository(tmp_path / "empty")
    git = Git(empty.folder)
    assert (await git.changed(), await git.staged()) == ((), ())
    empty.write("a.py")
    empty.write("b.py")
    empty.git("add", "a.py")
    assert await git.changed() == ("a.py", "b.py")
    assert await git.changed("HEAD") == ("a.py", "b.py")
    assert await git.staged() == ("a.py",)
    with pytest.raises(BadArgument, match="'main' is not a commit of"):
        await git.changed("main")


async def test_staged_contents_are_what_is_staged_and_not_what_is_on_disk(
    repository: Repository, tmp_path: Path
) -> None:
    repository.write("a.py", "staged\n")
    repository.write("src/-new.py", "staged too\n")
    repository.git("add", "--all")
    repository.write("a.py", "later\n")
    git = Git(repository.folder / "src")
    into = tmp_path / "out"
    assert await git.staged() == ("a.py", "src/-new.py")
    await git.check_out_staged(await git.staged(), into)
    await git.check_out_staged(await git.staged(), into)  # again, over what is there
    assert (into / "a.py").read_text() == "staged\n"
    assert (into / "src/-new.py").read_text() == "staged too\n"
    assert repository.git("status", "--short").splitlines() == ["MM a.py", "A  src/-new.py"]
    with pytest.raises(BadArgument, match=r"nowhere\.py is not in the cache"):
        await git.check_out_staged(["nowhere.py"], into)


async def test_a_conflict_is_told(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "side")
    repository.write("a.py", "side\n")
    repository.commit()
    repository.git("checkout", "--quiet", "main")
    repository.write("a.py", "main\n")
    repository.commit()
    repository.git("merge", "side", check=False)
    with pytest.raises(BadArgument, match=r"a\.py has a merge conflict"):
        await Git(repository.folder).staged()
    assert await Git(repository.folder).changed() == ("a.py",)


HOOK = """#!{python}
import asyncio
from pathlib import Path
from muster.git.repository import Git
git = Git(Path.cwd())
names = asyncio.run(git.staged())
asyncio.run(git.check_out_staged(names, Path({into!r})))
Path({told!r}).write_text(" ".join(names))
"""


def test_a_hook_sees_the_index_of_the_commit_that_is_made(repository: Repository, tmp_path: Path) -> None:
    told, into = tmp_path / "told", tmp_path / "into"
    hook = repository.write(".git/hooks/pre-commit", HOOK.format(python=sys.executable, into=str(into), told=str(told)))
    hook.chmod(0o755)
    repository.write("a.py", "one\n")
    repository.write("src/b.py", "two\n")
    repository.git("add", "src/b.py")
    repository.git("commit", "--message", "only a", "--", "a.py")
    assert told.read_text() == "a.py"
    assert (into / "a.py").read_text() == "one\n"
    repository.write("a.py", "three\n")
    repository.git("commit", "--all", "--message", "everything")
    assert told.read_text() == "a.py src/b.py"
    assert (into / "a.py").read_text() == "three\n"


async def test_outside_of_a_repository_nothing_can_be_asked(tmp_path: Path) -> None:
    git = Git(tmp_path)
    for asked in (git.changed(), git.staged(), git.listed(tmp_path)):
        with pytest.raises(BadArgument, match="not in a git repository") as caught:
            await asked
        assert caught.value.suggestions == ("create one with git init, or go to a folder of one",)


async def test_a_repository_that_git_refuses_is_told_and_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    with pytest.raises(BadArgument, match="git rev-parse failed"):
        await Git(tmp_path).root()


async def test_without_git_there_is_a_clear_word(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadConfiguration, match="git was not found on PATH"):
        await Git(repository.folder).changed()
    assert await Git(tmp_path).root() is None


async def test_a_git_that_hangs_is_ended_whatever_it_has_started(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nsleep 100 &\nwait\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.defpath}")
    with pytest.raises(MusterError, match=r"took longer than 0\.2 s"):
        await Git(repository.folder, seconds=0.2).root()
