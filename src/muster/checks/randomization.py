"""Whether paired differences could be chance: their signs are drawn anew, again and again.

When nothing changed, each difference could as well have been the other way round. This holds for any number of pairs,
where a bootstrap is too quick to see a difference in a few. Of more than 1,000 the normal distribution is used.
"""

from collections.abc import Sequence
from math import fsum, sqrt
from operator import mul
from random import Random
from statistics import NormalDist

from muster.checks.bootstrap import MANY, RESAMPLES

_TOLERANCE = 1e-9  # sums in another order are not exactly the same


def randomization_test(differences: Sequence[float], *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Give the two-sided p of the sum of differences; the same seed gives the same."""
    moved = [difference for difference in differences if difference]
    if not moved:
        return 1.0
    seen = abs(fsum(moved))
    if len(moved) > MANY:
        return 2 * NormalDist().cdf(-seen / sqrt(fsum(difference * difference for difference in moved)))
    draw, signs = Random(seed).choices, (1, -1)  # noqa: S311 - statistics, no secrets
    sums = (abs(sum(map(mul, moved, draw(signs, k=len(moved))))) for _ in range(resamples))
    as_far: int = sum(drawn >= seen - _TOLERANCE for drawn in sums)
    return (as_far + 1) / (resamples + 1)
