"""Non-inferiority: how much lower the mean of B may be than that of A, by a one-sided confidence limit.

The limit is Gaffke's: the observed differences and one more, the worst that is possible (-1), are weighted at random
(uniform Dirichlet weights), and the limit is the alpha-quantile of the weighted means. For differences of -1 and 0 it
is the exact limit of Clopper and Pearson, and so proven; for other values it is a conjecture (Learned-Miller and
Thomas, arXiv:1905.06208) that the tests check by simulation. Unlike a bootstrap it does not collapse when all
differences are 0. More than 1,000 distinct values get the normal distribution with the same mean and variance.
"""

from collections import Counter
from collections.abc import Sequence
from math import ceil, sqrt
from random import Random
from statistics import NormalDist, fmean, pvariance

from muster.checks.bootstrap import MANY, RESAMPLES

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
