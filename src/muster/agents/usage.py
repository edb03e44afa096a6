"""What an attempt used and cost: by the provider's usage, by what a process says, or by what was reserved. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from muster.agents.payload import to_json, tokens_of
from muster.domain.agent import DEFAULT_MAX_TOKENS
from muster.domain.call import Request, ToolCall, Trace, Usage
from muster.domain.errors import AgentFailed, NotStarted, Paid
from muster.domain.money import NOTHING, Lane, Microdollars
from muster.domain.price import Price, Pricing, ServiceTier

TOOL_TOKENS = 1024  # providers put a text of their own before tools: up to some 800 tokens that we do not send


# Where a provider's usage or a part of it is expected, but any JSON value may stand.
Stray = int | float | str | bool | list[Any] | None


class Ceiling(NamedTuple):
    """The most tokens that one attempt can use."""

    input: int  # a token is never shorter than a byte
    output: int  # max_tokens


class Impossible(Enum):
    """The usage that a provider reports cannot be right: negative, not a number, or beyond 2**53."""

    USAGE = "the reported usage is implausible, so the cost is unknown and the whole reservation is booked"


class Charge(NamedTuple):
    """What an answer used and cost."""

    usage: Usage
    cost: Microdollars
    lane: Lane = Lane.BILLED
    trace: Trace | None = None


_UNCHARGED = Charge(Usage(), NOTHING)
_STANDARD = ("standard", "on_demand")  # as Anthropic and Groq call the tier that OpenAI calls default
MAX_TIER_NAME = MAX_GEO = 40  # characters of the names of a tier and of a place
_BOOKED = "so the cost is unknown and the whole reservation is booked"
_UNTOLD = Trace(note=f"no usage was reported, {_BOOKED}")
_NO_INPUT = Trace(note=f"no input tokens were reported for a request with content, {_BOOKED}")
_NO_OUTPUT = Trace(note=f"no output tokens were reported for an answer with content, {_BOOKED}")
_UNKNOWN = Charge(Usage(), NOTHING, Lane.UNCERTAIN, Trace(note=Impossible.USAGE.value))


def charge_of(
    reported: Usage | Impossible | None,
    pricing: Pricing,
    ceiling: Ceiling,
    text: str,
    calls: Sequence[ToolCall],
    *,
    thought: bool = False,
    served: str = "",
    geo: str = "",
) -> Charge:
    """Return what an answer is charged: by its usage, and the reservation, uncertain, when that is missing or wrong.

    `thought` says that the answer has content that is not read, such as thinking; `served` and `geo` are the tier and
    the place that it names.
    """
    if reported is Impossible.USAGE:
        return _UNKNOWN if pricing.standard is not None else _UNCHARGED
    price = pricing.of(served, geo)
    if price is None and pricing.standard is not None:
        usage = count_bytes(ceiling, text, calls) if reported is None else reported
        return Charge(usage, NOTHING, Lane.UNCERTAIN, _unpriced(pricing, served, geo))
    doubt = _UNTOLD if reported is None else _doubt_of(reported, bool(text or calls or thought))
    if reported is not None and doubt is None:
        return Charge(reported, cost_of(reported, price))
    usage = count_bytes(ceiling, text, calls)  # what can be seen: a model may have thought for more
    if price is None:
        return Charge(usage, NOTHING)
    counted = cost_of(reported or Usage(), price)
    if counted > price.most(ceiling.input, ceiling.output):
        return Charge(reported or usage, counted, Lane.UNCERTAIN, doubt)  # it is at least this
    return Charge(usage, NOTHING, Lane.UNCERTAIN, doubt)


def _unpriced(pricing: Pricing, tier: str, geo: str) -> Trace:
    if pricing.of("", geo) is None:
        return Trace(note=f"inference took place in {geo!r}, where its price is not known, {_BOOKED}")
    return Trace(
        note=f"it was served in the tier {tier[:MAX_TIER_NAME]!r}, whose price is not known, {_BOOKED}; in the section "
        'of the agent, service_tier = "default" keeps it in the standard tier, and tier_price tells the price'
    )


def tier_in(told: Any) -> str:
    """Return the tier of service that an answer names; empty where it names none."""
    if not isinstance(told, str):
        return ""
    return ServiceTier.DEFAULT if told in _STANDARD else told[:MAX_TIER_NAME]


def geo_in(told: Any) -> str:
    """Return where an answer says that inference took place; empty where it says nothing."""
    return told[:MAX_GEO].lower() if isinstance(told, str) else ""


def thinking_of(told: Any, wrote: int) -> int:
    """Return how many of the tokens that were written are thinking; a count that cannot be right counts as none."""
    found = tokens_of(told)
    return found[0] if found is not None and found[0] <= wrote else 0


def _doubt_of(usage: Usage, answered: bool) -> Trace | None:
    """Return why a usage cannot be right: a request always has content, and content is never free."""
    if not usage.all_input:
        return _NO_INPUT
    return _NO_OUTPUT if answered and not usage.output else None


Counts = TypeVar("Counts")


def newer_counts(old: Counts, new: Counts) -> Counts:
    """Let later counts of a stream replace earlier ones: they are totals, and leave out what did not change.

    A later 0 replaces nothing: what was counted once was used.
    """
    if new is None or (type(new) in (int, float) and new == 0 and old is not None):
        return old
    names = getattr(new, "__struct_fields__", None)
    if names is None or type(old) is not type(new):
        return new
    return type(new)(**{name: newer_counts(getattr(old, name), getattr(new, name)) for name in names})


def ceiling_of(request: Request, size: int) -> Ceiling:
    """Bound what a request can use whose body has so many bytes."""
    hidden = TOOL_TOKENS if request.tools else 0
    return Ceiling(input=size + hidden, output=max_tokens_of(request))


def max_tokens_of(request: Request) -> int:
    """Return how many tokens may be written in answer to a request."""
    return DEFAULT_MAX_TOKENS if request.max_tokens is None else request.max_tokens


def count_bytes(ceiling: Ceiling, text: str, calls: Sequence[ToolCall]) -> Usage:
    """Return the bytes that were sent and that can be seen of an answer, as tokens of a server that reports none."""
    wrote = len(text.encode("utf-8", "surrogatepass"))
    wrote += sum(len(call.name) + len(to_json(dict(call.arguments))) for call in calls)
    return Usage(input=ceiling.input, output=min(wrote, ceiling.output))


def cost_of(usage: Usage, price: Price | None) -> Microdollars:
    """Return what a usage cost; nothing without a price, since uncounted costs were allowed."""
    return NOTHING if price is None else price.cost(usage)


_TOLD = Decimal("0.8")

# How Claude Code, and agents that write like it, name an end at a limit of their own. What they then say of their cost
# counts; after other failures it does not: answers of the API that they could not read were paid too.
OWN_LIMITS = frozenset({"error_max_turns", "error_max_budget_usd", "error_max_structured_output_retries"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessBill:
    """The most that a call can cost, and who pays."""

    most: Microdollars | None  # None: nobody knows
    lane: Lane = Lane.BILLED

    @property
    def reserved(self) -> Microdollars:
        """What is set aside for a call."""
        return NOTHING if self.most is None else self.most

    @property
    def told(self) -> str:
        """The limit that the agent is told, in dollars: less than the reservation, since it looks after the turn."""
        micro = (Decimal(self.reserved) * _TOLD).to_integral_value()
        return f"{(micro / 1_000_000).normalize():f}"

    def settle(self, reported: Microdollars | None) -> tuple[Microdollars, Lane]:
        """Return what an answered call cost; one without usage is booked at its whole reservation."""
        if reported is not None:
            return reported, self.lane
        return (self.reserved, Lane.UNCERTAIN) if self.reserved else (NOTHING, self.lane)

    def charge(self, error: AgentFailed, reported: Microdollars | None = None, *, sure: bool = True) -> None:
        """Write into a failure what it cost; a report that is not sure counts only from the reservation on."""
        if reported is not None and (sure or reported >= self.reserved):
            error.paid, error.cost, error.imputed = Paid.YES, reported, self.lane is Lane.IMPUTED
        elif self.reserved and error.paid is Paid.NO and not isinstance(error, NotStarted):
            error.paid = Paid.UNKNOWN
