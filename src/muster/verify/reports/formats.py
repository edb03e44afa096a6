"""Reports of verifications by the name of their format."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TextIO, cast

from muster.domain.errors import BadArgument
from muster.domain.run import Run
from muster.reporting.files import Redacting
from muster.reporting.runs import RunReport
from muster.store.base import Store
from muster.text.words import choice_error
from muster.verify.reports.json_report import write_json
from muster.verify.reports.junit import write_junit
from muster.verify.reports.markdown import write_markdown
from muster.verify.reports.run import WavesRun, open_waves_run
from muster.verify.reports.sarif import write_sarif
from muster.verify.reports.summary import VerifyReport, summarize

Writer = Callable[[WavesRun, VerifyReport, TextIO], Awaitable[None]]

WRITERS: Mapping[str, Writer] = {
    "markdown": write_markdown,
    "json": write_json,
    "sarif": write_sarif,
    "junit": write_junit,
}


async def write_report(waves: WavesRun, report: VerifyReport, format_name: str, out: TextIO) -> None:
    """Write a report to an open file."""
    writer = WRITERS.get(format_name)
    if writer is None:
        raise BadArgument(choice_error(tuple(WRITERS), format_name), argument="the format of a report")
    await writer(waves, report, cast(TextIO, Redacting(out)))


async def report_of_verification(store: Store, run: Run) -> RunReport[VerifyReport]:
    """Sum up a verification."""
    waves = await open_waves_run(store, run)
    summary = await summarize(waves)

    async def write(name: str, out: TextIO) -> None:
        await write_report(waves, summary, name, out)

    return RunReport(run=run, summary=summary, formats=tuple(WRITERS), write=write)
