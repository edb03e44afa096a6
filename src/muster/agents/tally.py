"""Counting what an attempt used: by the provider's usage; without one its bytes are shown and its cost is unknown."""

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

from muster.agents.payload import to_json
from muster.domain.agent import DEFAULT_MAX_TOKENS
from muster.domain.call import Request, ToolCall, Trace, Usage
from muster.domain.money import NOTHING, Lane, Microdollars
from muster.domain.price import Price

TOOL_TOKENS = 1024  # providers put a text of their own before tools: up to some 800 tokens that we do not send


# Where a provider's usage or a part of it is expected, but any JSON value may stand.
Stray = int | float | str | bool | list[Any] | None


class Ceiling(NamedTuple):
    """The most tokens that one attempt can use."""

    input: int  # a token is never shorter than a byte
    output: int  # max_tokens


class Impossible(Enum):
    """The usage that a provider reports cannot be right: negative, not a number, or beyond 2**53."""

    USAGE = "the usage that was reported cannot be right, so the cost is not known and the whole reservation is booked"


class Charge(NamedTuple):
    """What an answer used and cost."""

    usage: Usage
    cost: Microdollars
    lane: Lane = Lane.BILLED
    trace: Trace | None = None


_UNCHARGED = Charge(Usage(), NOTHING)
_UNTOLD = Trace(note="no usage was reported, so the cost is not known and the whole reservation is booked")
_UNKNOWN = Charge(Usage(), NOTHING, Lane.UNCERTAIN, Trace(note=Impossible.USAGE.value))


def charge_of(
    reported: Usage | Impossible | None,
    price: Price | None,
    ceiling: Ceiling,
    text: str,
    calls: Sequence[ToolCall],
) -> Charge:
    """Return what an answer is charged: by its usage, and the reservation, uncertain, when that is missing or wrong."""
    if reported is Impossible.USAGE:
        return _UNKNOWN if price is not None else _UNCHARGED
    if reported:
        return Charge(reported, cost_of(reported, price))
    usage = count_bytes(ceiling, text, calls)  # what can be seen: a model may have thought for more
    return Charge(usage, NOTHING, Lane.UNCERTAIN, _UNTOLD) if price is not None else Charge(usage, NOTHING)


def ceiling_of(request: Request, size: int) -> Ceiling:
    """Bound what a request can use whose body has so many bytes."""
    hidden = TOOL_TOKENS if request.tools else 0
    return Ceiling(input=size + hidden, output=max_tokens_of(request))


def max_tokens_of(request: Request) -> int:
    """Say how many tokens may be written in answer to a request."""
    return DEFAULT_MAX_TOKENS if request.max_tokens is None else request.max_tokens


def count_bytes(ceiling: Ceiling, text: str, calls: Sequence[ToolCall]) -> Usage:
    """Return the bytes that were sent and that can be seen of an answer, as tokens of a server that reports none."""
    wrote = len(text.encode("utf-8", "surrogatepass"))
    wrote += sum(len(call.name) + len(to_json(dict(call.arguments))) for call in calls)
    return Usage(input=ceiling.input, output=min(wrote, ceiling.output))


def cost_of(usage: Usage, price: Price | None) -> Microdollars:
    """Say what a usage cost; without a price the person chose to spend uncounted."""
    return NOTHING if price is None else price.cost(usage)
