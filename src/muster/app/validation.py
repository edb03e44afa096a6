"""Files that people write, checked: suites, verification agents, and what is doubtful in them. No store is opened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.domain.errors import BadArgument
from muster.formats.finding import find_suites
from muster.formats.flaw import Flaw
from muster.formats.lint import lint
from muster.formats.source import shown
from muster.formats.starter import starter as suite_starter
from muster.formats.suite import Examination, examine
from muster.formats.values import is_kebab
from muster.formats.waves.declaration import Inspection, inspect
from muster.formats.waves.defaults import starter as verify_starter
from muster.formats.waves.finding import sorted_out

__all__ = [
    "Examination",
    "Flaw",
    "Inspection",
    "Validated",
    "findings",
    "is_kebab",
    "starter",
    "validate",
    "validate_suites",
]

STARTERS = ("suite", "verify")  # what `starter` makes


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """Suites by their files, and files with verification agents, each with what is wrong in it."""

    suites: Mapping[str, Examination]
    verifications: Sequence[Inspection]

    @property
    def flaws(self) -> Sequence[Flaw]:
        """Return everything that is wrong."""
        found = [flaw for examination in self.suites.values() for flaw in examination.flaws]
        return [*found, *(flaw for inspection in self.verifications for flaw in inspection.flaws)]

    @property
    def doubts(self) -> Sequence[Flaw]:
        """Return what is doubtful."""
        return [doubt for examination in self.suites.values() for doubt in examination.doubts]


def validate(paths: Sequence[Path]) -> Validated:
    """Look through suites, files with verification agents, and folders with them."""
    declarations, suites = sorted_out(paths)
    return Validated(suites=validate_suites(suites), verifications=[inspect(path) for path in declarations])


def validate_suites(paths: Sequence[Path]) -> Mapping[str, Examination]:
    """Look through suites and folders with suites; returns what is wrong by file."""
    return {shown(path): examine(path) for path in find_suites(paths)}


def findings(file: str, examination: Examination) -> Sequence[Flaw]:
    """Return what is doubtful in a suite; of one that is not valid, what can be told all the same."""
    return examination.doubts if examination.flaws else lint(Path(file))


def starter(kind: str, name: str) -> Mapping[str, str]:
    """Return the files of a folder to begin with: a small suite, or the verification agents that are shipped."""
    if kind not in STARTERS:
        remedies = tuple(f"--kind {known}" for known in STARTERS)
        raise BadArgument(f"there is no kind {kind!r} to begin with", suggestions=remedies)
    if not is_kebab(name):
        raise BadArgument(f"{name!r} is no kebab-case: small letters and digits, with single hyphens between")
    return verify_starter() if kind == "verify" else suite_starter(name)
