"""Texts that stand on standard input: an answer, or the field of an order that may be left out there."""

import sys
from dataclasses import replace
from typing import Any, TypeVar

from muster.domain.errors import BadArgument
from muster.domain.kind import WorkKind
from muster.domain.order import order_fields, require_bounds
from muster.domain.run_order import RunOrder

Order = TypeVar("Order", bound=RunOrder)


def read_text(given: str | None, noun: str, remedy: str) -> str:
    """Return a text that was given, or that stands on standard input."""
    if given is None and (sys.stdin is None or sys.stdin.isatty()):
        raise BadArgument(f"no {noun} given", suggestions=(remedy,))
    text = given if given not in (None, "-") else _piped(noun)
    if not text.strip():
        raise BadArgument(f"the {noun} is empty", suggestions=(remedy,))
    return text


def filled(order: Order, kind: WorkKind) -> Order:
    """Return an order with what stands on standard input; raises BadArgument where nothing does."""
    piped = [one.name for one in order_fields(kind.order) if one.declared.piped]
    given: dict[str, Any] = {name: read_text(getattr(order, name), name, kind.example) for name in piped}
    made = replace(order, **given)
    require_bounds(made)
    return made


def _piped(noun: str) -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeError:
        raise BadArgument(f"the {noun} is not UTF-8") from None
