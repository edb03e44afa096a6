"""A hook of git's that runs a command before each commit. One that somebody else wrote is left alone."""

import asyncio
import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from muster.domain.errors import BadArgument
from muster.git.repository import Git

NAME = "pre-commit"
MARK = "# Written by `muster verify hook install`, which writes it anew."
_MAX_HOOK_BYTES = 1_000_000  # bytes of a hook that are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A hook that is in its place."""

    path: Path
    command: tuple[str, ...]
    kept: Path | None = None  # where the one that was there before is now


async def install_hook(folder: Path, command: Sequence[str], *, force: bool = False) -> Installed:
    """Write the hook of the repository that a folder is in; twice is the same as once.

    A hook that is not ours is kept beside it with `force`, and else refused.
    """
    path = await Git(folder).hooks() / NAME
    return await asyncio.to_thread(_install, path, tuple(command), force)


def spell(command: Sequence[str]) -> str:
    """Write the hook: git runs it at the top of the repository, and says by variables which index is meant."""
    return f"#!/bin/sh\n{MARK}\n# To commit without it: git commit --no-verify\nexec {shlex.join(command)}\n"


def _install(path: Path, command: tuple[str, ...], force: bool) -> Installed:
    try:
        foreign = os.path.lexists(path) and not _is_ours(path)
        if foreign and not force:
            raise BadArgument(
                f"another hook is already installed at {path}",
                suggestions=(
                    f"call Muster from that hook: {shlex.join(command)}",
                    "or replace it with --force, which keeps a copy of it",
                ),
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = _set_aside(path) if foreign else None
        _write(path, spell(command))
    except OSError as error:
        raise BadArgument(f"{path} cannot be written: {error.strerror}") from error
    return Installed(path=path, command=command, kept=kept)


def _is_ours(path: Path) -> bool:
    """Return whether we wrote a hook; what a link leads to belongs to somebody else."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return MARK.encode() in file.read(_MAX_HOOK_BYTES).splitlines()


def _set_aside(path: Path) -> Path:
    """Return a hook a name under which git does not run it, and that is free."""
    number = 0
    while os.path.lexists(aside := path.with_name(f"{NAME}.before-muster{f'-{number}' if number else ''}")):
        number += 1
    return path.rename(aside)


def _write(path: Path, text: str) -> None:
    """Write a program that is there as a whole or not at all."""
    unfinished = path.with_name(f".{NAME}.{uuid4().hex[:8]}.part")
    try:
        unfinished.write_text(text, encoding="utf-8", errors="surrogateescape", newline="\n")
        unfinished.chmod(0o755)
        unfinished.replace(path)
    finally:
        with suppress(OSError):  # it is in its place
            unfinished.unlink()
