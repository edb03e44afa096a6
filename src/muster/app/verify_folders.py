"""Which files of a folder are verified: what git lists, or else all that is there and was written by its people."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from muster.domain.errors import BadFile
from muster.domain.verification import LeftOut

OWN = ".muster"  # the store and its markers are never what is verified
_VENDORED = frozenset({"node_modules", "bower_components", "vendor", "third_party", "site-packages"})
_MADE = frozenset({"__pycache__", "dist", "build", "target", "htmlcov", "__pypackages__"})
_ENVIRONMENT = "pyvenv.cfg"
_HIDDEN = "a hidden folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The files below a folder; a folder that is left out is told once, and ends with a slash."""

    files: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()


def among(paths: Iterable[str], place: str) -> Found:
    """Sort out what git lists below a folder; what lies in a vendored one is left out."""
    files: list[str] = []
    left_out: dict[str, LeftOut] = {}
    for path in without_own(paths):
        folder = _vendored(path, place)
        if folder:
            left_out.setdefault(folder, LeftOut(path=folder, why="vendored"))
        else:
            files.append(path)
    return Found(files=tuple(files), left_out=tuple(left_out.values()))


def walk(root: Path, place: str) -> Found:
    """Find the files below a folder that is in no repository."""
    files: list[str] = []
    left_out: list[LeftOut] = []
    for found in _walked(root, root / place):
        if isinstance(found, LeftOut):
            left_out.append(found)
        else:
            files.append(found)
    return Found(files=tuple(files), left_out=tuple(left_out))


def without_own(paths: Iterable[str]) -> list[str]:
    """Take out what is Muster's own."""
    return [path for path in paths if not path.startswith(f"{OWN}/")]


def _vendored(path: str, place: str) -> str:
    """Give the folder, below the one that was named, that others wrote; empty when there is none."""
    parts = path.split("/")
    skipped = 0 if place == "." else place.count("/") + 1
    for number, part in enumerate(parts[:-1]):
        if number >= skipped and part in _VENDORED:
            return "/".join(parts[: number + 1]) + "/"
    return ""


def _walked(root: Path, top: Path) -> Iterator[str | LeftOut]:
    for base, folders, files in os.walk(top, onerror=_refused):
        kept = []
        for name in sorted(folders):
            why = _why_not(Path(base, name))
            if not why:
                kept.append(name)
            elif name != OWN:
                yield LeftOut(path=_spelled(root, Path(base, name)) + "/", why=why)
        folders[:] = kept
        for name in files:
            path = Path(base, name)
            spelled = _spelled(root, path)
            yield LeftOut(path=spelled, why="a symbolic link") if path.is_symlink() else spelled


def _why_not(folder: Path) -> str:
    """Say why a folder is not walked; empty when it is."""
    if folder.is_symlink():
        return "a symbolic link"
    if folder.name in _VENDORED:
        return "vendored"
    if folder.name in _MADE:
        return "made by programs"
    if (folder / _ENVIRONMENT).exists():
        return "a virtual environment"
    return _HIDDEN if folder.name.startswith(".") else ""


def _spelled(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _refused(error: OSError) -> None:
    """Tell of a folder that cannot be read; to pass over it would be to verify less than was asked for."""
    raise BadFile(str(error.filename), f"the folder cannot be read: {error.strerror}") from error
