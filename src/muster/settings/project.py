"""The folder of a project: looked for upwards from the working folder, as git looks for its own.

A project is where a store or a muster.toml is. Both are taken from one folder, so that a store is never used with the
budgets and agents of another.
"""

import os
from collections.abc import Iterator
from pathlib import Path

CONFIG_FILE = "muster.toml"
HOME = ".muster"
DATABASE = "muster.db"
GIT = ".git"  # a folder, or in worktrees and submodules a file


def find_project(start: Path, *, top: Path | None, user: int, with_store: bool = True) -> Path:
    """Return the nearest folder with a muster.toml, or with a store if that counts too; else the one to start from.

    `top` is the last folder that is looked at, usually the person's home; `user` is whose folders are trusted.
    """
    wanted = (Path(CONFIG_FILE), Path(HOME, DATABASE)) if with_store else (Path(CONFIG_FILE),)
    for folder in _upwards(start, top, user):
        if any(_is_file(folder / name, None if folder == start else user) for name in wanted):
            return folder
    return start


def _upwards(start: Path, top: Path | None, user: int) -> Iterator[Path]:
    """Return the folders to look at: up to the top of a git tree, or `top`, and never into those of others."""
    for folder in (start, *start.parents):
        if folder != start and not _is_own(folder, user):
            return
        yield folder
        if folder == top or os.path.lexists(folder / GIT):
            return


def _is_own(path: Path, user: int) -> bool:
    """Return whether a folder or file is the user's: a muster.toml names programs that are started."""
    try:
        return path.stat().st_uid == user
    except OSError:
        return False


def _is_file(path: Path, user: int | None) -> bool:
    """Return whether a file is there that is trusted; where everybody can write, one of somebody else is not."""
    found = os.path.isfile(path)  # noqa: PTH113 - False also where one may not look
    return found and (user is None or _is_own(path, user))
