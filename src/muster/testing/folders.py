"""Folders in memory, where the system has such a place: a store is written there without waiting for a disk."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108  # a folder of its own is made in it, which only this user can read


@contextmanager
def memory_folder() -> Iterator[Path]:
    """Make a folder that is removed at the end of the block."""
    place = MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(prefix="muster-", dir=place) as folder:
        yield Path(folder)
