"""What repeated epochs say of the next ones: pass@k, one of k passes, and pass^k, all of k pass. Unbiased."""

from collections import Counter
from collections.abc import Callable, Iterable
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
