"""Reports of councils by the name of their format."""

import json
from collections.abc import Callable, Mapping
from typing import TextIO

from muster.councils.reports.html import council_html
from muster.councils.reports.json_report import council_view
from muster.councils.reports.markdown import council_markdown
from muster.councils.summary import CouncilReport, summarize_council
from muster.domain.errors import BadArgument
from muster.domain.flaw import one_of
from muster.domain.run import Run
from muster.reporting.files import Redacting
from muster.reporting.runs import RunReport
from muster.store.base import Store


def _json(report: CouncilReport) -> str:
    return json.dumps(council_view(report).builtins(), ensure_ascii=False, indent=2) + "\n"


COUNCIL_WRITERS: Mapping[str, Callable[[CouncilReport], str]] = {
    "json": _json,
    "markdown": council_markdown,
    "html": council_html,
}


async def write_council(report: CouncilReport, format_name: str, out: TextIO) -> None:
    """Write a report to an open file."""
    writer = COUNCIL_WRITERS.get(format_name)
    if writer is None:
        raise BadArgument(f"the format of this report must be {one_of(tuple(COUNCIL_WRITERS))}, not {format_name!r}")
    Redacting(out).write(writer(report))


async def report_of_council(store: Store, run: Run) -> RunReport[CouncilReport]:
    """Sum up a council."""
    summary = await summarize_council(store, run)

    async def write(name: str, out: TextIO) -> None:
        await write_council(summary, name, out)

    return RunReport(run=run, summary=summary, formats=tuple(COUNCIL_WRITERS), write=write)
