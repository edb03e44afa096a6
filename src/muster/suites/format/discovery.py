"""Finds the suites below folders. Whatever looks like a suite is one, so that none is left out for a misspelt key.

Hidden and linked folders are searched too; left alone are those of version control, of packages and of Muster itself,
and what git ignores.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from muster.domain.errors import BadArgument, BadFile, NotFound
from muster.text.documents.readers import READERS
from muster.text.documents.tree import Unreadable
from muster.text.files import byte_lines, opened, shown
from muster.text.git_ignore import IgnoredPaths

NAME = "cases"
MOST_OTHERS = 5_000  # files that are looked into and are not suites, before a folder is refused as too large
_MOST_LINE = 8_000_000
_LEFT_ALONE = frozenset({".git", ".hg", ".svn", ".muster", ".venv", "node_modules", "__pycache__"})
_ENVIRONMENT = "pyvenv.cfg"  # in the folder of a virtual environment, whatever its name
_LOCK = ".#"  # of an editor, before the name of the file that it edits
_JSON = ".json"
_MOST_JSON = 65_536  # bytes at the beginning of a JSON file

_KEYS = rb"schema_version|skill_or_agent|cases"
_YAML_KEY = re.compile(rb"[\"']?(?:" + _KEYS + rb")[\"']?\s*:(?:\s|$)")
_TOML_KEY = re.compile(rb"\s*[\"']?(?:" + _KEYS + rb")[\"']?\s*=")
_TOML_CASES = re.compile(rb"\s*\[\[\s*[\"']?cases[\"']?\s*\]\]")
_TOML_TABLE = re.compile(rb"\s*\[")
# In YAML that is written as JSON a key may stand anywhere, in quotes.
_QUOTED_KEY = re.compile(rb"\"(?:schema_version|skill_or_agent)\"\s*:|\"cases\"\s*:\s*(?:\[|$)")
_NOTHING_YET = re.compile(rb"\s*(?:#.*|---\s*(?:#.*)?|%.*)?\s*")


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
    for file in _files_below(folder):
        if file.suffix.lower() == _JSON:
            _require_no_json_suite(file)
        elif _is_suite(file):
            yield file
        else:
            others += 1
        if others > MOST_OTHERS:
            raise _too_wide(folder, f"has more than {MOST_OTHERS:,} YAML and TOML files that are not suites")


def require_narrow(folder: Path) -> None:
    """Refuse the root of the file system: nobody means every file on the machine."""
    if folder.resolve() == Path(folder.resolve().anchor):
        raise _too_wide(folder, "is the root of the file system")


def _too_wide(folder: Path, why: str) -> BadArgument:
    return BadArgument(f"{folder} {why}", suggestions=("name the folder with your suites, or the files themselves",))


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files that may be suites; links are followed, but to no folder twice and to none above."""
    seen = {folder.resolve()}
    ignored = IgnoredPaths(folder)
    for base, folders, files in os.walk(folder, followlinks=True, onerror=_refuse):
        here = Path(base)
        folders.sort(key=lambda name: ((here / name).is_symlink(), name))
        folders[:] = [name for name in folders if _is_searched(here / name, folder, ignored, seen)]
        wanted = (here / name for name in files if Path(name).suffix.lower() in (*READERS, _JSON))
        yield from (file for file in wanted if file.is_file() and not ignored.has(file, is_folder=False))


def _refuse(error: OSError) -> None:
    raise BadFile(str(error.filename), f"cannot be searched for suites: {error.strerror}") from error


def _is_searched(folder: Path, top: Path, ignored: IgnoredPaths, seen: set[Path]) -> bool:
    if folder.name in _LEFT_ALONE or (folder / _ENVIRONMENT).exists() or ignored.has(folder, is_folder=True):
        return False
    real = folder.resolve()
    if real in seen or top.resolve().is_relative_to(real):
        return False
    seen.add(real)
    return True


def _is_suite(file: Path) -> bool:
    """Return whether a file is a suite: by its name, even when it is broken, or by a key of suites at its top."""
    if file.name.startswith(_LOCK):
        return False
    if file.stem.lower() == NAME:
        return True
    try:
        with opened(file) as stream:
            # Of UTF-16, which is refused when it is read, only the letters are looked at.
            lines = (line.replace(b"\0", b"").removeprefix(b"\xff\xfe") for line in byte_lines(stream, _MOST_LINE))
            return _is_toml_suite(lines) if file.suffix.lower() == ".toml" else _is_yaml_suite(lines)
    except Unreadable as error:
        raise BadFile(shown(file), f"it is unknown whether it is a suite: {error.message}", line=error.line) from None


def _is_yaml_suite(lines: Iterator[bytes]) -> bool:
    first = next((line for line in lines if not _NOTHING_YET.fullmatch(line)), b"").removeprefix(b"--- ")
    if first.lstrip().startswith(b"{"):
        return any(_QUOTED_KEY.search(line) for line in chain([first], lines))
    margin = len(first) - len(first.lstrip(b" "))
    return any(_YAML_KEY.match(line, margin) for line in chain([first], lines) if not line[:margin].strip())


def _is_toml_suite(lines: Iterable[bytes]) -> bool:
    at_top = True
    for line in lines:
        if _TOML_CASES.match(line) or (at_top and _TOML_KEY.match(line)):
            return True
        at_top = at_top and not _TOML_TABLE.match(line)
    return False


def _require_no_json_suite(file: Path) -> None:
    """Refuse a suite that would not be read for its name; other JSON is none of ours."""
    if file.stem.lower() == NAME or _is_json_suite(file):
        way = f"rename it to {file.with_suffix('.yaml').name}: JSON is YAML too"
        words = f"looks like a suite, and the name of a suite must end in one of {', '.join(READERS)}"
        raise BadFile(shown(file), words, suggestions=(way,))


def _is_json_suite(file: Path) -> bool:
    try:
        with opened(file) as stream:
            begins = stream.read(_MOST_JSON)
    except Unreadable:
        return False
    return re.search(rb"\"skill_or_agent\"\s*:", begins) is not None and b'"cases"' in begins
