"""What a program answered, before anybody knows what it left in its log."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from muster.domain.call import Stop, ToolCall, Usage
from muster.domain.canonical import Json
from muster.domain.money import MOST_DOLLARS, Microdollars

_UNCOUNTED = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer, read from the output."""

    text: str
    data: Json = None
    stop: Stop = Stop.END
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = _UNCOUNTED
    cost: Microdollars | None = None  # None: it did not say
    session: str = ""
    turns: int = 0


def dollars(value: Json) -> Microdollars | None:
    """Read an amount in dollars as programs say it, rounded up to a microdollar; None when it is no amount."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= MOST_DOLLARS:  # NaN is not either
        return None
    return Microdollars(int((Decimal(str(value)) * 1_000_000).to_integral_value(ROUND_CEILING)))


def count(value: Json) -> int | None:
    """Read a number of things; None when it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def counts(usage: Json) -> Usage:
    """Read the tokens that were used, as far as they are said."""
    said: Mapping[str, Json] = usage if isinstance(usage, dict) else {}
    return Usage(
        input=count(said.get("input_tokens")) or 0,
        output=count(said.get("output_tokens")) or 0,
        cache_read=count(said.get("cache_read_input_tokens")) or 0,
        cache_write=count(said.get("cache_creation_input_tokens")) or 0,
    )
