"""How far two raters agree, and how far beyond chance (Cohen's kappa)."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass


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
