"""Percentiles, straight between the two nearest values."""

from collections.abc import Iterable, Sequence

from muster.domain.errors import BadArgument


def percentile(values: Iterable[float], q: float) -> float | None:
    """Give the value below which q percent lie; None when there are no values."""
    ordered = sorted(values)
    return percentile_of_sorted(ordered, q) if ordered else None


def percentile_of_sorted(ordered: Sequence[float], q: float) -> float:
    """Give the same of values that are sorted already, of which there is at least one."""
    if not 0 <= q <= 100:
        raise BadArgument(f"a percentile lies between 0 and 100, and {q:g} does not")
    place = (len(ordered) - 1) * q / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
