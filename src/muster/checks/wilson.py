"""How sure a share is: Wilson's score interval, which is right for few cases and near 0 and 1 too."""

from math import sqrt

from muster.checks.interval import CONFIDENCE, Interval, deviations
from muster.domain.errors import BadArgument


def wilson(passed: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Give the interval of a share of n; of nothing it is everything."""
    if not 0 <= passed <= n:
        raise BadArgument(f"{passed} of {n} is no share")
    z = deviations(confidence)
    if n == 0:
        return Interval(low=0.0, high=1.0)
    share, square = passed / n, z * z
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = z / (1 + square / n) * sqrt(share * (1 - share) / n + square / (4 * n * n))
    # At the ends the exact bounds are 0 and 1, which rounding would miss.
    return Interval(low=max(0.0, middle - half) if passed else 0.0, high=min(1.0, middle + half) if passed < n else 1.0)
