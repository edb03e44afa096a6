"""Reports of suites by the name of their format."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TextIO, cast

from muster.domain.errors import BadArgument
from muster.domain.run import Run
from muster.reporting.files import Redacting
from muster.reporting.runs import RunReport
from muster.store.base import Store
from muster.suites.reports.html import write_html
from muster.suites.reports.json_report import write_json
from muster.suites.reports.junit import write_junit
from muster.suites.reports.markdown import write_markdown
from muster.suites.reports.run import SuiteRun, open_suite_run
from muster.suites.reports.sarif import write_sarif
from muster.suites.reports.summary import SuiteReport, summarize
from muster.text.words import choice_error

Writer = Callable[[SuiteRun, SuiteReport, TextIO], Awaitable[None]]

WRITERS: Mapping[str, Writer] = {
    "json": write_json,
    "junit": write_junit,
    "sarif": write_sarif,
    "markdown": write_markdown,
    "html": write_html,
}


async def write_report(suite: SuiteRun, report: SuiteReport, format_name: str, out: TextIO) -> None:
    """Write a report to an open file."""
    writer = WRITERS.get(format_name)
    if writer is None:
        raise BadArgument(choice_error(tuple(WRITERS), format_name), argument="the format of a report")
    await writer(suite, report, cast(TextIO, Redacting(out)))


async def report_of_suite(store: Store, run: Run) -> RunReport[SuiteReport]:
    """Sum up a suite run."""
    suite = await open_suite_run(store, run)
    summary = await summarize(suite)

    async def write(name: str, out: TextIO) -> None:
        await write_report(suite, summary, name, out)

    return RunReport(run=run, summary=summary, formats=tuple(WRITERS), write=write)
