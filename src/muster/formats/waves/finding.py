"""Tells files with verification agents from suites, and finds them in folders."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from muster.domain.errors import NotFound
from muster.formats.finding import find_suites
from muster.formats.flaw import Unreadable
from muster.formats.readers import READERS
from muster.formats.source import byte_lines, opened

STEM = "verify"
_MOST_LINE = 4_000_000
# At the top of YAML, of YAML written as JSON, and of TOML; `[agents.NAME]` is how muster.toml declares others.
_AGENTS = re.compile(rb"(?:\{?\s*)[\"']agents[\"']\s*:|agents\s*:|\s*\[\[\s*agents\s*\]\]")
_CASES = re.compile(rb"(?:\{?\s*)[\"']cases[\"']\s*:|cases\s*:|\s*\[\[\s*cases\s*\]\]")


def is_declaration(file: Path) -> bool:
    """Say whether a file declares verification agents: by its name, or since it has agents and no cases at its top."""
    if file.suffix.lower() not in READERS or not file.is_file():
        return False
    return file.stem.lower() == STEM or (_has(file, _AGENTS) and not _has(file, _CASES))


def sorted_out(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Give the files with verification agents that are meant, each once, and those with suites.

    Raises NotFound for a path that is missing, or a folder with neither in it.
    """
    found: dict[Path, Path] = {}  # by where they really are
    suites: list[Path] = []
    for path in paths:
        here = _named_below(path) if path.is_dir() else [path] * is_declaration(path)
        found |= {file.resolve(): file for file in here if file.resolve() not in found}
        if path.is_dir() or not here:
            suites += _suites(path, alone=not here)
    return list(found.values()), suites


def _suites(path: Path, *, alone: bool) -> tuple[Path, ...]:
    try:
        return find_suites([path])
    except NotFound:
        if alone:
            raise
        return ()


def _named_below(folder: Path) -> list[Path]:
    found = []
    for base, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(base, name) for name in files if Path(name).stem.lower() == STEM]
    return sorted(file for file in found if file.suffix.lower() in READERS)


def _has(file: Path, key: re.Pattern[bytes]) -> bool:
    try:
        with opened(file) as stream:
            return any(key.match(line) for line in byte_lines(stream, _MOST_LINE))
    except Unreadable:
        return False
