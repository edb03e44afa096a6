"""How verifications end: with reports, lines in the log, and nothing left of what was only staged."""

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.app.verify_office import Whereabouts
from muster.cli.driving import Sights
from muster.cli.ending import Outcome
from muster.cli.manner import Manner
from muster.cli.report_files import Reportable, Wanted, write_reports
from muster.cli.speech import note
from muster.cli.verify_leavings import Leavings, leave_behind
from muster.cli.verify_reports import FORMATS, verify_reports
from muster.cli.verify_sights import WavesSights
from muster.cli.verify_table import tell_leavings, tell_report
from muster.domain.run import TERMINAL, Run
from muster.formats.waves.spec import read_spec
from muster.reports.waves.run import open_waves_run
from muster.reports.waves.summary import VerifyReport, summarize
from muster.reports.writing import require_folder

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app import Muster


class WavesEnding:
    """Ends verifications."""

    formats = FORMATS

    def sights(self, muster: "Muster") -> Sights:
        """Look at a run while it is driven."""
        return WavesSights(muster)

    def require_places(self, muster: "Muster") -> None:
        """Refuse, before anything is spent, when the reports of waves or the log cannot be written."""
        places = Whereabouts(muster.settings)
        for folder in (places.reports, places.log):
            require_folder(folder)

    async def outcome(self, muster: "Muster", run: Run, wanted: tuple[Wanted, ...], manner: Manner) -> Outcome:
        """Write what a run leaves behind, and sum it up; raises NotFound for one that had not begun."""
        places = Whereabouts(muster.settings)
        try:
            waves = await open_waves_run(muster.store, run)
            report = await summarize(waves)
            found = verify_reports(waves, report, run.id)
            left = await leave_behind(places, waves, report)
            for path in await write_reports(found, wanted):
                note(manner, f"wrote {path}")
        finally:
            if run.state in TERMINAL:  # any other one can be gone on with, and may not have read its files yet
                places.tidy(read_spec(run.spec))
        return Outcome(
            ok=report.ok,
            verdict=report.verdict,
            data=await _data(found, report, left) if manner.json else {},
            closer=f"muster report {run.id} --format markdown",
            tell=lambda out: _tell(out, report, left, run.id),
        )

    async def reports(self, store: Any, run: Run, reference: str) -> Reportable:
        """Sum up a run of a store; `reference` names the run, or the file that it comes from."""
        waves = await open_waves_run(store, run)
        return verify_reports(waves, await summarize(waves), reference)


async def _data(found: Reportable, report: VerifyReport, left: Leavings) -> dict[str, Any]:
    """Give the JSON report as data, with where everything lies."""
    out = io.StringIO()
    await found.write("json", out)
    return {"verified": len(report.files) - len(report.unseen), **json.loads(out.getvalue()), **left.json()}


def _tell(console: "Console", report: VerifyReport, left: Leavings, reference: str) -> None:
    tell_report(console, report, reference, Path.cwd())
    tell_leavings(console, left, Path.cwd())
