"""Trends of suites: what their runs of one name came to. Figures of runs that have ended are added up once."""

import asyncio
from collections.abc import Mapping
from pathlib import PurePath

from muster.app.base.backend import Backend
from muster.app.runs.runs import Runs
from muster.domain.errors import BadArgument, NotFound
from muster.domain.run import TERMINAL, Run, RunState
from muster.suites.reports.run import open_suite_run
from muster.suites.reports.trend import SuiteTrend, TrendPoint, trend_subjects
from muster.suites.statistics import SubjectStats

MAX_FIGURES = 1000  # runs whose figures are kept in memory
LOOKED_AT = 200  # runs among which the one before is looked for


class SuiteTrends:
    """The trends of an open Muster."""

    def __init__(self, backend: Backend, runs: Runs) -> None:
        self._store, self._runs, self._figures = backend.store, runs, backend.figures

    async def of(self, run: Run, limit: int) -> SuiteTrend:
        """Return the newest runs with the name of a suite run, the oldest of them first."""
        if run.name is None:
            raise BadArgument(
                f"run {run.id} has no name; a trend covers runs with the same name",
                suggestions=("muster run PATH --agent A --name NAME",),
            )
        names: dict[str, list[str]] = {}
        for one in await self._store.records.baselines():
            names.setdefault(one.run, []).append(one.name)
        runs = await self._runs.page(workloads=(run.workload,), name=run.name, limit=limit)
        points = [
            TrendPoint(run=each, subjects=await self._figures_of(each), baselines=tuple(sorted(names.get(each.id, ()))))
            for each in reversed(runs)
        ]
        return SuiteTrend(name=run.name, points=tuple(points))

    async def before(self, run: Run) -> Run | None:
        """Return the newest completed run of the same suites and name that is older than a run."""
        done = (RunState.COMPLETED,)
        older = await self._runs.page(
            done, workloads=(run.workload,), roots=True, name=run.name, after=run.id, limit=LOOKED_AT
        )
        alike = (one for one in older if one.name == run.name and _files(one) == _files(run))
        return next(alike, None)

    async def _figures_of(self, run: Run) -> tuple[SubjectStats, ...]:
        """Return the figures of a run; none when it ended before its suites were read."""
        if run.id in self._figures:
            return self._figures[run.id]
        await asyncio.sleep(0)  # others have their turn between the runs of a long trend
        try:
            found = await trend_subjects(await open_suite_run(self._store, run))
        except NotFound:
            found = ()
        if run.state in TERMINAL:
            self._figures[run.id] = found
            if len(self._figures) > MAX_FIGURES:
                self._figures.pop(next(iter(self._figures)))
        return found


def _files(run: Run) -> list[str]:
    """Return the names of the files of a suite run, without the folders in which they were."""
    paths = run.spec.get("path") if isinstance(run.spec, Mapping) else None
    return [PurePath(str(path)).name for path in ([paths] if isinstance(paths, str) else paths or [])]
