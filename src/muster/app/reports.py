"""Reports: what became of a suite run or a verification, summed up from the store and written in any format."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Generic, TextIO, TypeVar

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
    "AnyReport",
    "RunReport",
    "SuiteReport",
    "VerifyReport",
    "report_of",
    "report_of_file",
    "report_of_suite",
    "report_of_verification",
    "write_file",
]

SUITE = "suite"
FORMATS = {SUITE: tuple(SUITE_WRITERS), VERIFICATION: tuple(VERIFY_WRITERS)}  # by workload


S = TypeVar("S", SuiteReport, VerifyReport)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport(Generic[S]):
    """A suite run or a verification that was summed up."""

    run: Run
    summary: S
    write: Callable[[str, TextIO], Awaitable[None]]  # one of the formats, and where to

    @property
    def ok(self) -> bool:
        """Return whether it is a success."""
        return self.summary.ok

    @property
    def formats(self) -> tuple[str, ...]:
        """Return the names of the formats in which it can be written."""
        return FORMATS[self.run.workload]

    async def text(self, name: str) -> str:
        """Return it in one of its formats."""
        out = StringIO()
        await self.write(name, out)
        return out.getvalue()


AnyReport = RunReport[SuiteReport] | RunReport[VerifyReport]


async def report_of(store: Store, run: Run) -> AnyReport:
    """Sum up a run; raises BadArgument for one that has no reports, NotFound for one that had not begun."""
    return await (report_of_verification if run.workload == VERIFICATION else report_of_suite)(store, run)


async def report_of_verification(store: Store, run: Run) -> RunReport[VerifyReport]:
    """Sum up a verification."""
    waves = await open_waves_run(store, run)
    summary = await summarize_waves(waves)

    async def write(name: str, out: TextIO) -> None:
        await write_waves(waves, summary, name, out)

    return RunReport(run=run, summary=summary, write=write)


async def report_of_suite(store: Store, run: Run) -> RunReport[SuiteReport]:
    """Sum up a suite run."""
    suite = await open_suite_run(store, run)
    summary = await summarize_suite(suite)

    async def write(name: str, out: TextIO) -> None:
        await write_suite(suite, summary, name, out)

    return RunReport(run=run, summary=summary, write=write)


@asynccontextmanager
async def report_of_file(path: Path) -> AsyncIterator[AnyReport]:
    """Sum up the run of an exported file; the user's own store is not opened."""
    async with borrow(path) as (store, run):
        yield await report_of(store, run)
