"""How verifications end: with reports, lines in the log, and nothing left of what was only staged."""

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.app.reports import VerifyReport
from muster.app.verifications import LeftBehind
from muster.app.views.verify import left_behind_view
from muster.cli.driving import Sights
from muster.cli.ending import Outcome
from muster.cli.manner import Manner
from muster.cli.report_files import Reportable, Wanted, write_reports
from muster.cli.speech import note
from muster.cli.verify_sights import WavesSights
from muster.cli.verify_table import tell_left_behind, tell_report
from muster.domain.run import Run

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app import Muster


class WavesEnding:
    """Ends verifications."""

    def sights(self, muster: "Muster") -> Sights:
        """Look at a run while it is driven."""
        return WavesSights(muster)

    def require_places(self, muster: "Muster") -> None:
        """Refuse, before anything is spent, when the reports of waves or the log cannot be written."""
        muster.verify.require_folders()

    async def outcome(self, muster: "Muster", run: Run, wanted: tuple[Wanted, ...], manner: Manner) -> Outcome:
        """Write what a run leaves behind, and sum it up; raises NotFound for one that had not begun."""
        try:
            found = Reportable(report=await muster.report_of(run), reference=run.id)
            left = await muster.verify.leave_behind(run)
            for path in await write_reports(found, wanted):
                note(manner, f"wrote {path}")
        finally:
            muster.verify.tidy(run)
        report = found.report.summary
        assert isinstance(report, VerifyReport)  # noqa: S101  # of a run of the workload `waves`
        return Outcome(
            ok=report.ok,
            verdict=report.verdict,
            data=await _data(found, report, left) if manner.json else {},
            closer=f"muster report {run.id} --format markdown",
            tell=lambda out: _tell(out, report, left, run.id),
        )


async def _data(found: Reportable, report: VerifyReport, left: LeftBehind) -> dict[str, Any]:
    """Give the JSON report as data, with where everything lies."""
    out = io.StringIO()
    await found.write("json", out)
    return {"verified": len(report.files) - len(report.unseen), **json.loads(out.getvalue()), **left_behind_view(left)}


def _tell(console: "Console", report: VerifyReport, left: LeftBehind, reference: str) -> None:
    tell_report(console, report, reference, Path.cwd())
    tell_left_behind(console, left, Path.cwd())
