"""Money in integer microdollars: amounts, the lanes they are booked in, and prices of tokens."""

import re
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, NewType

from muster.domain.errors import BadArgument

if TYPE_CHECKING:
    from decimal import Decimal

Microdollars = NewType("Microdollars", int)

NOTHING = Microdollars(0)
MAX_USD = 1_000_000  # of one budget
MAX_DOLLARS = 1_000_000_000
MAX_COST = Microdollars(MAX_DOLLARS * 1_000_000)  # of one cost; sums of them fit into 64 bits

_AMOUNT = re.compile(r"-?[0-9]+(?:\.[0-9]*)?|-?\.[0-9]+")


class Lane(StrEnum):
    """How sure an amount is, and who pays it."""

    BILLED = "billed"  # a provider charges this
    IMPUTED = "imputed"  # a subscription covers it; what it would have cost
    UNCERTAIN = "uncertain"  # the outcome is unknown: the most it can have cost


def from_usd(amount: "str | int | float | Decimal", argument: str = "the amount") -> Microdollars:
    """Read an amount in dollars, exactly; finer than a microdollar is refused. Errors name the argument.

    A text must be written in the digits 0 to 9 with an optional point: no exponent, no underscores.
    """
    from decimal import Decimal, InvalidOperation  # the bounds of orders are here too, and no help needs it

    if isinstance(amount, str) and _AMOUNT.fullmatch(amount) is None:
        raise _not_an_amount(amount, argument)
    try:
        dollars = Decimal(str(amount))
    except InvalidOperation:
        dollars = Decimal("NaN")
    if not dollars.is_finite() or dollars.copy_abs() > MAX_DOLLARS:
        raise _not_an_amount(amount, argument)
    micro = dollars * 1_000_000
    whole = int(micro)
    if micro != whole:
        raise BadArgument(f"must have at most six decimal places, not {amount}", argument=argument)
    return Microdollars(whole)


def is_cost(value: object) -> bool:
    """Return whether a value can be the cost of a call: an integer of microdollars, from zero to a billion dollars."""
    return type(value) is int and 0 <= value <= MAX_COST


def _not_an_amount(amount: object, argument: str) -> BadArgument:
    return BadArgument(
        f"must be an amount in dollars, not {amount!r}", argument=argument, suggestions=("write it like 2.50",)
    )


def to_usd(amount: int) -> float:
    """Return an amount in dollars, for JSON."""
    return amount / 1_000_000


def show_usd(amount: int) -> str:
    """Write an amount for a person: cents when it is round, all six places when it is not."""
    return _spelled(amount, _places(amount))


def usd_format(*amounts: int | None) -> Callable[[int], str]:
    """Return what writes these amounts with one number of places, as many as the longest of them needs."""
    return partial(_spelled, places=max((_places(amount) for amount in amounts if amount is not None), default=2))


def _places(amount: int) -> int:
    return 2 if amount % 10_000 == 0 else 4 if amount % 100 == 0 else 6


def _spelled(amount: int, places: int) -> str:
    return f"{'-' * (amount < 0)}${abs(amount) / 1_000_000:.{places}f}"
