"""How suite runs end: with the reports that were asked for, and what the cases came to."""

import shlex
from typing import TYPE_CHECKING

from muster.app.reports import SuiteReport
from muster.app.suite_values import report_json
from muster.cli.driving import Sights
from muster.cli.ending import Outcome
from muster.cli.manner import Manner
from muster.cli.report_files import Reportable, Wanted, write_reports
from muster.cli.run_sights import SuiteSights
from muster.cli.speech import note
from muster.cli.suite_table import tell_report
from muster.domain.run import Run

if TYPE_CHECKING:
    from muster.app import Muster


class SuiteEnding:
    """Ends suite runs."""

    def sights(self, muster: "Muster") -> Sights:
        """Look at a run while it is driven."""
        return SuiteSights(muster)

    def require_places(self, muster: "Muster") -> None:
        """Refuse nothing: only the reports that are asked for are left behind."""

    async def outcome(self, muster: "Muster", run: Run, wanted: tuple[Wanted, ...], manner: Manner) -> Outcome:
        """Write what a run leaves behind, and sum it up; raises NotFound for one that had not begun."""
        found = await muster.report_of(run)
        report = found.summary
        assert isinstance(report, SuiteReport)  # noqa: S101  # of a run of the workload `suite`
        for path in await write_reports(Reportable(report=found, reference=run.id), wanted):
            note(manner, f"wrote {path}")
        return Outcome(
            ok=report.ok,
            verdict=report.verdict,
            data=report_json(report),
            closer=f"muster report {run.id} --format html -o report.html",
            tell=lambda out: tell_report(out, report, run.id),
            again=() if report.ok else _again(run),
        )


def _again(run: Run) -> tuple[str, ...]:
    """Return the commands that ask once more for what is missing, and for what did not pass."""
    given = run.spec.get("path", ())
    paths = " ".join(shlex.quote(path) for path in ([given] if isinstance(given, str) else given))
    return (
        f"muster run {paths} --reuse {run.id}",
        f"muster run {paths} --only-failed {run.id}",
    )
