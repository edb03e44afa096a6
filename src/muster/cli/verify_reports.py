"""The reports of a verification, by the names of their formats."""

from pathlib import Path
from typing import TextIO

from muster.cli.report_files import TERMINAL, Reportable, console_for
from muster.reports.waves.run import WavesRun
from muster.reports.waves.summary import VerifyReport
from muster.reports.waves.writing import WRITERS, write_report

FORMATS = (TERMINAL, *WRITERS)


def verify_reports(waves: WavesRun, report: VerifyReport, reference: str) -> Reportable:
    """Say how a verification is written; `reference` names the run, or the file that it comes from."""

    async def write(name: str, out: TextIO) -> None:
        if name != TERMINAL:
            await write_report(waves, report, name, out)
            return
        from muster.cli.verify_table import tell_report

        tell_report(console_for(out), report, reference, Path.cwd())

    return Reportable(run=waves.run.id, ok=report.ok, formats=FORMATS, write=write)
