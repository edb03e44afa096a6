"""The files that git knows in a working tree, by its index. Git itself is not asked: features start no processes.

https://git-scm.com/docs/index-format: versions 2 to 4, split indexes and linked worktrees.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path

from muster.text.document_tree import Unreadable
from muster.text.files import opened

MAX_BYTES = 256_000_000
MAX_NAME = 4096  # bytes; names share beginnings in version 4, so that a small index could hold endless ones
_GIT = ".git"
_LINK = b"gitdir:"  # in a file that stands for the folder: a linked worktree, a submodule
_HEADER = struct.Struct(">4sII")
_EXTENSION = struct.Struct(">4sI")
_STAT = 40  # bytes of an entry before its digest
_EXTENDED = 0x4000
_LENGTHS = {False: 20, True: 32}  # of a digest: SHA-1, or SHA-256
_IS_SHA256 = re.compile(rb"^\s*objectformat\s*=\s*sha256", re.IGNORECASE | re.MULTILINE)


def git_folder(root: Path) -> Path:
    """Return the git folder of a working tree, wherever it is."""
    place = root / _GIT
    if not place.is_file():
        return place
    said = place.read_bytes()
    return root / Path(said.removeprefix(_LINK).strip().decode("utf-8", "surrogateescape"))


def common_folder(git: Path) -> Path:
    """Return the git folder that all worktrees of a repository share."""
    try:
        return git / Path((git / "commondir").read_text(encoding="utf-8").strip())
    except OSError:  # only linked worktrees have one
        return git


def tracked_files(root: Path) -> list[str]:
    """Return the files that git knows in a working tree, from its root; raises Unreadable for an unknown index."""
    git = git_folder(root)
    index = git / "index"
    if not index.exists():  # nothing was ever added
        return []
    digest = _LENGTHS[_is_sha256(common_folder(git) / "config")]
    try:
        return [name.decode("utf-8", "surrogateescape") for name in _names(index, digest, splits=True)]
    except (struct.error, ValueError, IndexError):
        raise Unreadable("the index is damaged, or of a later version of git") from None


def _is_sha256(config: Path) -> bool:
    try:
        return _IS_SHA256.search(config.read_bytes()) is not None
    except OSError:
        return False


def _names(index: Path, digest: int, *, splits: bool) -> Iterator[bytes]:
    """Yield the names in an index, and if it `splits` in the one that it is a change of, which names no further one."""
    with opened(index) as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Unreadable(f"the index is larger than {MAX_BYTES:,} bytes")
    mark, version, count = _HEADER.unpack_from(data)
    if mark != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("not an index")
    place, name = _HEADER.size, b""
    for _ in range(count):
        start, place = place, place + _STAT + digest
        flags = int.from_bytes(data[place : place + 2])
        place += 4 if flags & _EXTENDED else 2
        if version == 4:
            dropped, place = _number(data, place)
            end = data.index(b"\0", place)
            name, place = name[: len(name) - dropped] + data[place:end], end + 1
        else:
            end = data.index(b"\0", place)
            name, place = data[place:end], end + 8 - (end - start) % 8  # padded with 1 to 8 NULs
        if len(name) > MAX_NAME:
            raise ValueError("not a name of a file")
        if name:  # else it stands for an entry of the shared index
            yield name
    if splits and (shared := _shared(data, place, digest)):
        yield from _names(index.with_name(f"sharedindex.{shared}"), digest, splits=False)


def _number(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of variable length, and where it ends."""
    byte = data[place]
    number = byte & 0x7F
    while byte & 0x80:
        place += 1
        byte = data[place]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, place + 1


def _shared(data: bytes, place: int, digest: int) -> str:
    """Return the name of the index that this one is a change of; of what it deletes nothing is left out."""
    while place + _EXTENSION.size + digest <= len(data):
        mark, size = _EXTENSION.unpack_from(data, place)
        place += _EXTENSION.size
        if mark == b"link":
            found = data[place : place + digest]
            return found.hex() if any(found) else ""
        place += size
    return ""
