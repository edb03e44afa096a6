"""A store that cannot be written to, opened for reading: a read-only file, folder or file system.

SQLite's log needs memory beside the file, which a read-only folder has no room for. What can be done depends on what is
there: the memory of another process, no log at all, or a log that somebody left behind.
"""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from muster.domain.errors import MusterError, NotFound, StoreFailed
from muster.store.queries import newest_version
from muster.store.sqlite.connection import Access, SqliteConnection

LOG = "-wal"
MEMORY = "-shm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """How a store can be read: which file, with which access, and what lets go of it."""

    path: Path
    access: Access
    release: Callable[[], None]


def read_only(path: Path) -> StoreFailed:
    """Make the error for a write to such a store."""
    return StoreFailed(
        f"the store {path} is read-only", suggestions=("make it writable, or choose another with --home",)
    )


def no_store(path: Path) -> NotFound:
    """Make the error for a write to a store that is not there, by a command that makes none."""
    return NotFound(f"no store found at {path}", suggestions=("start a run first: muster ask sim/echo hello",))


def make_empty(path: Path, migrate: Callable[[SqliteConnection], None]) -> Readable:
    """Make an empty store elsewhere, private and temporary, to read instead of one that is not there."""
    return _copied(path, migrate)


def find_access(path: Path, migrate: Callable[[SqliteConnection], None]) -> Readable:
    """Find out how a read-only store can be read; raises StoreFailed when it cannot."""
    # Where another process has it open, there is memory to share. Without any, SQLite would make some in a folder that
    # can be written to, and leave it there with the permissions of the file: the owner could never write again.
    if Path(f"{path}{MEMORY}").exists() and is_current(path, Access.READ_ONLY):
        return Readable(path=path, access=Access.READ_ONLY, release=_nothing)
    if not _has_log(path) and is_current(path, Access.IMMUTABLE):
        return Readable(path=path, access=Access.IMMUTABLE, release=_nothing)
    return _copied(path, migrate)


def is_current(path: Path, access: Access) -> bool:
    """Return whether a store can be read in this way as it is, without a migration."""
    try:
        connection = SqliteConnection(path, access=access)
    except StoreFailed:
        return False
    try:
        return bool(connection.pragma("user_version") == newest_version("sqlite"))
    except StoreFailed:
        return False
    finally:
        connection.close()


def _has_log(path: Path) -> bool:
    log = Path(f"{path}{LOG}")
    return log.exists() and log.stat().st_size > 0


def _copied(path: Path, migrate: Callable[[SqliteConnection], None]) -> Readable:
    """Copy a store whose log was left behind, or one of an older version; the copy is private and temporary.

    The copy of a file that is not there is an empty store.
    """
    folder = Path(tempfile.mkdtemp(prefix="muster-"))
    copy = folder / path.name
    try:
        for end in ("", LOG):
            if Path(f"{path}{end}").exists():
                shutil.copyfile(f"{path}{end}", f"{copy}{end}")
        connection = SqliteConnection(copy)
        try:
            migrate(connection)
        finally:
            connection.close()
    except (OSError, MusterError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        why = error.message if isinstance(error, MusterError) else error.strerror
        raise StoreFailed(f"the store {path} cannot be read: {why}") from error
    return Readable(path=copy, access=Access.SHARED, release=lambda: _remove(folder))


def _remove(folder: Path) -> None:
    with suppress(OSError):
        shutil.rmtree(folder)


def _nothing() -> None:
    """Let go of nothing."""
