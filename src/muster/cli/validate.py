"""`muster validate`: whether suites and verify.yaml are written rightly, with everything that is wrong and where."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import command
from muster.cli.line import Argument, Group
from muster.cli.manner import Manner
from muster.cli.speech import answer, fail_with, warn

if TYPE_CHECKING:
    from muster.formats.flaw import Flaw
    from muster.formats.suite import Examination
    from muster.formats.waves.declaration import Inspection

PathsArgument = Annotated[list[Path], Argument(metavar="PATH...", help="Suites, or folders with suites.")]
AnyPathsArgument = Annotated[
    list[Path], Argument(metavar="PATH...", help="Suites, files with verification agents, or folders with them.")
]


def register(app: Group) -> None:
    """Add the command."""
    command(app, "validate")(validate)


def validate(manner: Manner, paths: AnyPathsArgument) -> int:
    """Say whether suites and verification agents are valid; exit 2 when one is not."""
    from muster.app.views.suites import examination_view
    from muster.app.views.verify import inspection_view

    inspected, examined = _looked_through(paths)
    data = {
        "suites": [examination_view(file, examination) for file, examination in examined.items()],
        "verifications": [inspection_view(inspection) for inspection in inspected],
    }
    flaws = [flaw for examination in examined.values() for flaw in examination.flaws]
    flaws += [flaw for inspection in inspected for flaw in inspection.flaws]
    for doubt in (doubt for examination in examined.values() for doubt in examination.doubts):
        if not manner.json:
            warn(f"warning: {doubt}")
    if flaws:
        return refused(manner, flaws, data)
    lines = [f"{file}: {examination.name}, {cases(examination.cases)}" for file, examination in examined.items()]
    lines += [f"{inspection.file}: {_agents(inspection)}" for inspection in inspected]
    answer(manner, data, lambda console: console.print("\n".join(lines), soft_wrap=True))
    return 0


def _looked_through(paths: list[Path]) -> "tuple[list[Inspection], dict[str, Examination]]":
    """Look through everything that is meant: verification agents, and suites by their files."""
    from muster.formats.waves.declaration import inspect
    from muster.formats.waves.finding import sorted_out

    declarations, suites = sorted_out(paths)
    return [inspect(path) for path in declarations], examinations(suites)


def examinations(paths: list[Path]) -> "dict[str, Examination]":
    """Examine all suites that are meant, by their files."""
    from muster.formats.finding import find_suites
    from muster.formats.reading import shown
    from muster.formats.suite import examine

    return {shown(path): examine(path) for path in find_suites(paths)}


def refused(manner: Manner, flaws: "list[Flaw]", data: Any) -> int:
    """Tell everything that is wrong, and give the exit code for it."""
    if manner.json:
        told = {"code": "bad_file", "message": str(flaws[0]), "suggestions": []}
        return fail_with(manner, told, 2, data)
    for flaw in flaws:
        warn(str(flaw))
    warn(f"error: {len(flaws)} {'flaw' if len(flaws) == 1 else 'flaws'}")
    return 2


def cases(count: int) -> str:
    """Count cases in words."""
    return "1 case" if count == 1 else f"{count:,} cases"


def _agents(inspection: "Inspection") -> str:
    found = inspection.declaration
    agents, waves = (0, 0) if found is None else (len(found.agents), len(found.waves))
    return f"{agents:,} agent{'s' * (agents != 1)} in {waves:,} wave{'s' * (waves != 1)}"
