"""Reports: what became of a suite run or a verification, summed up from the store and written in any format."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from muster.app.runs.files import borrow
from muster.domain.run import Run
from muster.reporting.files import write_file
from muster.store.base import Store
from muster.suites.reports.formats import WRITERS as SUITE_WRITERS
from muster.suites.reports.formats import write_report as write_suite
from muster.suites.reports.run import open_suite_run
from muster.suites.reports.summary import SuiteReport
from muster.suites.reports.summary import summarize as summarize_suite
from muster.verify.journal import WORKLOAD as VERIFICATION
from muster.verify.reports.formats import WRITERS as VERIFY_WRITERS
from muster.verify.reports.formats import write_report as write_waves
from muster.verify.reports.run import open_waves_run
from muster.verify.reports.summary import VerifyReport
from muster.verify.reports.summary import summarize as summarize_waves

__all__ = [
    "FORMATS",
    "SUITE",
    "VERIFICATION",
    "RunReport",
    "SuiteReport",
    "VerifyReport",
    "report_of",
    "report_of_file",
    "write_file",
]

SUITE = "suite"
FORMATS = {SUITE: tuple(SUITE_WRITERS), VERIFICATION: tuple(VERIFY_WRITERS)}  # by workload


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A suite run or a verification that was summed up."""

    run: Run
    summary: SuiteReport | VerifyReport
    write: Callable[[str, TextIO], Awaitable[None]]  # one of the formats, and where to

    @property
    def ok(self) -> bool:
        """Return whether it is a success."""
        return self.summary.ok

    @property
    def formats(self) -> tuple[str, ...]:
        """Return the names of the formats in which it can be written."""
        return FORMATS[self.run.workload]


async def report_of(store: Store, run: Run) -> RunReport:
    """Sum up a run; raises BadArgument for one that has no reports, NotFound for one that had not begun."""
    if run.workload == VERIFICATION:
        waves = await open_waves_run(store, run)
        verified = await summarize_waves(waves)

        async def write_verification(name: str, out: TextIO) -> None:
            await write_waves(waves, verified, name, out)

        return RunReport(run=run, summary=verified, write=write_verification)
    suite = await open_suite_run(store, run)
    summary = await summarize_suite(suite)

    async def write(name: str, out: TextIO) -> None:
        await write_suite(suite, summary, name, out)

    return RunReport(run=run, summary=summary, write=write)


@asynccontextmanager
async def report_of_file(path: Path) -> AsyncIterator[RunReport]:
    """Sum up the run of an exported file; the user's own store is not opened."""
    async with borrow(path) as (store, run):
        yield await report_of(store, run)
