"""Reports of councils by the name of their format."""

import json
from collections.abc import Callable, Mapping
from typing import TextIO

from muster.councils.reports.html import council_html
from muster.councils.reports.json_report import council_json
from muster.councils.reports.markdown import council_markdown
from muster.councils.summary import CouncilReport
from muster.domain.errors import BadArgument
from muster.reporting.files import Redacting
from muster.text.words import one_of


def _json(report: CouncilReport) -> str:
    return json.dumps(council_json(report), ensure_ascii=False, indent=2) + "\n"


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
