"""How steady a subject and its judge are, in words: what repeated epochs and samples say, where there are any."""

from collections.abc import Iterator

from muster.checks.statistics import SubjectStats
from muster.reports.words import percent


def steadiness(stats: SubjectStats) -> str:
    """Say what epochs and samples tell; nothing when each case was asked and judged once."""
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
    if stats.agreement is not None:
        yield f"samples of the judge agree in {percent(stats.agreement)}"
