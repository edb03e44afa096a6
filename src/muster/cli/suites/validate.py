"""`muster validate`: whether suites, chains and verify.yaml are valid, with everything that is wrong and where."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from muster.app.project.files import Project
from muster.app.project.validation import ChainInspection, CouncilInspection, Inspection, Linted, Validated
from muster.app.views.errors import lint_error, validation_error
from muster.app.views.project import linted_view, validated_view
from muster.cli.line import Argument
from muster.cli.terminal.output import CommonOptions, answer, clean, fail, fail_with, warn
from muster.domain.errors import NotFound
from muster.text.words import count

PathsArgument = Annotated[list[Path], Argument(metavar="PATH…", help="Suites, or folders with suites.")]
AnyPathsArgument = Annotated[
    list[Path], Argument(metavar="PATH…", help="Suites, chains, councils, verification agents, or folders with them.")
]


def validate(common: CommonOptions, paths: AnyPathsArgument) -> int:
    """Check suites, chains, councils and verification agents; exit 2 if one is not valid."""
    found = Project(common.home).validate(paths)
    data = validated_view(found)
    for doubt in found.doubts:
        if not common.json:
            warn(f"warning: {doubt}")
    if found.flaws:
        return _refuse(common, found, data, found.missing)
    if found.missing:
        any_found = found.suites or found.verifications or found.chains or found.councils
        return fail(common, _not_found(found.missing), data if any_found else None)
    lines = [f"{file}: {examination.name}, {cases(examination.cases)}" for file, examination in found.suites.items()]
    lines += [f"{inspection.file}: {_agents(inspection)}" for inspection in found.verifications]
    lines += [f"{inspection.file}: {_steps(inspection)}" for inspection in found.chains]
    lines += [f"{inspection.file}: {_members(inspection)}" for inspection in found.councils]
    answer(common, data, lambda console: console.print("\n".join(lines), soft_wrap=True))
    return 0


def _not_found(missing: Sequence[NotFound]) -> NotFound:
    """Return one error that tells of every path at which there is nothing."""
    if len(missing) == 1:
        return missing[0]
    suggestions = tuple(dict.fromkeys(one for error in missing for one in error.suggestions))
    return NotFound("; ".join(error.message for error in missing), suggestions=suggestions)


def _refuse(common: CommonOptions, found: Validated | Linted, data: Any, missing: Sequence[NotFound] = ()) -> int:
    """Print everything that is wrong, and give the exit code for it."""
    told, flaws = validation_error(found, missing), found.flaws
    if common.json and told is not None:
        return fail_with(common, told, 2, data)
    for flaw in flaws:
        warn(str(flaw))
    for error in missing:
        warn(f"error: {error.message}")
    warn(f"error: {len(flaws)} {'problem' if len(flaws) == 1 else 'problems'}")
    return 2


def cases(count: int) -> str:
    """Count cases in words."""
    return "1 case" if count == 1 else f"{count:,} cases"


def _agents(inspection: Inspection) -> str:
    found = inspection.declaration
    agents, waves = (0, 0) if found is None else (len(found.agents), len(found.waves))
    return f"{agents:,} agent{'s' * (agents != 1)} in {waves:,} wave{'s' * (waves != 1)}"


def _steps(inspection: ChainInspection) -> str:
    found = inspection.chain
    return "" if found is None else f"chain {found.name}, {count(len(found.steps), 'step')}"


def _members(inspection: CouncilInspection) -> str:
    found = inspection.policy
    if found is None:
        return ""
    return f"council of {count(len(found.members), 'agent')}" + (" and a moderator" if found.moderator else "")


def lint(common: CommonOptions, paths: PathsArgument) -> int:
    """Report weaknesses in suites; exit 1 if there are any, 2 if a suite is not valid."""
    found = Project(common.home).lint(paths)
    data, findings = linted_view(found), found.findings
    lines = [clean(f"{finding} [{finding.code}]") for finding in findings]
    if found.flaws:
        if lines and not common.json:
            answer(common, data, lambda console: console.print("\n".join(lines), soft_wrap=True))
        return _refuse(common, found, data)
    error = lint_error(found)
    if common.json and error is not None:
        return fail_with(common, error, 1, data)
    lines = lines or [f"{file}: {cases(examination.cases)}, clean" for file, examination in found.suites.items()]
    answer(common, data, lambda console: console.print("\n".join(lines), soft_wrap=True))
    return 0 if error is None else 1
