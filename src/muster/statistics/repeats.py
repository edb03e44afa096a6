"""Repeated measurements: pass@k, variance within and between cases, and agreement (Cohen's kappa). Pure."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import comb, fsum

from muster.domain.errors import BadArgument

# Epochs, and how many of them passed, of each case; or how many cases have the same numbers.
Counts = Iterable[tuple[int, int]] | Counter[tuple[int, int]]


def pass_at_k(n: int, c: int, k: int) -> float:
    """Give how likely one of k epochs passes, when c of n did."""
    _require(n, c, k)
    return 1 - comb(n - c, k) / comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Give how likely all of k epochs pass, when c of n did."""
    _require(n, c, k)
    return comb(c, k) / comb(n, k)


def mean_pass_at_k(cases: Counts, k: int) -> float | None:
    """Give the mean of pass@k over the cases that have so many epochs; None when none has."""
    return _mean(pass_at_k, cases, k)


def mean_pass_hat_k(cases: Counts, k: int) -> float | None:
    """Give the mean of pass^k over the cases that have so many epochs; None when none has."""
    return _mean(pass_hat_k, cases, k)


def _mean(of: Callable[[int, int, int], float], cases: Counts, k: int) -> float | None:
    alike = {counts: number for counts, number in Counter(cases).items() if counts[0] >= k}
    total = sum(alike.values())
    return fsum(number * of(n, c, k) for (n, c), number in alike.items()) / total if total else None


def _require(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise BadArgument(f"{k} epochs cannot be drawn when {c} of {n} passed")


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceSplit:
    """Variances of a score."""

    case: float | None = None  # between cases
    agent: float | None = None  # between epochs of a case
    judge: float | None = None  # between samples of one answer


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSums:
    """What is needed of one case: sums over its epochs and the samples in them."""

    epochs: int
    samples: int
    total: float  # of all scores
    squares: float  # samples of an epoch times the square of their mean
    crowd: float  # squares of the numbers of samples


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSums:
    """What is needed of the samples, over all cases."""

    squares: float = 0.0  # of the distances from the mean of the answer
    freedom: int = 0


def split_sums(cases: Sequence[CaseSums], judge: JudgeSums) -> VarianceSplit:
    """Split scores of which only sums are kept."""
    samples = sum(case.samples for case in cases)
    epochs = sum(case.epochs for case in cases)
    within = fsum(case.crowd / case.samples for case in cases)
    judged = judge.squares / judge.freedom if judge.freedom else None
    agent = case = None
    if epochs > len(cases):
        freedom = epochs - len(cases)
        squares = fsum(max(0.0, case.squares - case.total**2 / case.samples) for case in cases)
        agent = max(0.0, (squares / freedom - (judged or 0.0)) / ((samples - within) / freedom))
    if len(cases) > 1:
        case = _between(cases, samples, within, judged or 0.0, agent or 0.0)
    return VarianceSplit(case=case, agent=agent, judge=judged)


def _between(cases: Sequence[CaseSums], samples: int, within: float, judge: float, agent: float) -> float:
    mean = fsum(case.total for case in cases) / samples
    squares = fsum(case.samples * (case.total / case.samples - mean) ** 2 for case in cases)
    freedom = len(cases) - 1
    of_agent = (within - fsum(case.crowd for case in cases) / samples) / freedom
    of_case = (samples - fsum(case.samples**2 for case in cases) / samples) / freedom
    return max(0.0, (squares / freedom - judge - of_agent * agent) / of_case)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What two raters have in common; None where it is not defined."""

    n: int
    raw: float | None  # share of ratings that are the same
    kappa: float | None  # 1 is perfect, 0 is chance; undefined when both always say the same one thing


def cohen_kappa(pairs: Iterable[tuple[Hashable, Hashable]]) -> Agreement:
    """Compare what two raters said of the same things."""
    counts = Counter(pairs)
    n = counts.total()
    if not n:
        return Agreement(n=0, raw=None, kappa=None)
    left, right = Counter[Hashable](), Counter[Hashable]()
    for (one, other), number in counts.items():
        left[one] += number
        right[other] += number
    same = sum(number for (one, other), number in counts.items() if one == other)
    chance = sum(left[rating] * right[rating] for rating in left)  # times n²
    kappa = (n * same - chance) / (n * n - chance) if chance < n * n else None
    return Agreement(n=n, raw=same / n, kappa=kappa)
