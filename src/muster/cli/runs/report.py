"""`muster report`: what became of a suite run or a verification, in the format that somebody needs."""

import asyncio
from pathlib import Path
from typing import Annotated

from muster.app import Muster
from muster.app.base.outputs import require_output
from muster.app.project.files import Project
from muster.app.runs.reports import AnyReport
from muster.app.views.suites import report_view, written_report_view
from muster.cli.formats import ALL_FORMATS, TERMINAL
from muster.cli.line import Argument, Option
from muster.cli.line.types import files
from muster.cli.reports import (
    STDOUT,
    Reportable,
    WantedReport,
    wanted_format,
    write_reports,
)
from muster.cli.runs.endings import teller_of_report
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer


def report(
    common: CommonOptions,
    run: Annotated[
        str,
        Argument(
            metavar="RUN|FILE",
            complete="run_names_or_files",
            help="A run or an exported file; `last`: the last suite or verification.",
        ),
    ],
    format_: Annotated[
        str,
        Option("--format", metavar="FORMAT", values=ALL_FORMATS, help="The format."),
    ] = "terminal",
    output: Annotated[
        str, Option("--output", "-o", metavar="FILE", complete=files, help="The file to write; - is standard output.")
    ] = "-",
) -> None:
    """Write a report of a stored suite run or verification: terminal, HTML, JUnit, SARIF, and more.

    The exit code is 0, whatever the results are.
    """
    wanted = WantedReport(format=wanted_format(format_, ALL_FORMATS), path=None if output == STDOUT else Path(output))
    if wanted.path is not None:
        require_output(wanted.path, wanted.format, (run,))
    if Path(run).is_file():
        asyncio.run(_of_file(common, Path(run), wanted))
        return

    async def work(muster: Muster) -> None:
        found = await muster.report(run)
        await _give(common, _reportable(found, found.run.id), wanted)

    with_muster(common, work)


async def _of_file(common: CommonOptions, file: Path, wanted: WantedReport) -> None:
    """Report the run of a file; the user's own store is not opened."""
    async with Project(common.home).report_of_file(file) as found:
        await _give(common, _reportable(found, str(file)), wanted)


def _reportable(report: AnyReport, reference: str) -> Reportable:
    return Reportable(report=report, reference=reference, tell=teller_of_report(report.run))


async def _give(common: CommonOptions, found: Reportable, wanted: WantedReport) -> None:
    wanted_format(wanted.format, found.formats)
    if common.json and wanted.path is None:
        format_ = "json" if wanted.format == TERMINAL else wanted.format
        answer(common, await report_view(found.report, format_), lambda console: None)
        return
    await write_reports(found, [wanted])
    if wanted.path is not None:
        data = written_report_view(found.report, wanted.format, wanted.path)
        text = f"run {found.report.run.id}: {wanted.format} report written to {wanted.path}"
        answer(common, data, lambda console: console.print(text, soft_wrap=True))
