"""Markers: small files in a folder, each of which names files that wait to be verified.

A marker is removed only for what was verified: it must be the same to the byte, and so must every file that it names.
"""

import json
import os
import stat
from collections.abc import Collection, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from muster.domain.errors import BadFile
from muster.text.document_tree import Unreadable
from muster.text.files import opened, shown
from muster.verify.declaration.verification import Marker, Verification
from muster.verify.sources.source import EMPTY, MAX_BYTES, VerifySnapshot, check_name, place_in, real_place

MAX_MARKER = 64_000  # bytes
_KEYS = ("file", "path", "files", "paths")
_MAX_DEPTH = 4  # lists and objects in each other
NOTHING = sha256(b"").hexdigest()
_REMOVE = "or remove the marker"


def read_markers(folder: Path, root: Path) -> tuple[Marker, ...]:
    """Read every marker of a folder, in the order of their names; raises BadFile for one that names no file."""
    try:
        names = sorted(path.name for path in folder.iterdir() if not path.name.startswith(".") and not path.is_dir())
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise BadFile(shown(folder), f"the marker folder cannot be read: {error.strerror}") from error
    return tuple(_read(folder / name, root) for name in names)


def done_markers(wanted: Verification, snapshot: VerifySnapshot) -> tuple[str, ...]:
    """Name the markers that are as they were read, and all of whose files were verified and are unchanged."""
    root, verified = Path(wanted.root), _verified(snapshot)
    return tuple(marker.path for marker in wanted.markers if _is_done(marker, root, verified))


def clear_markers(wanted: Verification, snapshot: VerifySnapshot, noted: Collection[str] = ()) -> tuple[str, ...]:
    """Remove the markers that are done, and give which; one that was noted as such and is gone was removed before."""
    root, verified = Path(wanted.root), _verified(snapshot)
    return tuple(
        marker.path
        for marker in wanted.markers
        if (_is_done(marker, root, verified) and _remove(marker)) or (marker.path in noted and _is_gone(marker))
    )


def _verified(snapshot: VerifySnapshot) -> dict[str, str]:
    found = {left.path: NOTHING for left in snapshot.left_out if left.why == EMPTY}  # there is nothing to verify
    return found | {file.path: file.digest for file in snapshot.files}


def _read(path: Path, root: Path) -> Marker:
    name = shown(path)
    try:
        data = _bytes_of(path, MAX_MARKER)
        found = tuple(dict.fromkeys(_place(root, file) for file in _named(_text(data))))
    except Unreadable as error:
        raise BadFile(name, error.message) from error
    if not found:
        raise BadFile(name, f"this marker names no file; write a path into it {_REMOVE}")
    return Marker(path=str(path.absolute()), digest=sha256(data).hexdigest(), files=found)


def _bytes_of(path: Path, most: int) -> bytes:
    with opened(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise Unreadable(f"larger than {most:,} bytes, the maximum for such a file")
    return data


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable(f"this marker is not UTF-8; save it as UTF-8 {_REMOVE}") from None


def _named(text: str) -> list[str]:
    """Return the paths that a marker names: JSON, or one a line."""
    start = text.lstrip()[:1]
    if start and start in '{["':
        try:
            return list(_strings(json.loads(text), _MAX_DEPTH))
        except (ValueError, RecursionError):
            if start != "[":  # with which a path may begin
                raise Unreadable(f"this marker begins like JSON but is not valid JSON; correct it {_REMOVE}") from None
    lines = (line.strip() for line in text.split("\n"))
    return [line for line in lines if line and not line.startswith("#")]


def _strings(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, (list, dict)):
        inner = value if isinstance(value, list) else [value[key] for key in _KEYS if key in value]
        for one in inner:
            yield from _strings(one, depth - 1)
    else:
        raise Unreadable(f"a marker names files by strings or lists under {', '.join(_KEYS)}; correct it {_REMOVE}")


def _place(root: Path, name: str) -> str:
    place = place_in(root, name) if name.strip() else None
    if place is None:
        raise Unreadable(f"this marker names {name!r}, which is not below {root}; name a file below it {_REMOVE}")
    check_name(place)
    try:
        mode = (root / place).stat().st_mode
    except OSError:
        message = f"this marker names {name!r}, which does not exist; remove the marker if the file is gone"
        raise Unreadable(message) from None
    if not stat.S_ISREG(mode):
        raise Unreadable(f"this marker names {name!r}, which is not a file; name files {_REMOVE}")
    return place


def _is_done(marker: Marker, root: Path, verified: dict[str, str]) -> bool:
    return all(_is_unchanged(root, file, verified) for file in marker.files) and _is_same(marker)


def _is_unchanged(root: Path, file: str, verified: dict[str, str]) -> bool:
    """Return whether a file is still what was verified."""
    if file not in verified:
        return False
    try:
        data = _bytes_of(real_place(root, file), MAX_BYTES)
    except Unreadable:
        return False
    return sha256(data).hexdigest() == verified[file]


def _is_same(marker: Marker) -> bool:
    try:
        return sha256(_bytes_of(Path(marker.path), MAX_MARKER)).hexdigest() == marker.digest
    except Unreadable:  # gone, or out of reach
        return False


def _is_gone(marker: Marker) -> bool:
    return not os.path.lexists(marker.path)


def _remove(marker: Marker) -> bool:
    try:
        Path(marker.path).unlink()
    except OSError:  # gone, or out of reach: nobody is told that it was removed
        return False
    return True
