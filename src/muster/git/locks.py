"""Locks between processes, and lock files of git's that a killed git left behind."""

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from muster.agents.processes import system
from muster.domain.errors import Conflict, MusterError

_LOOK = 0.02  # seconds between two looks at a lock that somebody holds
_ABANDONED = 600.0  # seconds after which a lock file of git's is stale, whoever works beside it


@asynccontextmanager
async def locked(path: Path, seconds: float, what: str) -> AsyncIterator[int]:
    """Hold the flock of a file; every process that inherits the descriptor holds it too, until it ends."""
    handle = await _acquire(path, seconds, what)
    try:
        yield handle
    finally:
        os.close(handle)


async def _acquire(path: Path, seconds: float, what: str) -> int:
    deadline = time.monotonic() + seconds
    while (handle := _attempt(path)) is None:
        if time.monotonic() >= deadline:
            raise Conflict(
                f"another process works on {what}; its lock {path} was not free within {seconds:g} s",
                suggestions=("try again when it has finished",),
            )
        await asyncio.sleep(_LOOK)
    return handle


def _attempt(path: Path) -> int | None:
    """Return the descriptor of a lock that is ours now; None when somebody else has it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MusterError(f"the lock {path} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(handle).st_ino:  # nobody deleted it while we waited
                return handle
    except BlockingIOError:
        pass
    except OSError as error:
        os.close(handle)
        raise MusterError(f"the lock {path} cannot be taken: {error.strerror}") from error
    os.close(handle)
    return None


def remove_stale(files: Iterable[Path], folder: Path) -> None:
    """Remove lock files of a working tree that no living git can own.

    Whoever calls this holds the lock of the tree, which every git of ours holds while it lives.
    """
    left = [file for file in files if file.exists()]
    if left and not _is_busy(folder):
        _unlink(left)
    else:
        _unlink(file for file in left if _age(file) > _ABANDONED)


def _unlink(files: Iterable[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _is_busy(folder: Path) -> bool:
    """Return whether a process works in a folder, or nobody can tell."""
    return not system.is_ours() or any(system.working_in(folder))


def _age(file: Path) -> float:
    try:
        return time.time() - file.stat().st_mtime
    except OSError:
        return 0.0
