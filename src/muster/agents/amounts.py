"""Numbers as agents report them: dollars and counts, one or several to be added up. Pure.

Null says nothing; anything else that is no such number makes the whole sum unknown.
"""

from decimal import ROUND_CEILING, Decimal
from typing import Any

from muster.domain.money import MOST_DOLLARS, Microdollars

MOST_COUNT = 2**53  # beyond it, numbers in JSON are not exact

_NOISE = Decimal("1e-9")  # dollars; what is finer comes from sums of floating-point numbers


def microdollars_of(*values: Any) -> Microdollars | None:
    """Read dollars, as numbers or as texts, rounded up to a microdollar; None when they are not known."""
    dollars = _sum(values, MOST_DOLLARS)
    if dollars is None:
        return None
    return Microdollars(int((dollars.quantize(_NOISE) * 1_000_000).to_integral_value(ROUND_CEILING)))


def count_of(*values: Any) -> int | None:
    """Read a number of things, such as tokens; None when it is not known."""
    count = _sum(values, MOST_COUNT) if all(value is None or _is_whole(value) for value in values) else None
    return None if count is None else int(count)


def tokens_of(*values: Any) -> tuple[int, ...] | None:
    """Read counts of tokens, null as 0; None when one of them is not a count."""
    counts = [0 if value is None else value for value in values]
    return tuple(map(int, counts)) if all(map(_is_count, counts)) else None


def _is_count(value: Any) -> bool:
    return (type(value) is int or (type(value) is float and value.is_integer())) and 0 <= value <= MOST_COUNT


def _sum(values: tuple[Any, ...], most: int) -> Decimal | None:
    numbers = [_number(value) for value in values if value is not None]
    known = [number for number in numbers if number is not None and 0 <= number <= most]
    total = sum(known, Decimal())
    return total if known and len(known) == len(numbers) and total <= most else None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        number = Decimal(str(value) if isinstance(value, float) else value)
    except ArithmeticError:
        return None
    return number if number.is_finite() else None
