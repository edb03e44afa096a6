"""Where a file lies under the root of what is verified: a path with slashes, or no place at all."""

import os
import unicodedata
from pathlib import Path

from muster.domain.errors import BadFile
from muster.formats.flaw import Unreadable

_NO_TEXT = ("Cc", "Cs")  # control characters, and bytes that are no UTF-8


def place_in(root: Path, name: str | Path) -> str | None:
    """Spell a path relative to the root; None when it, or what it leads to, is not under the root."""
    path = Path(os.path.normpath(root / name))
    try:
        real, base = path.resolve(), root.resolve()
    except (OSError, RuntimeError, ValueError):  # links in a circle, a NUL in the name
        return None
    if not real.is_relative_to(base):
        return None
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return real.relative_to(base).as_posix()  # the root is spelled in another way, through a link


def real_place(root: Path, name: str) -> Path:
    """Give where a file really is; raises Unreadable when that is out of the root."""
    try:
        real = (root / name).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, a NUL in the name
        raise Unreadable("it cannot be found: its links lead in a circle, or this is no path") from error
    if not real.is_relative_to(root.resolve()):
        raise Unreadable("it leads out of the folder that is verified; name a file that lies in it")
    return real


def check_name(path: str) -> None:
    """Refuse a path that cannot be written into a text as one line."""
    if any(unicodedata.category(character) in _NO_TEXT for character in path):
        shown = path.encode("unicode_escape").decode("ascii")
        raise BadFile(shown, "its name has a control character, or is no UTF-8; rename it")
