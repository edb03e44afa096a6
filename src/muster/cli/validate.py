"""`muster validate`: whether suites are written rightly, with everything that is wrong and where."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muster.cli.frame import command
from muster.cli.manner import Manner
from muster.cli.speech import answer, fail_with, warn

if TYPE_CHECKING:
    from muster.formats.flaw import Flaw
    from muster.formats.suite import Examination

PathsArgument = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Suites, or folders with suites.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "validate")(validate)


def validate(manner: Manner, paths: PathsArgument) -> int:
    """Say whether suites are valid; exit 2 when one is not."""
    found = examinations(paths)
    data = {"suites": [{"file": file, **_told(examination)} for file, examination in found.items()]}
    flaws = [flaw for examination in found.values() for flaw in examination.flaws]
    if flaws:
        return refused(manner, flaws, data)
    for doubt in (doubt for examination in found.values() for doubt in examination.doubts):
        if not manner.json:
            warn(f"warning: {doubt}")
    lines = [f"{file}: {examination.name}, {cases(examination.cases)}" for file, examination in found.items()]
    answer(manner, data, lambda console: console.print("\n".join(lines), soft_wrap=True))
    return 0


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


def flaw_json(flaw: "Flaw") -> dict[str, Any]:
    """Give a flaw or a finding as JSON."""
    told = {"file": flaw.file, "line": flaw.line, "case": flaw.case or None, "message": flaw.message}
    return told | ({"code": flaw.code} if flaw.code else {})


def _told(examination: "Examination") -> dict[str, Any]:
    return {
        "name": examination.name,
        "cases": examination.cases,
        "flaws": [flaw_json(flaw) for flaw in examination.flaws],
        "warnings": [flaw_json(flaw) for flaw in examination.doubts],
    }
