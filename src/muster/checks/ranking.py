"""Who of several subjects is best, and who cannot be told apart."""

from collections.abc import Sequence
from dataclasses import dataclass

from muster.checks.interval import Interval
from muster.checks.subject_stats import SubjectStats


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One subject in its place."""

    place: int  # from 1
    stats: SubjectStats
    told_apart: bool  # from the one above, by intervals that do not overlap; the first is, from nobody


def rank(stats: Sequence[SubjectStats]) -> tuple[Rank, ...]:
    """Put subjects in order: by pass rate, then by score, then by cost."""
    ordered = sorted(stats, key=_order)
    return tuple(
        Rank(place=place, stats=one, told_apart=place == 1 or told_apart(ordered[place - 2], one))
        for place, one in enumerate(ordered, 1)
    )


def told_apart(better: SubjectStats, other: SubjectStats) -> bool:
    """Whether the figure that decides between two lies in intervals that do not overlap."""
    if better.pass_rate != other.pass_rate:
        return _apart(better.pass_interval, other.pass_interval)
    if better.mean_score != other.mean_score:
        return _apart(better.score_interval, other.score_interval)
    return False


def _order(stats: SubjectStats) -> tuple[float, float, int, str]:
    rate = -1.0 if stats.pass_rate is None else stats.pass_rate
    score = -1.0 if stats.mean_score is None else stats.mean_score
    return -rate, -score, stats.cost, stats.subject


def _apart(one: Interval | None, other: Interval | None) -> bool:
    return one is not None and other is not None and not one.overlaps(other)
