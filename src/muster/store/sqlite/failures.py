"""What goes wrong with an SQLite file, as errors that say what happened, where, and what to do.

A file that cannot grow is told from a disk that fails: what was paid for waits for room, and nothing new is begun.
"""

import errno
import os
import resource
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from muster.domain.errors import KeyTaken, MusterError, StoreAway, StoreFailed, store_closed
from muster.store.queries import Locked

MIN_FREE_BYTES = (
    262_144  # bytes; with less a disk counts as full: the log and the memory of a file take as much at once
)
WRITE_LOCK = "120"  # the byte of the -shm file that SQLite locks for writing


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """What keeps a file from growing, and what somebody can do about it."""

    what: str
    way: str


FULL = Shortage(what="the disk is full", way="free some space")
QUOTA = Shortage(what="the disk quota is used up", way="free some space or raise the quota")


class DiskFull(Locked, StoreAway):
    """The file has no room to grow in; nothing of the transaction was written."""

    pause = 0.25
    refuses_new = True

    def __init__(self, path: Path, shortage: Shortage) -> None:
        way = f"{shortage.way}; nothing was half-written; then resume"
        super().__init__(f"the store {path} cannot grow: {shortage.what}", suggestions=(way,))
        self.way = shortage.way


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn failures of SQLite into errors that say what happened, where, and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(path, error) from error


_EXPLANATIONS: Mapping[str, tuple[str, str]] = {
    "SQLITE_BUSY": ("is locked by another process", "end the process that holds it, or wait and try again"),
    "SQLITE_PROTOCOL": ("is locked by another process", "end the process that holds it, or wait and try again"),
    "SQLITE_IOERR": ("cannot be read or written", "check the disk; nothing was half-written; then resume"),
    "SQLITE_READONLY": ("cannot be written", "make the folder writable or choose another with --home"),
    "SQLITE_CANTOPEN": ("cannot be opened", "make the folder readable and writable or choose another with --home"),
    "SQLITE_NOTADB": ("is not a Muster store", "move the file away or choose another folder with --home"),
    "SQLITE_CORRUPT": ("is damaged", "restore it from a backup, or move it away to start with a new one"),
}


def explain(path: Path, error: sqlite3.Error) -> MusterError:
    """Make the error that a person can act on."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name == "SQLITE_CONSTRAINT_UNIQUE" and "journal.key" in str(error):
        return KeyTaken("the journal already has an entry under this key")
    if isinstance(error, sqlite3.ProgrammingError) and "closed database" in str(error):
        return store_closed()
    shortage = FULL if name == "SQLITE_FULL" else None
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")):  # of a write that failed SQLite does not tell why
        shortage = shortage_of(path)
    if shortage is not None:
        return DiskFull(path, shortage)
    kind = Locked if name.startswith(("SQLITE_BUSY", "SQLITE_PROTOCOL")) else StoreFailed
    for prefix, (what, remedy) in _EXPLANATIONS.items():
        if name.startswith(prefix):
            return kind(f"the store {path} {what} ({error})", suggestions=(remedy,))
    return StoreFailed(f"the store {path} failed: {error} ({name or type(error).__name__})")


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from any other that may stand in its place; None when there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - done for every commit, and twice as quick
    except OSError:
        return None
    return found.st_dev, found.st_ino


def vanished(path: Path, file: tuple[int, int] | None) -> StoreFailed:
    """Make the error for a file that was moved or deleted while it was open."""
    place = _place_of(file)
    if place is not None:
        what = f"the store {path} was moved to {place} while it was in use; everything written before is there"
        return StoreFailed(what, suggestions=(f"move it back to {path}, then resume",))
    gone = "deleted or moved to another file system"
    done = gone if identity_of(path) is None else "replaced by another file"
    return StoreFailed(
        f"the store {path} was {done} while it was in use; its contents are lost unless there is a backup",
        suggestions=(f"move it back to {path} or restore it from a backup, then resume; or start with a new one",),
    )


def _place_of(file: tuple[int, int] | None) -> str | None:
    """Return where a file that this process has open is now; None when it is deleted, or nobody knows."""
    with suppress(OSError):
        for handle in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                found = handle.stat()
                if (found.st_dev, found.st_ino) == file and found.st_nlink:
                    return str(handle.readlink())
    return None


def shortage_of(path: Path) -> Shortage | None:
    """Return what keeps a store from growing, as far as that can be found out."""
    if is_full(path):
        return FULL
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY and limit - _largest_file(path) < MIN_FREE_BYTES:
        way = f"raise the limit (prlimit --pid {os.getpid()} --fsize=unlimited)"
        return Shortage(what=f"this process may make no file larger than {limit:,} bytes", way=way)
    return QUOTA if _is_quota_reached(path.parent) else None


def is_full(path: Path) -> bool:
    """Return whether the disk of a file is full."""
    try:
        return shutil.disk_usage(path.parent).free < MIN_FREE_BYTES
    except OSError:
        return False


def _largest_file(path: Path) -> int:
    """Return the size of the largest file of a store: a log that could not grow stays as large as it may be."""
    files = (path, Path(f"{path}-wal"), Path(f"{path}-shm"))
    return max((file.stat().st_size for file in files if file.exists()), default=0)


def _is_quota_reached(folder: Path) -> bool:
    """Return whether nothing can be written any more in a folder whose disk has room: only trying tells."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.pwrite(file.fileno(), bytes(MIN_FREE_BYTES), 0)
            os.fsync(file.fileno())  # over a network the server tells only now
    except OSError as error:
        return error.errno in (errno.EDQUOT, errno.ENOSPC)
    return False


def is_read_only(path: Path) -> bool:
    """Return whether a store that is there cannot be written to by this process."""
    # Readable too: what may not even be looked at is told as that.
    return os.access(path, os.R_OK) and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def lock_holder(path: Path) -> int | None:
    """Return the number of the process that holds the write lock, where the system tells."""
    memory = identity_of(Path(f"{path}-shm"))
    with suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            fields = line.replace("-> ", "").split()
            inode = fields[5].rpartition(":")[2]
            if memory and inode == str(memory[1]) and fields[3] == "WRITE" and fields[6] == WRITE_LOCK:
                return int(fields[4]) if int(fields[4]) > 0 else None
    return None
