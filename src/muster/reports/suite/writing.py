"""Reports of suites by the name of their format."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TextIO, cast

from muster.domain.errors import BadArgument
from muster.reports.suite.html import write_html
from muster.reports.suite.json_report import write_json
from muster.reports.suite.junit import write_junit
from muster.reports.suite.markdown import write_markdown
from muster.reports.suite.sarif import write_sarif
from muster.reports.suite.summary import SuiteReport
from muster.reports.suite_run import SuiteRun
from muster.reports.writing import Redacting

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
        raise BadArgument(f"there is no report format {format_name!r}", suggestions=(f"one of {', '.join(WRITERS)}",))
    await writer(suite, report, cast(TextIO, Redacting(out)))
