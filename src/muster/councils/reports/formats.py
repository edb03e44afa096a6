"""Reports of councils by the name of their format."""

import json

from muster.councils.kind import COUNCIL
from muster.councils.reports.html import council_html
from muster.councils.reports.json_report import council_view
from muster.councils.reports.markdown import council_markdown
from muster.councils.summary import CouncilReport, summarize_council
from muster.domain.run import Run
from muster.reporting.runs import RunReport, by_format, text_report
from muster.store.base import Store


def _json(report: CouncilReport) -> str:
    return json.dumps(council_view(report).builtins(), ensure_ascii=False, indent=2) + "\n"


WRITERS = by_format(COUNCIL, _json, council_markdown, council_html)


async def report_of_council(store: Store, run: Run) -> RunReport[CouncilReport]:
    """Sum up a council."""
    return text_report(run, await summarize_council(store, run), WRITERS)
