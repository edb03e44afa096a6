"""Thresholds: whether an expression holds of some figures.

What is not known is never good enough: a comparison with it is neither true nor false, and only what is true holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from muster.text.expressions import (
    Conjunction,
    Disjunction,
    Expression,
    Name,
    Negation,
    Number,
    Quantity,
    Relation,
    Truth,
    parse,
)
from muster.text.scores import reaches

Values = Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdResult:
    """What became of a threshold."""

    expression: str
    holds: bool
    why: str = ""  # the numbers, or what is not known


def evaluate(expression: str | Expression, values: Values) -> ThresholdResult:
    """Return whether an expression holds of some figures; raises BadArgument when it is none."""
    found = _parsed(expression)
    holds = _truth(found.tree, values) is True
    return ThresholdResult(
        expression=found.text, holds=holds, why=", ".join(_told(name, values) for name in found.names)
    )


def known(expression: str | Expression, values: Values) -> bool:
    """Return whether there is a value for everything that an expression names."""
    return all(_value(name, values) is not None for name in _parsed(expression).names)


def _parsed(expression: str | Expression) -> Expression:
    return parse(expression) if isinstance(expression, str) else expression


def _told(name: str, values: Values) -> str:
    value = _value(name, values)
    return f"{name} is unknown" if value is None else f"{name} is {value:.10g}"


def _value(name: str, values: Values) -> float | None:
    value = values.get(name)
    return value if value is not None and isfinite(value) else None


def _truth(tree: Truth, values: Values) -> bool | None:
    """Return whether it holds; None when that cannot be known."""
    match tree:
        case Relation(sign, left, right):
            return _compared(sign, _quantity(left, values), _quantity(right, values))
        case Negation(part):
            found = _truth(part, values)
            return None if found is None else not found
        case Conjunction(parts):
            return _joined([_truth(part, values) for part in parts], decisive=False)
        case Disjunction(parts):
            return _joined([_truth(part, values) for part in parts], decisive=True)


def _joined(found: list[bool | None], *, decisive: bool) -> bool | None:
    """Join truths of which one of the decisive kind settles it, whatever the others are."""
    if decisive in found:
        return decisive
    return None if None in found else not decisive


def _compared(sign: str, left: float | None, right: float | None) -> bool | None:
    if left is None or right is None:
        return None
    least, most = reaches(left, right), reaches(right, left)
    return {
        "==": least and most,
        "!=": not (least and most),
        ">=": least,
        "<=": most,
        ">": not most,
        "<": not least,
    }[sign]


def _quantity(tree: Quantity, values: Values) -> float | None:
    if isinstance(tree, Number):
        return tree.value
    if isinstance(tree, Name):
        return _value(tree.name, values)
    found = 0.0
    for sign, term in tree.terms:
        value = _quantity(term, values)
        if value is None:
            return None
        found += value if sign == "+" else -value
    return found if isfinite(found) else None  # past all bounds it would compare in any way
