"""Finds the suites that a person means by files and folders."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from muster.domain.errors import BadFile, NotFound
from muster.formats.flaw import Unreadable
from muster.formats.readers import READERS
from muster.formats.source import byte_lines, opened, shown

NAME = "cases"
# In YAML written as JSON it may be indented; then it is in quotes.
_VERSION = re.compile(rb"(?:\{\s*)?[\"']?schema_version[\"']?\s*[:=]|\s+\"schema_version\"\s*:")
_MOST_LINE = 8_000_000


def find_suites(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Give the suite files, each once; raises NotFound when a path is missing or holds none."""
    found: dict[Path, Path] = {}  # by where they really are
    for path in paths:
        for file in _suites_of(path):
            found.setdefault(file.resolve(), file)
    return tuple(found.values())


def _suites_of(path: Path) -> list[Path]:
    if not path.exists():
        raise NotFound(f"there is no {path}")
    if not path.is_dir():
        if path.suffix.lower() not in READERS:
            raise BadFile(shown(path), f"a suite is one of {', '.join(READERS)}")
        return [path]
    found = sorted(file for file in _files_below(path) if _is_suite(file))
    if not found:
        kinds = " ".join(f"{NAME}{kind}" for kind in READERS)
        raise NotFound(
            f"there is no suite in {path}: no {kinds}, and no other such file with schema_version at its top",
            suggestions=("muster init NAME makes one",),
        )
    return found


def _files_below(folder: Path) -> Iterator[Path]:
    for base, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(base, name) for name in files if Path(name).suffix.lower() in READERS)


def _is_suite(file: Path) -> bool:
    """Look for the one key that makes a file a suite; one that is called so is a suite even when it is broken."""
    if file.stem.lower() == NAME:
        return True
    if file.name.startswith("."):
        return False
    try:
        with opened(file) as stream:
            return any(_VERSION.match(line) for line in byte_lines(stream, _MOST_LINE))
    except Unreadable:
        return False
