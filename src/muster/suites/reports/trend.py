"""The trend of a suite over its runs of one name: what every subject came to in each of them."""

from dataclasses import dataclass, replace

from muster.domain.run import Run
from muster.suites.reports.run import SuiteRun
from muster.suites.statistics import SubjectStats, SubjectTally


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """One run of a trend."""

    run: Run
    subjects: tuple[SubjectStats, ...]  # without intervals of scores; none when it ended before its suites were read
    baselines: tuple[str, ...] = ()  # names that stand for this run


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteTrend:
    """The runs of one name, the oldest first."""

    name: str
    points: tuple[TrendPoint, ...]


async def trend_subjects(suite: SuiteRun) -> tuple[SubjectStats, ...]:
    """Return the figures of every subject of a run, by their names, as its report has them."""
    tallies: dict[str, SubjectTally] = {}
    async for result in suite.results():
        tallies.setdefault(result.subject, SubjectTally()).add(result)
    # Intervals of scores are resampled, which takes longer than all else; a trend does not show them.
    return tuple(replace(tallies[name].stats(resamples=1), score_interval=None) for name in sorted(tallies))
