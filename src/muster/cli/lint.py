"""`muster lint`: what is doubtful in suites that are valid."""

from muster.cli.frame import command
from muster.cli.line import Group
from muster.cli.manner import Manner
from muster.cli.speech import answer, fail_with
from muster.cli.validate import PathsArgument, cases, refused


def register(app: Group) -> None:
    """Add the command."""
    command(app, "lint")(lint)


def lint(manner: Manner, paths: PathsArgument) -> int:
    """Say what is doubtful in suites; exit 1 when anything is, and 2 when a suite is not valid."""
    from muster.app.validation import findings as findings_of
    from muster.app.validation import validate_suites
    from muster.app.views.suites import flaw_view
    from muster.cli.clean import clean

    examined = validate_suites(paths)
    flaws = [flaw for examination in examined.values() for flaw in examination.flaws]
    findings = [finding for file, examination in examined.items() for finding in findings_of(file, examination)]
    data = {"suites": list(examined), "findings": [flaw_view(finding) for finding in findings]}
    lines = [clean(f"{finding} [{finding.code}]") for finding in findings]
    if flaws:
        if lines and not manner.json:
            answer(manner, data, lambda console: console.print("\n".join(lines), soft_wrap=True))
        return refused(manner, flaws, data | {"flaws": [flaw_view(flaw) for flaw in flaws]})
    if manner.json and findings:
        told = {"code": "lint", "message": f"{len(findings)} findings; first: {findings[0]}", "suggestions": []}
        return fail_with(manner, told, 1, data)
    lines = lines or [f"{file}: {cases(examination.cases)}, clean" for file, examination in examined.items()]
    answer(manner, data, lambda console: console.print("\n".join(lines), soft_wrap=True))
    return 1 if findings else 0
