"""What tests of worktrees share: a repository with a user's unfinished work in it, and processes that can be killed."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from muster.git.worktrees import Worktrees
from tests import forkserver
from tests.git.repository import Repository

PLAIN = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def user_repository(folder: Path) -> Repository:
    """Make a repository whose user has staged, changed, new and stashed files, and hooks that must not run."""
    made = Repository(folder)
    made.write(".gitignore", "*.log\nignored/\n")
    made.write("a.py", "first\nsecond\nthird\n")
    made.write("src/b.py")
    made.write("src/c.py")
    made.commit("the beginning")
    made.write("a.py", "stashed\n")
    made.git("stash")
    made.write("src/b.py", "staged\n")
    made.git("add", "src/b.py")
    made.write("src/c.py", "changed\n")
    made.write("notes.txt", "new\n")
    set_hooks(made)
    return made


def set_hooks(repository: Repository) -> None:
    """Install hooks that leave a mark and refuse."""
    names = (
        "pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-checkout", "pre-merge-commit",
        "post-merge", "reference-transaction", "pre-push", "post-rewrite", "update", "pre-receive",
    )  # fmt: skip
    mark = shlex.quote(str(repository.folder.parent / "hook-ran"))
    for name in names:
        path = repository.write(f".git/hooks/{name}", f"#!/bin/sh\necho {name} >> {mark}\nexit 1\n")
        path.chmod(0o755)


def hooks_ran(repository: Repository) -> bool:
    return (repository.folder.parent / "hook-ran").exists()


def users_state(repository: Repository) -> tuple[str, ...]:
    """Return all of the user's that must stay: status, index, stash, HEAD, branches that are not ours, files."""
    asked = (
        ("status", "--porcelain", "--branch", "--untracked-files=all"),
        ("ls-files", "--stage"),
        ("stash", "list"),
        ("rev-parse", "HEAD"),
        ("for-each-ref", "refs/heads/main", "refs/heads/feature", "refs/tags", "refs/stash"),
    )
    files = sorted(
        f"{path.relative_to(repository.folder)} {path.read_bytes()!r}"
        for path in repository.folder.rglob("*")
        if path.is_file() and not {".git", ".muster"} & set(path.relative_to(repository.folder).parts)
    )
    return (*(repository.git(*arguments) for arguments in asked), *files)


def worktrees(folder: Path, base_dir: Path | None = None, **options: float) -> Worktrees:
    return Worktrees(folder, base_dir, environment=environment(), **options)


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **PLAIN, **more}


def git_in(folder: Path, *arguments: str, check: bool = True) -> str:
    """Run git as an agent would in its tree."""
    settings = ("user.name=Agent", "user.email=agent@example.com", "core.hooksPath=/dev/null", "commit.gpgSign=false")
    done = subprocess.run(
        ["git", *(part for setting in settings for part in ("-c", setting)), *arguments],
        cwd=folder,
        env=os.environ | PLAIN,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 or not check, done.stderr
    return done.stdout + done.stderr


def program(code: str, *arguments: str, env: Mapping[str, str]) -> forkserver.Forked:
    """Start a process that works with trees: `trees` and `sys.argv` are there."""
    words = [code, *arguments]
    return forkserver.Forked("tests.git.program", words, folder=forkserver.ROOT, environment=dict(env))


def killing_git(folder: Path, command: str, before: str, after: str) -> str:
    """Write a git that runs a line of shell before and after a command; return a PATH with it."""
    real = shutil.which("git")
    assert real is not None
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "git"
    script.write_text(
        f'#!/bin/sh\nfor word; do if [ "$word" = {command} ]; then\n'
        f'{before}\n{real} "$@"; code=$?\n{after}\nexit $code\nfi; done\nexec {real} "$@"\n'
    )
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"
