"""The end of a suite run: its reports are written whatever it came to, and the exit code says whether all is well."""

from typing import TYPE_CHECKING

from muster.cli.answering import leave
from muster.cli.driving import detached, drive
from muster.cli.manner import Manner
from muster.cli.pooled import pooled
from muster.cli.progress import display
from muster.cli.report_files import Wanted, write_reports
from muster.cli.run_sights import SuiteSights
from muster.cli.speech import answer, console, fail, fail_with, note
from muster.cli.suite_table import tell_report
from muster.domain.errors import MusterError, NotFound
from muster.domain.run import Run
from muster.reports.suite.json_values import report_json
from muster.reports.suite.summary import SuiteReport, summarize
from muster.reports.suite_run import open_suite_run

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app.handle import RunHandle


async def drive_and_conclude(muster: "Muster", handle: "RunHandle", wanted: tuple[Wanted, ...], manner: Manner) -> int:
    """Drive a suite run to its end and report it; gives the exit code, and raises what stopped the run."""
    try:
        run = await drive(muster, handle, display(manner), SuiteSights(muster))
    except MusterError as error:
        report = await _report_what_is_there(muster, await handle.run(), wanted, manner)
        if report is None or not manner.json:
            raise
        return fail(manner, error, report_json(report))
    if detached(run):
        return leave(manner, run, await pooled(muster, run), len(await muster.engine.workers()))
    return await conclude(muster, run, wanted, manner)


async def conclude(muster: "Muster", run: Run, wanted: tuple[Wanted, ...], manner: Manner) -> int:
    """Report a suite run that is completed; gives its exit code."""
    return _tell(manner, await _report(muster, run, wanted, manner), wanted)


async def _report(muster: "Muster", run: Run, wanted: tuple[Wanted, ...], manner: Manner) -> SuiteReport:
    suite = await open_suite_run(muster.store, run)
    report = await summarize(suite)
    for path in await write_reports(suite, report, wanted, run.id):
        note(manner, f"wrote {path}")
    return report


async def _report_what_is_there(
    muster: "Muster", run: Run, wanted: tuple[Wanted, ...], manner: Manner
) -> SuiteReport | None:
    """Report a run that stopped: what it has done by then is not lost."""
    try:
        report = await _report(muster, run, wanted, manner)
    except NotFound:
        return None  # it had not begun
    if not manner.json:
        tell_report(console(stderr=any(one.path is None for one in wanted)), report, run.id)
    return report


def _tell(manner: Manner, report: SuiteReport, wanted: tuple[Wanted, ...]) -> int:
    """Say how it ended; standard output belongs to a report that goes there."""
    data = report_json(report)
    if manner.json and not report.ok:
        told = {"code": "not_passed", "message": report.verdict, "suggestions": [_closer(report)]}
        return fail_with(manner, told, 1, data)
    printed = any(one.path is None for one in wanted)
    if manner.json or not printed:
        answer(manner, data, lambda out: tell_report(out, report, report.run.id))
    elif not manner.quiet:
        tell_report(console(stderr=True), report, report.run.id)
    return 0 if report.ok else 1


def _closer(report: SuiteReport) -> str:
    return f"muster report {report.run.id} --format html -o report.html"
