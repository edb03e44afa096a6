"""Confidence intervals: Wilson's for proportions, the bootstrap for means. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import fsum, sqrt
from random import Random
from statistics import NormalDist

from muster.domain.errors import BadArgument

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """From low to high, both included."""

    low: float
    high: float

    def overlaps(self, other: "Interval") -> bool:
        """Return whether the two have a value in common."""
        return self.low <= other.high and other.low <= self.high

    def within(self, bound: float) -> bool:
        """Return whether no value in it is further from nothing than a bound."""
        return -bound <= self.low and self.high <= bound

    def holds(self, value: float) -> bool:
        """Return whether a value lies in it."""
        return self.low <= value <= self.high


@lru_cache(maxsize=64)
def deviations(confidence: float) -> float:
    """Return z, the two-sided quantile of the standard normal distribution."""
    if not 0 < confidence < 1:
        raise BadArgument(f"confidence must be between 0 and 1, not {confidence:g}")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wilson(passed: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Return the score interval of a proportion; of no trials it is everything.

    Reference: E. B. Wilson, Probable Inference, the Law of Succession, and Statistical Inference (1927).
    """
    if not 0 <= passed <= n:
        raise BadArgument(f"{passed} of {n} is not a valid proportion")
    z = deviations(confidence)
    if n == 0:
        return Interval(low=0.0, high=1.0)
    p, z2 = passed / n, z * z
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    # At the ends the exact bounds are 0 and 1, which rounding would miss.
    return Interval(low=max(0.0, middle - half) if passed else 0.0, high=min(1.0, middle + half) if passed < n else 1.0)


def percentile(values: Iterable[float], q: float) -> float | None:
    """Return the value below which q percent lie; None when there are no values."""
    ordered = sorted(values)
    return percentile_of_sorted(ordered, q) if ordered else None


def percentile_of_sorted(ordered: Sequence[float], q: float) -> float:
    """Return the same of values that are sorted already, of which there is at least one."""
    if not 0 <= q <= 100:
        raise BadArgument(f"percentile must be between 0 and 100, not {q:g}")
    place = (len(ordered) - 1) * q / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


RESAMPLES = 2000
MANY = 1000


def bootstrap_mean(
    values: Sequence[float], *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES, seed: int = 0
) -> Interval | None:
    """Return the expanded bootstrap percentile interval of a mean, or None for fewer than two values.

    The same seed gives the same interval; for many values the normal one is as good.
    Reference: T. Hesterberg, What Teachers Should Know About the Bootstrap (2015).
    """
    n = len(values)
    if n < 2:
        return None
    low, high = min(values), max(values)
    if low == high:
        return Interval(low=low, high=high)
    if n > MANY:
        return _normal(values, confidence, low, high)
    draw = Random(seed).choices  # noqa: S311 - statistics, no secrets
    means = sorted(sum(draw(values, k=n)) / n for _ in range(resamples))
    tail = NormalDist().cdf(-student(confidence, n - 1) * sqrt(n / (n - 1)))
    return Interval(low=percentile_of_sorted(means, 100 * tail), high=percentile_of_sorted(means, 100 * (1 - tail)))


def student(confidence: float, df: int) -> float:
    """Return the two-sided quantile of Student's t by its expansion in 1/df: 1 % off at 4 degrees of freedom.

    Reference: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.5.
    """
    z = deviations(confidence)
    return (
        z
        + (z**3 + z) / (4 * df)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * df**3)
    )


def _normal(values: Sequence[float], confidence: float, low: float, high: float) -> Interval:
    n = len(values)
    mean = fsum(values) / n
    half = deviations(confidence) * sqrt(fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return Interval(low=max(low, mean - half), high=min(high, mean + half))
