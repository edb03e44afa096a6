"""Reports: what became of a run of a kind that has reports, in any of its formats; from the store alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from muster.app.kinds import kind_of, loaded, reported_words
from muster.app.runs.files import borrow
from muster.domain.errors import BadArgument
from muster.domain.run import Run
from muster.reporting.files import write_file
from muster.reporting.runs import RunReport, RunSummary
from muster.store.base import Store

__all__ = ["AnyReport", "RunReport", "RunSummary", "report_of", "report_of_file", "write_file"]

AnyReport = RunReport[RunSummary]


async def report_of(store: Store, run: Run) -> AnyReport:
    """Sum up a run; raises BadArgument for one that has no reports, NotFound for one that had not begun."""
    kind = kind_of(run)
    if kind.report is None:
        raise BadArgument(
            f"run {run.id} is a run of {run.workload!r}, which has no report; those of {reported_words()} have one",
            suggestions=(f"muster {'task result' if kind.in_slot else 'runs show'} {run.id}",),
        )
    return cast(AnyReport, await loaded(kind.report.function)(store, run))


@asynccontextmanager
async def report_of_file(path: Path) -> AsyncIterator[AnyReport]:
    """Sum up the run of an exported file; the user's own store is not opened."""
    async with borrow(path) as (store, run):
        yield await report_of(store, run)
