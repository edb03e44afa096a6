"""What models cost: looked up in the offline tables of genai-prices, or given by the person. Never guessed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from muster.domain.errors import BadConfiguration
from muster.domain.price import Price, Rates

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo, ModelPrice

MAX_SUGGESTIONS = 3  # names that are suggested
PROVIDERS = (  # as the tables call them
    "anthropic", "openai", "openrouter", "google", "groq", "mistral", "deepseek", "x-ai", "together", "fireworks",
    "cerebras", "azure", "aws",
)  # fmt: skip

# What may follow a name that is in the tables: a date, or "latest". Anything else makes another model of it.
_DATED = re.compile(r"(?:[-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest)$")


def price_of(
    provider: str,
    model: str,
    when: datetime,
    *,
    batch: bool = False,
    tier: str = "default",
    until: datetime | None = None,
) -> Price | None:
    """Return the price of a model, or None when the tables do not know exactly this model in this tier.

    With `until` it is that of the time from `when` on: prices that come into force meanwhile are among its others.
    """
    info = _find(provider, model.lower())
    if info is None:
        return None
    found = [_price_at(info, moment, batch=batch, tier=tier) for moment in _moments(info, when, until or when)]
    known = tuple(dict.fromkeys(price for price in found if price is not None))
    if len(known) == 0 or None in found:
        return None  # of a part of the time nothing is known
    return replace(known[0], others=known[1:]) if known[1:] else known[0]


def context_window(provider: str, model: str) -> int | None:
    """Return how many tokens a model takes in and gives out together; None where the tables do not say."""
    info = _find(provider, model.lower())
    return None if info is None else info.context_window


def changes(provider: str, model: str, when: datetime) -> bool:
    """Return whether the price of a model depends on the hour, or is going to change."""
    info = _find(provider, model.lower())
    return info is not None and any(_changes(rule, when) for rule in _rules(info))


def _price_at(info: "ModelInfo", when: datetime, *, batch: bool, tier: str) -> Price | None:
    standard, writes = info.get_prices(when), "embed" not in info.id
    if not batch and tier == "default":
        return _price(standard, writes=writes)
    # The tables fall back to the standard price without a word, so only a price that differs is one of its own.
    other = info.get_prices(when, {"processing": "batch"} if batch else {"service_tier": tier})
    return None if other == standard else _price(other, writes=writes)


def _moments(info: "ModelInfo", when: datetime, until: datetime) -> Sequence[datetime]:
    """Return the beginning of a time, and each moment in it at which a price may change."""
    found = {when}
    days = [when.date() + timedelta(days=number) for number in range((until.date() - when.date()).days + 1)]
    for rule in _rules(info):
        if (start := getattr(rule, "start_date", None)) is not None:
            found.add(datetime.combine(start, time(), UTC))
        for edge in (getattr(rule, "start_time", None), getattr(rule, "end_time", None)):
            if edge is not None:
                found.update(datetime.combine(day, edge if edge.tzinfo else edge.replace(tzinfo=UTC)) for day in days)
    return sorted(moment for moment in found if when <= moment <= until)


def _rules(info: "ModelInfo") -> Iterator[Any]:
    """Yield what says when a price of a model holds."""
    prices = info.prices if isinstance(info.prices, list) else []
    for part in (*prices, *(info.price_variants or ())):
        if part.constraint is not None:
            yield part.constraint


def _changes(rule: Any, when: datetime) -> bool:
    start = getattr(rule, "start_date", None)
    return start is None or start > when.date()


def context_of(provider: str, model: str) -> int | None:
    """Return how many tokens a model reads at most, or None when the tables do not know."""
    info = _find(provider, model.lower())
    return None if info is None else info.context_window


def near_models(provider: str, model: str) -> tuple[str, ...]:
    """Return the models in the tables whose names are most like this one, the likeliest first."""
    names = [info.id for each in _snapshot().providers if each.id == provider for info in each.models]
    return tuple(get_close_matches(model.lower(), names, n=MAX_SUGGESTIONS, cutoff=0.7))


def price_from_toml(
    input: str | float | Decimal,  # noqa: A002 - the names that the person writes
    output: str | float | Decimal,
    cache_read: str | float | Decimal | None = None,
    cache_write: str | float | Decimal | None = None,
    cache_write_1h: str | float | Decimal | None = None,
) -> Price:
    """Make a price from dollars for a million tokens; what is left out costs as much as plain input."""
    plain = _dollars(input)
    written = plain if cache_write is None else _dollars(cache_write)
    return Price(
        base=Rates(
            input=plain,
            output=_dollars(output),
            cache_read=plain if cache_read is None else _dollars(cache_read),
            cache_write=written,
            cache_write_1h=max(plain, written) if cache_write_1h is None else _dollars(cache_write_1h),
        )
    )


def _dollars(amount: str | float | Decimal) -> Decimal:
    try:
        dollars = Decimal(str(amount))
    except ArithmeticError:
        dollars = Decimal("NaN")
    if not dollars.is_finite() or dollars < 0:
        raise BadConfiguration(f"{amount!r} is not a price", suggestions=("use dollars per million tokens: 2.50",))
    return dollars


def _snapshot() -> "DataSnapshot":
    from genai_prices.data_snapshot import get_snapshot  # here, because it takes a quarter of a second

    return get_snapshot()


@lru_cache(maxsize=1024)
def _find(provider: str, model: str) -> "ModelInfo | None":
    if provider not in PROVIDERS:
        return None
    try:
        _, info = _snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    return info if _names(info, model) else None


def _names(info: "ModelInfo", model: str) -> bool:
    """Return whether the tables name exactly this model: they also match by prefix, which confuses different models."""
    literals = {info.id.lower()}
    for kind, value in _clauses(info.match):
        if kind == "regex" and re.fullmatch(value, model):
            return True
        literals.add(value.lower())
    return bool({model, _DATED.sub("", model)} & literals)


def _clauses(match: Any) -> Iterator[tuple[str, str]]:
    for kind in ("equals", "starts_with", "regex"):
        value = getattr(match, kind, None)
        if isinstance(value, str):
            yield kind, value
    for part in (*getattr(match, "or_", ()), *getattr(match, "and_", ())):
        yield from _clauses(part)


def _price(prices: "ModelPrice", *, writes: bool) -> Price | None:
    if prices.input_mtok is None or (prices.output_mtok is None and writes):
        return None
    starts = sorted({tier.start for value in vars(prices).values() for tier in getattr(value, "tiers", ())})
    return Price(
        base=_rates(prices, 0),
        tiers=tuple((start, _rates(prices, start + 1)) for start in starts),
    )


def _rates(prices: "ModelPrice", input_tokens: int) -> Rates:
    plain = _at(prices.input_mtok, input_tokens) or Decimal(0)
    written = _at(prices.cache_write_mtok, input_tokens)
    hour = _at(prices.cache_write_1h_mtok, input_tokens)
    read = _at(prices.cache_read_mtok, input_tokens)
    reasoning = _at(prices.output_reasoning_mtok, input_tokens) or Decimal(0)
    written = plain if written is None else written
    return Rates(
        input=plain,
        output=max(_at(prices.output_mtok, input_tokens) or Decimal(0), reasoning),
        cache_read=plain if read is None else read,
        cache_write=written,
        cache_write_1h=written if hour is None else hour,
    )


def _at(value: Any, input_tokens: int) -> Decimal | None:
    """Read a rate for a request of this size; a plain number holds for every size."""
    if value is None or isinstance(value, Decimal):
        return value
    rate: Decimal = value.base
    for tier in sorted(value.tiers, key=lambda tier: int(tier.start)):
        if input_tokens > tier.start:
            rate = tier.price
    return rate
