"""Reports: what became of a run of a suite, a verification, a council or a battle, in any format; from the store."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Generic, TextIO, TypeVar

from muster.app.runs.files import borrow
from muster.battles.reports.formats import BATTLE_WRITERS, SCALE_WRITERS, write_battle
from muster.battles.scale_spec import SCALE
from muster.battles.scale_summary import ScaleReport, summarize_scale
from muster.battles.summary import BattleReport, summarize_battle
from muster.battles.values import WORKLOAD as BATTLE
from muster.councils.reports.formats import COUNCIL_WRITERS, write_council
from muster.councils.spec import WORKLOAD as COUNCIL
from muster.councils.summary import CouncilReport, summarize_council
from muster.domain.errors import BadArgument
from muster.domain.run import Run
from muster.pool.tasks import WORKLOAD as TASK
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
    "BATTLE",
    "COUNCIL",
    "FORMATS",
    "SCALE",
    "SUITE",
    "VERIFICATION",
    "AnyReport",
    "BattleReport",
    "CouncilReport",
    "RunReport",
    "ScaleReport",
    "SuiteReport",
    "VerifyReport",
    "report_of",
    "report_of_battle",
    "report_of_council",
    "report_of_file",
    "report_of_scale",
    "report_of_suite",
    "report_of_verification",
    "write_file",
]

SUITE = "suite"
FORMATS = {  # by workload
    SUITE: tuple(SUITE_WRITERS),
    VERIFICATION: tuple(VERIFY_WRITERS),
    COUNCIL: tuple(COUNCIL_WRITERS),
    BATTLE: tuple(BATTLE_WRITERS),
    SCALE: tuple(SCALE_WRITERS),
}


S = TypeVar("S", SuiteReport, VerifyReport, CouncilReport, BattleReport, ScaleReport)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport(Generic[S]):
    """A run of one of our workloads that was summed up."""

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


AnyReport = (
    RunReport[SuiteReport]
    | RunReport[VerifyReport]
    | RunReport[CouncilReport]
    | RunReport[BattleReport]
    | RunReport[ScaleReport]
)


async def report_of(store: Store, run: Run) -> AnyReport:
    """Sum up a run; raises BadArgument for one that has no reports, NotFound for one that had not begun."""
    if run.workload == COUNCIL:
        return await report_of_council(store, run)
    if run.workload == BATTLE:
        return await report_of_battle(store, run)
    if run.workload == SCALE:
        return await report_of_scale(store, run)
    if run.workload not in FORMATS:
        raise BadArgument(
            f"run {run.id} is a run of {run.workload!r}, which has no report; those of suites, verifications, "
            "councils, battles and scale tests have one",
            suggestions=(f"muster {'task result' if run.workload == TASK else 'runs show'} {run.id}",),
        )
    return await (report_of_verification if run.workload == VERIFICATION else report_of_suite)(store, run)


async def report_of_council(store: Store, run: Run) -> RunReport[CouncilReport]:
    """Sum up a council."""
    summary = await summarize_council(store, run)

    async def write(name: str, out: TextIO) -> None:
        await write_council(summary, name, out)

    return RunReport(run=run, summary=summary, write=write)


async def report_of_battle(store: Store, run: Run) -> RunReport[BattleReport]:
    """Sum up a battle."""
    summary = await summarize_battle(store, run)

    async def write(name: str, out: TextIO) -> None:
        await write_battle(summary, name, out)

    return RunReport(run=run, summary=summary, write=write)


async def report_of_scale(store: Store, run: Run) -> RunReport[ScaleReport]:
    """Sum up a scale test."""
    summary = await summarize_scale(store, run)

    async def write(name: str, out: TextIO) -> None:
        await write_battle(summary, name, out)

    return RunReport(run=run, summary=summary, write=write)


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
