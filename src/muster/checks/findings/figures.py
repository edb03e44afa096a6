"""The figures that thresholds speak of: counts, the score with its parts, and coverage. What is not known is None."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

from muster.domain.finding import Counts, Examined
from muster.shapes.expression import PART


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What is measured besides findings."""

    score: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    coverage: float | None = None


def measure(examined: Sequence[Examined]) -> Measures:
    """Put the measures of all chunks together; one that some chunk does not have is not known of the whole."""
    if not examined:
        return Measures()
    scores = [one.score for one in examined]
    return Measures(
        score=None if None in scores else lowest(scores),
        parts=_parts([one.parts for one in examined]),
        coverage=_coverage(examined),
    )


def lowest(values: Sequence[float | None]) -> float | None:
    """Give the lowest of the values that are known."""
    return min((value for value in values if value is not None), default=None)


def figures(counts: Counts, measures: Measures, files: int) -> dict[str, float | None]:
    """Give all figures by the names that thresholds know; `files` are those in which something was found."""
    return {
        "total": counts.total,
        "critical": counts.critical,
        "high": counts.high,
        "medium": counts.medium,
        "low": counts.low,
        "rejected": counts.rejected,
        "files": files,
        "score": measures.score,
        "coverage": measures.coverage,
        **{f"{PART}{name}": value for name, value in measures.parts.items()},
    }


def _parts(given: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = [name for name in given[0] if all(name in parts for parts in given)]
    return {name: min(parts[name] for parts in given) for name in names}


def _coverage(examined: Sequence[Examined]) -> float | None:
    """Give the mean of all chunks, each weighed by its lines."""
    known = [(one.coverage, one.lines) for one in examined if one.coverage is not None]
    if len(known) < len(examined):
        return None
    weights = [lines for _, lines in known] if any(lines for _, lines in known) else [1] * len(known)
    return fsum(value * weight for (value, _), weight in zip(known, weights, strict=True)) / sum(weights)
