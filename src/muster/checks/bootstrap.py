"""How sure a mean is: drawn again and again from the values that were seen.

The interval is that of percentiles, whose levels are widened for few values as Student's t is wider than the normal
distribution: plain percentiles are too narrow there. More than 1,000 values get the interval of the normal
distribution, which then is the same and takes no time. Equal values give an interval without width.
"""

from collections.abc import Sequence
from math import fsum, sqrt
from random import Random
from statistics import NormalDist

from muster.checks.interval import CONFIDENCE, Interval, deviations
from muster.checks.percentile import percentile_of_sorted

RESAMPLES = 2000
MANY = 1000


def bootstrap_mean(
    values: Sequence[float], *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES, seed: int = 0
) -> Interval | None:
    """Give the interval of the mean of values; the same seed gives the same. Fewer than two values say nothing."""
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


def student(confidence: float, freedom: int) -> float:
    """Give the deviations of Student's t by their expansion at the normal ones: 1 % off at 4 degrees of freedom."""
    z = deviations(confidence)
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def _normal(values: Sequence[float], confidence: float, low: float, high: float) -> Interval:
    n = len(values)
    mean = fsum(values) / n
    half = deviations(confidence) * sqrt(fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return Interval(low=max(low, mean - half), high=min(high, mean + half))
