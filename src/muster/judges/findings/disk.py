"""What is asked of the disk for a checker: whether files are as they were, and how many lines others have.

Everything here is a value that can stand in the journal; nothing is raised.
"""

from collections.abc import Iterable, Mapping
from hashlib import file_digest
from pathlib import Path

from muster.domain.canonical import Json

MOST_CHANGED = 20  # that are named
MOST_PLACES = 2_000  # files besides the verified ones that are looked at
_BLOCK = 1 << 20


def changed(root: str, digests: Mapping[str, str]) -> list[str]:
    """Name the files whose bytes are not what they were."""
    found = []
    for path, digest in digests.items():
        if _digest(Path(root) / path) != digest:
            found.append(path)
            if len(found) == MOST_CHANGED:
                break
    return found


def places(root: str, paths: Iterable[str]) -> dict[str, Json]:
    """Find files by the paths that a checker gives: each with its path below the root, and its number of lines."""
    top = _real(Path(root))
    found: dict[str, Json] = {}
    for path in sorted(set(paths))[:MOST_PLACES]:
        real = None if top is None else _real(Path(root) / path)
        if real is None or top is None or not real.is_relative_to(top) or not real.is_file():
            found[path] = None
        else:
            lines = _lines(real)
            found[path] = None if lines is None else [real.relative_to(top).as_posix(), lines]
    return found


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _real(path: Path) -> Path | None:
    try:
        return path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):  # not there, a NUL in it, a loop of links
        return None


def _lines(path: Path) -> int | None:
    count, last = 0, b"\n"
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                count, last = count + block.count(b"\n"), block[-1:]
    except OSError:
        return None
    return count + (last != b"\n")
