"""The figures of a subject that every report shows, and how people want to read them."""

from collections.abc import Iterator
from dataclasses import dataclass

from muster.domain.case import Status
from muster.domain.money import Microdollars
from muster.suites.reports.summary import SubjectLine
from muster.suites.statistics import SubjectStats
from muster.text.words import percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How good, how fast and how dear a subject is; None where nothing can be said."""

    cases: int
    passed: int
    rate: float | None
    low: float | None
    high: float | None
    score: float | None
    score_low: float | None
    score_high: float | None
    p50: float | None
    p95: float | None
    thinking: int  # tokens
    cost: Microdollars  # with the judge's
    cost_per_case: float | None  # microdollars

    def interval(self) -> str:
        """Write where the true pass rate lies."""
        return "–" if self.low is None else f"{percent(self.low, 0)} to {percent(self.high, 0)}"


def score_of(score: float | None) -> str:
    """Write a score."""
    return "–" if score is None else f"{score:.2f}"


def figures(line: SubjectLine) -> Figures:
    """Return the figures of one subject."""
    stats = line.stats
    passing, scoring, latency = stats.pass_interval, stats.score_interval, stats.latency
    return Figures(
        cases=stats.run,
        passed=stats.statuses.get(Status.PASSED, 0),
        rate=stats.pass_rate,
        low=None if passing is None else passing.low,
        high=None if passing is None else passing.high,
        score=stats.mean_score,
        score_low=None if scoring is None else scoring.low,
        score_high=None if scoring is None else scoring.high,
        p50=None if latency is None else latency.p50,
        p95=None if latency is None else latency.p95,
        thinking=stats.thinking_tokens,
        cost=Microdollars(stats.cost + stats.judge_cost),
        cost_per_case=None if stats.cost_per_case is None else stats.cost_per_case + (stats.judge_cost_per_case or 0.0),
    )


def steadiness(stats: SubjectStats) -> str:
    """Return what epochs and samples show; nothing when each case was run and judged once."""
    return " · ".join(_words(stats))


def _words(stats: SubjectStats) -> Iterator[str]:
    if stats.epochs > 1 and stats.repeats:
        last = stats.repeats[-1]
        yield f"of {last.k} epochs one passes in {percent(last.one)} of the cases (pass@{last.k})"
        yield f"all in {percent(last.every)} (pass^{last.k})"
    parts = {"the agent": stats.variance.agent, "the judge": stats.variance.judge}
    told = [f"{value:.4f} by {who}" for who, value in parts.items() if value is not None]
    if told:
        yield f"score varies (variance) {', '.join(told)}"
    if stats.agreement is not None and stats.spread is None:
        yield f"judge samples agree in {percent(stats.agreement)}"
    elif stats.agreement is not None:
        yield f"members of the council agree in {percent(stats.agreement)}, their scores are {stats.spread:.2f} apart"
