"""Files that people write, checked: suites, verification agents and chains, with what is doubtful. Opens no store."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.app.base.file_kinds import (
    CHAIN_STEM,
    COUNCIL_STEM,
    SUITE_STEM,
    VERIFY_STEM,
    is_chain,
    is_council,
    is_declaration,
)
from muster.app.project.kinds import STARTERS
from muster.councils.policy import CouncilInspection, inspect_policy
from muster.councils.policy import starter as council_starter
from muster.domain.errors import BadArgument, NotFound
from muster.pool.chains.reading import ChainInspection, inspect_chain
from muster.pool.chains.reading import starter as chain_starter
from muster.suites.format.discovery import find_suites, require_narrow
from muster.suites.format.lint import lint as lint_file
from muster.suites.format.starter import starter as suite_starter
from muster.suites.format.suite import Examination, examine
from muster.text.document_tree import Flaw
from muster.text.documents.readers import READERS
from muster.text.files import shown
from muster.text.forms import is_kebab
from muster.text.words import choice_error
from muster.verify.declaration.declaration import Inspection, inspect
from muster.verify.declaration.declaration import starter as verify_starter

__all__ = [
    "ChainInspection",
    "CouncilInspection",
    "Examination",
    "Flaw",
    "Inspection",
    "Linted",
    "Validated",
    "lint",
    "starter",
    "validate",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """Suites by their files, files with verification agents, and chains, each with what is wrong in it."""

    suites: Mapping[str, Examination]
    verifications: Sequence[Inspection]
    chains: Sequence[ChainInspection] = ()
    councils: Sequence[CouncilInspection] = ()
    missing: Sequence[NotFound] = ()  # paths at which there is nothing to look through

    @property
    def flaws(self) -> Sequence[Flaw]:
        """Return everything that is wrong."""
        found = [flaw for examination in self.suites.values() for flaw in examination.flaws]
        found += [flaw for inspection in self.verifications for flaw in inspection.flaws]
        found += [flaw for inspection in self.chains for flaw in inspection.flaws]
        return [*found, *(flaw for inspection in self.councils for flaw in inspection.flaws)]

    @property
    def doubts(self) -> Sequence[Flaw]:
        """Return what is doubtful."""
        return [doubt for examination in self.suites.values() for doubt in examination.doubts]


def validate(paths: Sequence[Path]) -> Validated:
    """Look through suites, files with verification agents, chains, and folders with them."""
    declarations: dict[Path, Path] = {}  # by where they really are
    chains: dict[Path, Path] = {}  # the same
    councils: dict[Path, Path] = {}  # the same
    suites: list[Path] = []
    missing: list[NotFound] = []
    for path in paths:
        here = chain_files(path)
        chains |= {file.resolve(): file for file in here if file.resolve() not in chains}
        policies = policy_files(path)
        councils |= {file.resolve(): file for file in policies if file.resolve() not in councils}
        if path in (here or policies):
            continue
        try:
            files, below = sorted_out([path])
        except NotFound as error:  # the others are looked through all the same
            if not here and not policies:
                missing.append(error)
            continue
        declarations |= {file.resolve(): file for file in files if file.resolve() not in declarations}
        suites += below
    return Validated(
        suites=validate_suites(suites) if suites else {},
        verifications=[inspect(path) for path in declarations.values()],
        chains=[inspect_chain(path) for path in chains.values()],
        councils=[inspect_policy(path) for path in councils.values()],
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
        raise BadArgument(choice_error(STARTERS, kind), argument="kind")
    if not is_kebab(name):
        raise BadArgument(f"must be in kebab-case, such as code-reviewer, not {name!r}", argument="the name")
    return _MAKERS[kind](name)


_MAKERS: Mapping[str, Callable[[str], Mapping[str, str]]] = dict(
    zip(STARTERS, (suite_starter, lambda name: verify_starter(), chain_starter, council_starter), strict=True)
)


def chain_files(path: Path) -> list[Path]:
    """Return the chains that a path means: the file, or those in a folder that are called chain.yaml."""
    if path.is_dir():
        require_narrow(path)
        return _named_below(path, CHAIN_STEM)
    return [path] * is_chain(path)


def policy_files(path: Path) -> list[Path]:
    """Return the policies of councils that a path means: the file, or those in a folder; by their name alone."""
    if path.is_dir():
        return _named_below(path, COUNCIL_STEM)
    return [path] * is_council(path)


def sorted_out(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the files with verification agents that are meant, each once, and those with suites.

    Raises NotFound for a path that is missing, or a folder with neither in it.
    """
    found: dict[Path, Path] = {}  # by where they really are
    suites: list[Path] = []
    for path in paths:
        if path.is_dir():
            require_narrow(path)
        here = _named_below(path, VERIFY_STEM) if path.is_dir() else [path] * is_declaration(path)
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
            f"nothing to validate in {path}: no suite ({SUITE_STEM}.yaml, or a file with schema_version at its top), "
            f"no chain ({CHAIN_STEM}.yaml) and no verification agents ({VERIFY_STEM}.yaml)",
            suggestions=("muster init NAME", "muster init NAME --kind chain", "muster init NAME --kind verify"),
        ) from error


def _named_below(folder: Path, stem: str) -> list[Path]:
    found = []
    for base, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(base, name) for name in files if Path(name).stem.lower() == stem]
    return sorted(file for file in found if file.suffix.lower() in READERS)
