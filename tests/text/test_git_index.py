"""The index of git as strangers may write it: read to its end, or refused."""

import struct
from pathlib import Path

import pytest

from muster.text.document_tree import Unreadable
from muster.text.git_index import tracked_files

DIGEST = b"\x11" * 20
LINK = struct.pack(">4sI", b"link", len(DIGEST)) + DIGEST


def write(root: Path, name: str, version: int, entries: int, rest: bytes) -> None:
    (root / ".git").mkdir(exist_ok=True)
    head = struct.pack(">4sII", b"DIRC", version, entries)
    (root / ".git" / name).write_bytes(head + rest + bytes(20))


def test_a_shared_index_that_names_itself_is_read_once(tmp_path: Path) -> None:
    for name in ("index", f"sharedindex.{DIGEST.hex()}"):
        write(tmp_path, name, 2, 0, LINK)
    assert tracked_files(tmp_path) == []


def test_names_that_grow_without_end_are_refused(tmp_path: Path) -> None:
    entry = bytes(60) + struct.pack(">H", 1) + b"\0" + b"a" * 50 + b"\0"  # goes on where the name before it ended
    write(tmp_path, "index", 4, 200, entry * 200)
    with pytest.raises(Unreadable, match="damaged"):
        tracked_files(tmp_path)
