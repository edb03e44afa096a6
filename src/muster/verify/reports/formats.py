"""Reports of verifications by the name of their format."""

from functools import partial

from muster.domain.run import Run
from muster.reporting.runs import RunReport, by_format
from muster.store.base import Store
from muster.verify.kind import VERIFICATION
from muster.verify.reports.json_report import write_json
from muster.verify.reports.junit import write_junit
from muster.verify.reports.markdown import write_markdown
from muster.verify.reports.run import WavesRun, open_waves_run
from muster.verify.reports.sarif import write_sarif
from muster.verify.reports.summary import VerifyReport, summarize

WRITERS = by_format(VERIFICATION, write_markdown, write_json, write_sarif, write_junit)


async def report_of_verification(store: Store, run: Run) -> RunReport[VerifyReport]:
    """Sum up a verification."""
    waves = await open_waves_run(store, run)
    return report_of(waves, await summarize(waves))


def report_of(waves: WavesRun, summary: VerifyReport) -> RunReport[VerifyReport]:
    """Return the report of a run that was summed up."""
    writers = {name: partial(write, waves, summary) for name, write in WRITERS.items()}
    return RunReport(run=waves.run, summary=summary, writers=writers)
