"""Tests for paired outcomes: McNemar's, the randomization test, and a limit for non-inferiority. Pure."""

from collections import Counter
from collections.abc import Sequence
from math import ceil, exp, fsum, lgamma, log, sqrt
from operator import mul
from random import Random
from statistics import NormalDist, fmean, pvariance

from muster.domain.errors import BadArgument
from muster.statistics.intervals import MANY, RESAMPLES


def mcnemar_exact(b: int, c: int) -> float:
    """Return the two-sided p for b pairs that changed one way and c the other."""
    if b < 0 or c < 0:
        raise BadArgument(f"counts of pairs must not be negative: {b} and {c}")
    n, fewer = b + c, min(b, c)
    if b == c:
        return 1.0
    term = exp(lgamma(n + 1) - lgamma(fewer + 1) - lgamma(n - fewer + 1) - n * log(2))
    tail = 0.0
    for k in range(fewer, -1, -1):  # from the largest term down, until the rest adds nothing
        tail += term
        term *= k / (n - k + 1)
        if term < tail * 1e-17:
            break
    return min(1.0, 2 * tail)


_TOLERANCE = 1e-9  # sums in another order are not exactly the same


def randomization_test(differences: Sequence[float], *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Return the two-sided p of the sum of differences; the same seed gives the same."""
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


WORST = -1.0  # what passed, or scored 1, in A and did not, or scored 0, in B
_IN_THE_TAIL = 20  # resamples that lie beyond the limit, at least


def lower_limit(differences: Sequence[float], *, alpha: float, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Return what the mean of differences is below with a probability of alpha at most; the same seed, the same."""
    counts = Counter(differences)
    if len(counts) > MANY:
        return approximate_limit(fmean(differences), pvariance(differences), len(differences), alpha)
    counts[WORST] += 1
    gamma = Random(seed).gammavariate  # noqa: S311 - statistics, no secrets
    resamples = max(resamples, ceil(_IN_THE_TAIL / alpha))
    means = []
    for _ in range(resamples):
        weights = [gamma(count, 1.0) for count in counts.values()]
        means.append(sum(map(float.__mul__, weights, counts)) / sum(weights))
    means.sort()
    return means[max(0, int(alpha * (resamples + 1)) - 1)]


def approximate_limit(mean: float, variance: float, cases: int, alpha: float) -> float:
    """Return the limit for so many cases by a normal distribution, from the mean and variance over cases."""
    centre = (cases * mean + WORST) / (cases + 1)
    spread = (cases * (variance + (mean - centre) ** 2) + (WORST - centre) ** 2) / (cases + 1)
    return centre - NormalDist().inv_cdf(1 - alpha) * sqrt(spread / (cases + 2))
