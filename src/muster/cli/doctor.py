"""`muster doctor`: looks at everything that a run needs, and says what is fine and what is not."""

from typing import TYPE_CHECKING

from muster.cli.frame import command
from muster.cli.line import Group
from muster.cli.manner import Manner
from muster.cli.speech import answer, fail_with

if TYPE_CHECKING:
    from rich.console import Console

MARKS = {"ok": ("✓", "green"), "note": ("·", "yellow"), "broken": ("✗", "red")}


def register(app: Group) -> None:
    """Add the command."""
    command(app, "doctor")(doctor)


def doctor(manner: Manner) -> int:
    """Say what is fine and what is not; exit 3 when broken."""
    import asyncio

    from muster.app.doctor import Diagnosis, examine
    from muster.app.views.doctor import diagnosis_view
    from muster.cli.clean import clean

    findings = asyncio.run(examine(manner.home))
    broken = [finding for finding in findings if finding.state == "broken"]
    data = {"usable": not broken, "findings": [diagnosis_view(finding) for finding in findings]}

    def tell(console: "Console") -> None:
        for finding in findings:
            console.print(_line(finding), soft_wrap=True)
            for suggestion in finding.suggestions:
                console.print(f"{'':15}{suggestion}", soft_wrap=True)
        console.print("usable" if not broken else f"{len(broken)} of {len(findings)} checks failed")

    def _line(finding: Diagnosis) -> "object":
        from rich.text import Text

        mark, colour = MARKS[finding.state]
        return Text.assemble((f"{mark} ", colour), f"{finding.subject:<12} {clean(finding.words)}")

    if manner.json and broken:
        told = {"code": "configuration", "message": broken[0].words, "suggestions": list(broken[0].suggestions)}
        return fail_with(manner, told, 3, data)
    answer(manner, data, tell)
    return 3 if broken else 0
