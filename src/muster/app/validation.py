"""Files that people write, checked: suites, verification agents and chains, with what is doubtful. Opens no store."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.domain.errors import BadArgument, NotFound
from muster.pool.chains.reading import ChainInspection, inspect_chain
from muster.pool.chains.reading import starter as chain_starter
from muster.suites.format.lint import lint as lint_file
from muster.suites.format.reading import find_suites, require_narrow
from muster.suites.format.starter import starter as suite_starter
from muster.suites.format.suite import Examination, examine
from muster.text.documents.readers import READERS
from muster.text.documents.tree import Flaw, Unreadable
from muster.text.files import byte_lines, opened, shown
from muster.text.forms import is_kebab
from muster.text.words import one_of
from muster.verify.declaration.declaration import Inspection, inspect
from muster.verify.declaration.declaration import starter as verify_starter

__all__ = [
    "ChainInspection",
    "Examination",
    "Flaw",
    "Inspection",
    "Linted",
    "Validated",
    "lint",
    "starter",
    "validate",
]


STARTERS = ("suite", "verify", "chain")  # what `starter` makes


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """Suites by their files, files with verification agents, and chains, each with what is wrong in it."""

    suites: Mapping[str, Examination]
    verifications: Sequence[Inspection]
    chains: Sequence[ChainInspection] = ()
    missing: Sequence[NotFound] = ()  # paths at which there is nothing to look through

    @property
    def flaws(self) -> Sequence[Flaw]:
        """Return everything that is wrong."""
        found = [flaw for examination in self.suites.values() for flaw in examination.flaws]
        found += [flaw for inspection in self.verifications for flaw in inspection.flaws]
        return [*found, *(flaw for inspection in self.chains for flaw in inspection.flaws)]

    @property
    def doubts(self) -> Sequence[Flaw]:
        """Return what is doubtful."""
        return [doubt for examination in self.suites.values() for doubt in examination.doubts]


def validate(paths: Sequence[Path]) -> Validated:
    """Look through suites, files with verification agents, chains, and folders with them."""
    declarations: dict[Path, Path] = {}  # by where they really are
    chains: dict[Path, Path] = {}  # the same
    suites: list[Path] = []
    missing: list[NotFound] = []
    for path in paths:
        here = chain_files(path)
        chains |= {file.resolve(): file for file in here if file.resolve() not in chains}
        if here == [path]:
            continue
        try:
            files, below = sorted_out([path])
        except NotFound as error:  # the others are looked through all the same
            if not here:
                missing.append(error)
            continue
        declarations |= {file.resolve(): file for file in files if file.resolve() not in declarations}
        suites += below
    return Validated(
        suites=validate_suites(suites) if suites else {},
        verifications=[inspect(path) for path in declarations.values()],
        chains=[inspect_chain(path) for path in chains.values()],
        missing=missing,
    )


def validate_suites(paths: Sequence[Path]) -> Mapping[str, Examination]:
    """Look through suites and folders with suites; returns what is wrong by file."""
    return {shown(path): examine(path) for path in find_suites(paths)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """Suites by their files, and what is doubtful in them; of one that is not valid, what can be told all the same."""

    suites: Mapping[str, Examination]
    findings: Sequence[Flaw]

    @property
    def flaws(self) -> Sequence[Flaw]:
        """Return what keeps suites from being valid."""
        return [flaw for examination in self.suites.values() for flaw in examination.flaws]


def lint(paths: Sequence[Path]) -> Linted:
    """Find weak spots of suites."""
    examined = validate_suites(paths)
    findings = [
        flaw for file, found in examined.items() for flaw in (found.doubts if found.flaws else lint_file(Path(file)))
    ]
    return Linted(suites=examined, findings=findings)


def starter(kind: str, name: str) -> Mapping[str, str]:
    """Return the files of a folder to begin with: a small suite, a chain, or the shipped verification agents."""
    if kind not in STARTERS:
        raise BadArgument(f"the kind must be {one_of(STARTERS)}, not {kind!r}")
    if not is_kebab(name):
        raise BadArgument(f"the name must be in kebab-case, such as code-reviewer, not {name!r}")
    if kind == "chain":
        return chain_starter(name)
    return verify_starter() if kind == "verify" else suite_starter(name)


STEM, CHAIN_STEM = "verify", "chain"
_MOST_LINE = 4_000_000
# At the top of YAML, of YAML written as JSON, and of TOML; `[agents.NAME]` is how muster.toml declares others.
_AGENTS = re.compile(rb"(?:\{?\s*)[\"']agents[\"']\s*:|agents\s*:|\s*\[\[\s*agents\s*\]\]")
_STEPS = re.compile(rb"(?:\{?\s*)[\"']steps[\"']\s*:|steps\s*:|\s*\[\[\s*steps\s*\]\]")
_CASES = re.compile(rb"(?:\{?\s*)[\"']cases[\"']\s*:|cases\s*:|\s*\[\[\s*cases\s*\]\]")


def is_chain(file: Path) -> bool:
    """Return whether a file is a chain: by its name, or by steps and neither cases nor agents of its own at its top."""
    if file.suffix.lower() not in READERS or not file.is_file():
        return False
    return file.stem.lower() == CHAIN_STEM or (_has(file, _STEPS) and not _has(file, _CASES))


def chain_files(path: Path) -> list[Path]:
    """Return the chains that a path means: the file, or those in a folder that are called chain.yaml."""
    if path.is_dir():
        require_narrow(path)
        return _named_below(path, CHAIN_STEM)
    return [path] * is_chain(path)


def is_declaration(file: Path) -> bool:
    """Return whether a file declares verification agents: by its name, or by agents and no cases at its top."""
    if file.suffix.lower() not in READERS or not file.is_file():
        return False
    return file.stem.lower() == STEM or (_has(file, _AGENTS) and not _has(file, _CASES))


def sorted_out(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the files with verification agents that are meant, each once, and those with suites.

    Raises NotFound for a path that is missing, or a folder with neither in it.
    """
    found: dict[Path, Path] = {}  # by where they really are
    suites: list[Path] = []
    for path in paths:
        if path.is_dir():
            require_narrow(path)
        here = _named_below(path, STEM) if path.is_dir() else [path] * is_declaration(path)
        found |= {file.resolve(): file for file in here if file.resolve() not in found}
        if path.is_dir() or not here:
            suites += _suites(path, alone=not here)
    return list(found.values()), suites


def _suites(path: Path, *, alone: bool) -> tuple[Path, ...]:
    try:
        return find_suites([path])
    except NotFound as error:
        if not alone:
            return ()
        if not path.is_dir():
            raise
        raise NotFound(
            f"{error.message}; no {STEM}.yaml with verification agents either",
            suggestions=("muster init NAME", f"muster init NAME --kind {STEM}"),
        ) from error


def _named_below(folder: Path, stem: str) -> list[Path]:
    found = []
    for base, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(base, name) for name in files if Path(name).stem.lower() == stem]
    return sorted(file for file in found if file.suffix.lower() in READERS)


def _has(file: Path, key: re.Pattern[bytes]) -> bool:
    try:
        with opened(file) as stream:
            return any(key.match(line) for line in byte_lines(stream, _MOST_LINE))
    except Unreadable:
        return False
