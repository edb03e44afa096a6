"""Finds the suites below folders. Whatever looks like a suite is one, so that none is left out for a misspelt key.

Hidden and linked folders are searched too; left alone are those of version control, of packages and of Muster itself,
and what git ignores and does not know.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from muster.domain.errors import BadArgument, BadFile, NotFound
from muster.suites.format.recognition import JSON, NAME, has_case_line, has_suite, is_json_suite, is_lock, is_suite
from muster.text.document_tree import Unreadable
from muster.text.documents.readers import READERS
from muster.text.files import opened, shown
from muster.text.git_ignore import IgnoredPaths

MAX_OTHER_FILES = 5_000  # files that are looked into and are not suites, before a folder is refused as too large
_LEFT_ALONE = frozenset({".git", ".hg", ".svn", ".muster", ".venv", "node_modules", "__pycache__"})
_ENVIRONMENT = "pyvenv.cfg"  # in the folder of a virtual environment, whatever its name
_HOME = re.compile(rb"\s*home\s*=")  # a line of it, without which it is none
_MAX_OF_ENVIRONMENT = 10_000  # bytes
# Ends of names that are nearly those of suites.
_MISSPELT = frozenset(
    {".ymal", ".yalm", ".yamel", ".yamll", ".yam", ".yaml1", ".yamls", ".ym", ".yl", ".tolm", ".tom", ".json5"}
)
_TEXT = ".txt"  # which editors append
_LINES = f"{NAME}.jsonl"


def find_suites(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the suite files, each once; raises NotFound when a path is missing or holds none."""
    found: dict[Path, Path] = {}  # by where they really are
    for path in paths:
        for file in _suites_of(path):
            found.setdefault(file.resolve(), file)
    return tuple(found.values())


def _suites_of(path: Path) -> list[Path]:
    if not path.exists():
        raise NotFound(f"no such file or folder: {path}")
    if not path.is_dir():
        if path.suffix.lower() not in READERS:
            raise BadFile(shown(path), f"the name of a suite must end in one of {', '.join(READERS)}")
        return [path]
    require_narrow(path)
    found = sorted(_suites_below(path))
    if not found:
        raise NotFound(
            f"no suite in {path}: no {NAME}.yaml, and no other YAML or TOML file with schema_version at its top",
            suggestions=("create one: muster init NAME",),
        )
    return found


def _suites_below(folder: Path) -> Iterator[Path]:
    others = 0
    for file in _Search(folder).files():
        if file.suffix.lower() not in READERS:
            _require_no_suite(file)
        elif is_suite(file):
            yield file
        else:
            others += 1
        if others > MAX_OTHER_FILES:
            raise _too_wide(folder, f"has more than {MAX_OTHER_FILES:,} YAML and TOML files that are not suites")


def require_narrow(folder: Path) -> None:
    """Refuse the root of the file system: nobody means every file on the machine."""
    if folder.resolve() == Path(folder.resolve().anchor):
        raise _too_wide(folder, "is the root of the file system")


def _too_wide(folder: Path, why: str) -> BadArgument:
    return BadArgument(f"{folder} {why}", suggestions=("name the folder with your suites, or the files themselves",))


class _Search:
    """Finds the files below a folder that may be suites."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ignored = IgnoredPaths(folder)
        self._seen = {folder.resolve()}
        self._passed_over = False  # whether anything was left out since git ignores it

    def files(self) -> Iterator[Path]:
        """Yield the files; links are followed, but to no folder twice and to none above."""
        searched = set()
        for base, folders, files in os.walk(self._folder, followlinks=True, onerror=_refuse):
            here = Path(base)
            folders.sort(key=lambda name: ((here / name).is_symlink(), name))
            folders[:] = [name for name in folders if self._is_searched(here / name)]
            wanted = [here / name for name in files if _may_be_suite(name) or _is_lost_folder(here / name)]
            found = [file for file in wanted if not self._is_ignored(file, is_folder=False) and _is_readable(file)]
            searched.update(found)
            yield from found
        if self._passed_over:
            yield from (file for file in self._tracked() if file not in searched and _is_readable(file))

    def _tracked(self) -> Iterator[Path]:
        """Yield what git knows, though its rules say that it is ignored, such as after `git add --force`."""
        try:
            names = self._ignored.tracked_below()
        except Unreadable as error:
            words = f"it is unknown which of the files that git ignores it knows: {error.message}"
            raise BadFile(shown(self._folder), words) from None
        for name in filter(_may_be_suite, names):
            file = self._folder / name
            if os.path.lexists(file) and not any(map(self._is_left_alone, file.parents[: name.count("/")])):
                yield file

    def _is_searched(self, folder: Path) -> bool:
        if self._is_left_alone(folder) or self._is_ignored(folder, is_folder=True):
            return False
        real = folder.resolve()
        if real in self._seen or self._folder.resolve().is_relative_to(real):
            return False
        self._seen.add(real)
        return True

    def _is_left_alone(self, folder: Path) -> bool:
        return folder.name in _LEFT_ALONE or _is_environment(folder / _ENVIRONMENT)

    def _is_ignored(self, path: Path, *, is_folder: bool) -> bool:
        ignored = self._ignored.has(path, is_folder=is_folder)
        self._passed_over = self._passed_over or ignored
        return ignored


def _is_environment(file: Path) -> bool:
    try:
        with opened(file) as stream:
            return any(map(_HOME.match, stream.read(_MAX_OF_ENVIRONMENT).splitlines()))
    except Unreadable:
        return False


def _refuse(error: OSError) -> None:
    raise BadFile(str(error.filename), f"cannot be searched for suites: {error.strerror}") from error


def _may_be_suite(name: str) -> bool:
    return Path(name).suffix.lower() in (*READERS, JSON) or _is_misnamed(name) or name.lower() == _LINES


def _is_lost_folder(path: Path) -> bool:
    """Return whether it is a link to nowhere that may have led to a folder."""
    return not path.suffix and path.is_symlink() and not path.exists()


def _is_misnamed(name: str) -> bool:
    """Return whether the end of a name is nearly that of a suite: cases.ymal, cases.yaml.txt."""
    inner, ending = Path(name.lower().removesuffix(_TEXT)).suffix, Path(name).suffix.lower()
    return inner in READERS or ending in _MISSPELT


def _is_readable(file: Path) -> bool:
    """Return whether it is a regular file; raises BadFile for anything else that may stand for a suite."""
    if file.is_file():
        return True
    named = file.stem.lower() == NAME
    if is_lock(file.name) or not (named or file.suffix.lower() in ("", *READERS)):
        return False
    what = "a link to what does not exist" if file.is_symlink() else "not a regular file"
    why = "has the name of a suite, and is" if named else "may stand for suites, and is"
    raise BadFile(shown(file), f"{why} {what}", suggestions=("remove or rename it",))


def _require_no_suite(file: Path) -> None:
    """Refuse a suite that would not be read for its name; other files are none of ours."""
    if _is_hidden_suite(file):
        name = file.name[: -len(_TEXT)] if file.name.lower().endswith(_TEXT) else file.with_suffix(".yaml").name
        way = f"rename it to {name}" + (": JSON is YAML too" if file.suffix.lower() == JSON else "")
        words = f"looks like a suite, and the name of a suite must end in one of {', '.join(READERS)}"
        raise BadFile(shown(file), words, suggestions=(way,))


def _is_hidden_suite(file: Path) -> bool:
    if file.suffix.lower() == JSON:
        return is_json_suite(file)
    if file.name.lower() == _LINES:
        return has_case_line(file)
    return file.name.lower().partition(".")[0] == NAME or has_suite(file)
