"""Files that another file names: in its folder or below, never outside of it, and of bounded size."""

import json
from pathlib import Path, PurePosixPath

from muster.domain.canonical import JsonObject
from muster.text.document_tree import Unreadable
from muster.text.files import whole_text
from muster.text.json_documents import flaw_of, json_fault

MAX_BYTES = 1_000_000


def text_beside(folder: Path, name: str) -> str:
    """Read a file by its name below a folder; raises Unreadable when there is none, or it may not be read."""
    path = _path(folder, name)
    try:
        return whole_text(path, MAX_BYTES)
    except Unreadable as error:
        place = name if error.line is None else f"{name}:{error.line}"
        raise Unreadable(f"{place}: {error.message}") from None


def object_beside(folder: Path, name: str) -> JsonObject:
    """Read a file with a JSON object; raises Unreadable for any other."""
    try:
        found = json.loads(text_beside(folder, name))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{name}: not valid JSON: {json_fault(error)}") from None
    if not isinstance(found, dict):
        raise Unreadable(f"{name}: must contain a JSON object")
    if wrong := flaw_of(found):
        raise Unreadable(f"{name}: {wrong}")
    return found


def _path(folder: Path, name: str) -> Path:
    named = PurePosixPath(name)
    if named.is_absolute() or ".." in named.parts or "\0" in name:
        raise Unreadable(f"{name!r} is not allowed: use a file in the folder of this one or below, without ..")
    home = folder.resolve()
    try:
        real = (home / named).resolve()
        is_file = real.is_file()
    except (OSError, RuntimeError):  # a name that is too long, or a link that leads to itself
        is_file = False
    if not is_file:
        raise Unreadable(f"no such file: {name!r} in {home}")
    if not real.is_relative_to(home):
        raise Unreadable(f"{name} is a link that leads out of {home}")
    return real
