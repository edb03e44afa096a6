"""`muster doctor`: what is fine on this machine and what is not."""

import asyncio
from typing import TYPE_CHECKING

from rich.text import Text

from muster.app.doctor import examine
from muster.app.project.diagnosis import Diagnosis
from muster.app.views.errors import doctor_error
from muster.app.views.project import doctor_view
from muster.cli.terminal.output import CommonOptions, answer, clean, fail_with

if TYPE_CHECKING:
    from rich.console import Console


MARKS = {"ok": ("✓", "green"), "note": ("·", "yellow"), "broken": ("✗", "red")}


def doctor(common: CommonOptions) -> int:
    """Check settings, agents, store and network; exit 3 if something is broken."""
    report = asyncio.run(examine(common.home))
    findings, broken, data = report.all, report.broken, doctor_view(report)

    def tell(console: "Console") -> None:
        for finding in findings:
            console.print(_line(finding), soft_wrap=True)
            for suggestion in finding.suggestions:
                console.print(f"{'':15}{suggestion}", soft_wrap=True)
        console.print("usable" if not broken else f"{len(broken)} of {len(findings)} checks failed")

    def _line(finding: Diagnosis) -> object:
        mark, colour = MARKS[finding.state]
        return Text.assemble((f"{mark} ", colour), f"{finding.subject:<12} {clean(finding.words)}")

    error = doctor_error(report)
    if common.json and error is not None:
        return fail_with(common, error, 3, data)
    answer(common, data, tell)
    return 0 if error is None else 3
