"""Files that git does not have, such as `.env`, copied from the user's tree into a new one, and recognised later.

They are never committed by us, and a tree that holds them unchanged holds nothing that would be lost.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath

from muster.domain.errors import BadArgument
from muster.git.layout import Layout

_MAX_BYTES = 50 * 1_048_576


def check_copies(layout: Layout, paths: Sequence[str]) -> None:
    """Raise when a path does not stay inside of the repository."""
    for path in paths:
        pure = PurePosixPath(path)
        if not path or "\0" in path or pure.is_absolute() or not pure.parts or ".." in pure.parts:
            raise _refused(path, "it must be a path relative to the root of the repository, without ..")
        source = layout.root / pure
        if not os.path.lexists(source):
            continue
        real = source.resolve()
        if not real.is_relative_to(layout.root) or real.is_relative_to(layout.common) or ".git" in pure.parts:
            raise _refused(path, f"it leads to {real}, which is not in the working tree")
        if real.exists() and not real.is_file():
            raise _refused(path, "only files can be copied")


def copy_files(layout: Layout, name: str, paths: Sequence[str]) -> dict[str, str]:
    """Copy the files that are there and not in the new tree yet; return their digests."""
    tree = layout.path(name)
    copied = {}
    for path in paths:
        pure = PurePosixPath(path)
        target = tree / pure
        real = (layout.root / pure).resolve()
        if not real.is_file() or os.path.lexists(target):
            continue
        if not target.parent.resolve().is_relative_to(tree):  # a link that the repository holds
            raise _refused(path, f"in the new tree it leads to {target.parent.resolve()}")
        target.parent.mkdir(parents=True, exist_ok=True)
        copied[pure.as_posix()] = _copy(path, real, target)
    return copied


def unchanged_copies(tree: Path, copied: Mapping[str, str]) -> set[str]:
    """Return the copied files that are still as they were."""
    return {path for path, digest in copied.items() if _digest(tree / path) == digest}


def _copy(path: str, source: Path, target: Path) -> str:
    with source.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    if len(data) > _MAX_BYTES:
        raise _refused(path, f"it is larger than {_MAX_BYTES // 1_048_576} MB")
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return sha256(data).hexdigest()


def _digest(path: Path) -> str | None:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return None
        return sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _refused(path: str, why: str) -> BadArgument:
    return BadArgument(f"{path!r} cannot be copied into a worktree: {why}", suggestions=("correct copy = […]",))
