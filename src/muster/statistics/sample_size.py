"""How many cases, or epochs, a comparison would need to be decided: a plan, from the variance that was observed.

The variance of a mean over n cases of k epochs each is (between + within / k) / n: more cases lessen all of it, more
epochs only what lies within cases, so that epochs alone can be unable to decide. It is that of two-stage samples
(Cochran, Sampling Techniques, chapter 10), and used so for evaluations by Miller, Adding Error Bars to Evals
(arXiv:2411.00640).

It assumes that the observed difference is the true one and asks for a decision with a probability of 80 %. It is an
estimate from few numbers and not a promise; a comparison that is repeated until it decides sounds more false alarms.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from statistics import NormalDist

from muster.statistics.paired_tests import approximate_limit

POWER = 0.8
MAX_CASES = 1_000_000
MAX_EPOCHS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A difference of one measure: its mean over cases, and its variance between cases and between epochs of a case."""

    mean: float
    cases: int
    epochs: float  # of a case, on average
    between: float
    within: float | None  # of one epoch; None: no case has two

    def variance(self, epochs: float | None = None) -> float:
        """Return the variance of a case's difference, for the epochs it has or for another number of them."""
        return self.between + (self.within or 0.0) / (epochs or self.epochs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What would probably decide; None: no number below the limits would, or it cannot be estimated."""

    more_cases: int | None
    more_epochs: int | None
    epochs_known: bool  # whether two epochs of a case were compared, so that their variance is known
    epochs_decide: bool  # whether any number of epochs of the same cases would, beyond the limits too


Decides = Callable[[Spread, int, float | None], bool]


def spread_of(cases: Sequence[Sequence[float]]) -> Spread:
    """Return mean and variances of the differences, given for each case by epoch."""
    means = [sum(case) / len(case) for case in cases]
    mean, epochs = sum(means) / len(means), len(cases) / sum(1 / len(case) for case in cases)
    total = _variance(means) if len(means) > 1 else 0.0
    repeated = [case for case in cases if len(case) > 1]
    if not repeated:
        return Spread(mean=mean, cases=len(cases), epochs=1, between=total, within=None)
    freedom = sum(len(case) - 1 for case in repeated)
    within = sum((len(case) - 1) * _variance(case) for case in repeated) / freedom
    return Spread(mean=mean, cases=len(cases), epochs=epochs, between=max(0.0, total - within / epochs), within=within)


def needed_for_margin(spreads: Sequence[Spread], margin: float, alpha: float, tests: int = 2) -> Needed:
    """Return what would show that B is not worse by more than the margin, in every measure; else that it is worse.

    The tests that would show the latter share alpha.
    """
    if all(one.mean > -margin for one in spreads):
        return _needed(spreads, all, lambda one, n, epochs: _clears(one, n, epochs, margin, alpha))
    return _needed(spreads, any, lambda one, n, epochs: _differs(one, n, epochs, alpha / tests))


def needed_for_change(spreads: Sequence[Spread], threshold: float, alpha: float, tests: int = 2) -> Needed:
    """Return what would show a difference in some measure, or that there is none in any: whichever takes less.

    So many tests share alpha.
    """
    different = _needed(spreads, any, lambda one, n, epochs: _differs(one, n, epochs, alpha / tests))
    alike = _needed(spreads, all, lambda one, n, epochs: _alike(one, n, epochs, threshold, alpha))
    return Needed(
        more_cases=_least(different.more_cases, alike.more_cases),
        more_epochs=_least(different.more_epochs, alike.more_epochs),
        epochs_known=different.epochs_known,
        epochs_decide=different.epochs_decide or alike.epochs_decide,
    )


def _clears(one: Spread, cases: int, epochs: float | None, margin: float, alpha: float) -> bool:
    variance = one.variance(epochs)
    limit = approximate_limit(one.mean, variance, cases, alpha)
    return limit - _deviations(POWER) * sqrt(variance / cases) > -margin


def _differs(one: Spread, cases: int, epochs: float | None, alpha: float) -> bool:
    """Return whether a test at alpha would see the difference.

    It goes by the signs of whole cases: n of them that all point one way have a p of 2 / 2**n, however many the epochs.
    """
    if 2.0 ** (1 - cases) > alpha:
        return False
    sure = _deviations(1 - alpha / 2) + _deviations(POWER)
    return one.mean != 0 and abs(one.mean) > sure * sqrt(one.variance(epochs) / cases)


def _alike(one: Spread, cases: int, epochs: float | None, threshold: float, alpha: float) -> bool:
    sure = _deviations(1 - alpha / 2) + _deviations((1 + POWER) / 2)
    return abs(one.mean) + sure * sqrt(one.variance(epochs) / cases) <= threshold


def _needed(spreads: Sequence[Spread], of: Callable[[Sequence[bool]], bool], decides: Decides) -> Needed:
    cases, epochs = spreads[0].cases, round(spreads[0].epochs)
    known = all(one.within is not None for one in spreads)
    total = smallest(lambda n: of([decides(one, n, None) for one in spreads]), cases, MAX_CASES)
    deepest = known and of([decides(one, cases, inf) for one in spreads])
    deeper = None
    if deepest:
        deeper = smallest(lambda k: of([decides(one, cases, k) for one in spreads]), epochs, MAX_EPOCHS)
    return Needed(
        more_cases=None if total is None else total - cases,
        more_epochs=None if deeper is None else deeper - epochs,
        epochs_known=known,
        epochs_decide=deepest,
    )


def smallest(holds: Callable[[int], bool], low: int, most: int) -> int | None:
    """Return, by bisection, the smallest number above `low` from which on something holds."""
    high = low + 1
    while not holds(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _least(one: int | None, other: int | None) -> int | None:
    found = [number for number in (one, other) if number is not None]
    return min(found, default=None)


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _deviations(probability: float) -> float:
    return NormalDist().inv_cdf(probability)
