"""What of an agent's changes counts as a repair of findings. Pure.

No list of files that a checker may read is complete. So the findings must be gone in files that have, of all changes,
only those to files with a finding; whatever else was changed could decide what is found, and is shown apart.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.git.branch_changes import LineChanges, TreeHistory
from muster.git.saved_work import FileChange
from muster.verify.declaration.verification import Verification
from muster.verify.findings.checker_files import checker_files
from muster.verify.findings.finding import Merged
from muster.verify.findings.suppressions import lost_tests, suppressed

PYTEST = "pytest"  # the parser of agents whose findings are failed tests
_MODIFIED = "M"  # as git has it: neither added, deleted, nor another kind of file
_MAX_NAMED = 10  # files in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChanges:
    """Everything that an agent changed in a repository, as git has it."""

    history: TreeHistory
    files: Sequence[FileChange]
    lines: Mapping[str, LineChanges]
    settings: Sequence[str] = ()  # and what else of the repository decides what is checked out, changed meanwhile
    outside: Sequence[str] = ()  # programs and files of checkers that are not in the repository, changed meanwhile
    unknown: str = ""  # why that is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReview:
    """What is taken as a repair, what is looked at apart, and what speaks against a success."""

    taken: tuple[str, ...] = ()  # files with a finding that were changed
    elsewhere: tuple[str, ...] = ()  # other files: not with them the findings must be gone
    decisive: tuple[str, ...] = ()  # known to decide what is found, ever changed: restored
    touched: bool = False  # a file with a finding was changed at all
    refusals: tuple[str, ...] = ()


def review(agent: str, spec: Verification, merged: Sequence[Merged], changes: AgentChanges) -> RepairReview:
    """Return what of the changes of an agent is a repair of what a verification found."""
    checkers = checker_files(spec.verifiers, spec.root, changes.history.known)
    wanted = repairable(spec, merged)
    decisive = [path for path in changes.history.changed if path not in wanted and checkers.decides(path)]
    kept = [file for file in changes.files if file.path not in decisive]
    taken = [file.path for file in kept if file.path in wanted and not checkers.is_run(file.path)]
    return RepairReview(
        taken=tuple(taken),
        elsewhere=tuple(file.path for file in kept if file.path not in taken),
        decisive=tuple(decisive),
        touched=any(file.path in wanted for file in kept),
        refusals=tuple(
            f"{agent} {why}: {_named(names)}" for why, names in _flaws(spec, merged, changes, wanted, decisive) if names
        ),
    )


def repairable(spec: Verification, merged: Iterable[Merged]) -> frozenset[str]:
    """Return the files with a finding; where tests failed and nothing else was found, any verified file may be why."""
    findings = [*merged]
    tests = _test_agents(spec)
    only_tests = bool(findings) and all({*one.by} <= tests for one in findings)
    return frozenset({one.finding.file for one in findings} | ({*spec.files} if only_tests else set()))


def together_with(paths: Sequence[str]) -> str:
    """Return why findings that are gone with all changes, and not with those to their own files, are no success."""
    return (
        f"the findings are gone only together with changes to {_named(paths)}, which could decide what is found: "
        "look at them, then merge"
    )


def _flaws(
    spec: Verification,
    merged: Sequence[Merged],
    changes: AgentChanges,
    wanted: frozenset[str],
    decisive: Sequence[str],
) -> Iterable[tuple[str, Sequence[str]]]:
    """Yield what is no repair, with where it was done."""
    tests = _test_agents(spec)
    failed = [one.finding.rule for one in merged if tests & {*one.by}]
    replaced = [file.path for file in changes.files if file.path in wanted and file.status not in (_MODIFIED, "D")]
    lines = {path: one for path, one in changes.lines.items() if path not in decisive}
    yield "changed what decides about the verification", decisive
    yield "changed settings of the repository, which decide what is checked out", changes.settings
    yield "changed what the commands of checkers name outside of the repository", changes.outside
    yield "may have changed settings of the repository, of which git does not tell", [*filter(None, (changes.unknown,))]
    yield "put something else in the place of a regular file", replaced
    yield "asks checkers to overlook lines of", [*suppressed(lines)]
    yield "renamed, removed or replaced failed tests", [*lost_tests(failed, lines)]


def _test_agents(spec: Verification) -> set[str]:
    return {one.name for one in spec.verifiers if one.parser == PYTEST}


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    return ", ".join(paths[:_MAX_NAMED]) + more
