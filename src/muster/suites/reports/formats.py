"""Reports of suites by the name of their format."""

from functools import partial

from muster.domain.run import Run
from muster.reporting.runs import RunReport, by_format
from muster.store.base import Store
from muster.suites.kind import SUITE
from muster.suites.reports.html import write_html
from muster.suites.reports.json_report import write_json
from muster.suites.reports.junit import write_junit
from muster.suites.reports.markdown import write_markdown
from muster.suites.reports.run import SuiteRun, open_suite_run
from muster.suites.reports.sarif import write_sarif
from muster.suites.reports.summary import SuiteReport, summarize

WRITERS = by_format(SUITE, write_json, write_junit, write_sarif, write_markdown, write_html)


async def report_of_suite(store: Store, run: Run) -> RunReport[SuiteReport]:
    """Sum up a suite run."""
    suite = await open_suite_run(store, run)
    return report_of(suite, await summarize(suite))


def report_of(suite: SuiteRun, summary: SuiteReport) -> RunReport[SuiteReport]:
    """Return the report of a run that was summed up."""
    writers = {name: partial(write, suite, summary) for name, write in WRITERS.items()}
    return RunReport(run=suite.run, summary=summary, writers=writers)
