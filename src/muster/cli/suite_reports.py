"""The reports of a suite run, by the names of their formats."""

from typing import TextIO

from muster.cli.report_files import TERMINAL, Reportable, console_for
from muster.reports.suite.summary import SuiteReport
from muster.reports.suite.writing import WRITERS, write_report
from muster.reports.suite_run import SuiteRun

FORMATS = (TERMINAL, *WRITERS)


def suite_reports(suite: SuiteRun, report: SuiteReport, reference: str) -> Reportable:
    """Say how a suite run is written; `reference` names the run, or the file that it comes from."""

    async def write(name: str, out: TextIO) -> None:
        if name != TERMINAL:
            await write_report(suite, report, name, out)
            return
        from muster.cli.suite_table import tell_report

        tell_report(console_for(out), report, reference)

    return Reportable(run=suite.run.id, ok=report.ok, formats=FORMATS, write=write)
