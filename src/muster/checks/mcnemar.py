"""Whether pairs changed more in one direction than chance would: McNemar's test, exact."""

from math import exp, lgamma, log

from muster.domain.errors import BadArgument


def mcnemar_exact(b: int, c: int) -> float:
    """Give the two-sided p for b pairs that changed one way and c the other."""
    if b < 0 or c < 0:
        raise BadArgument(f"pairs cannot be counted as {b} and {c}")
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
