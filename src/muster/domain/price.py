"""What tokens cost: a price list for one model, the two sums made with it, and the prices of tiers and places."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from functools import cached_property

from muster.domain.call import Usage
from muster.domain.money import MAX_COST, Microdollars


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Dollars for a million tokens, which is microdollars for one."""

    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal
    cache_write_1h: Decimal

    def cost(self, usage: Usage) -> Microdollars:
        """Sum up a usage, rounded up once to a whole microdollar, and never above a billion dollars."""
        scale, plain, output, read, write, write_1h = self._whole
        exact = plain * usage.input + output * usage.output
        if usage.cache_read or usage.cache_write or usage.cache_write_1h:
            exact += read * usage.cache_read + write * usage.cache_write + write_1h * usage.cache_write_1h
        return min(Microdollars(-(-exact // scale)), MAX_COST)  # a store counts in 64 bits

    def times(self, factor: Decimal) -> "Rates":
        """Return these rates, each multiplied."""
        return Rates(
            input=self.input * factor,
            output=self.output * factor,
            cache_read=self.cache_read * factor,
            cache_write=self.cache_write * factor,
            cache_write_1h=self.cache_write_1h * factor,
        )

    @property
    def dearest_input(self) -> Decimal:
        """The most that one token going in can cost."""
        return max(self.input, self.cache_read, self.cache_write, self.cache_write_1h)

    @cached_property  # which is why there are no slots
    def _whole(self) -> tuple[int, ...]:
        """What to divide by, and the rates as whole numbers: every answer is priced, and whole numbers are quick."""
        rates = (self.input, self.output, self.cache_read, self.cache_write, self.cache_write_1h)
        places = max(0, *(-int(rate.as_tuple().exponent) for rate in rates))
        return 10**places, *(int(rate.scaleb(places)) for rate in rates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Rates, and other rates once more tokens than `above` go in.

    Where a price depends on the hour, or changes soon, the dearest of those that may hold counts.
    """

    base: Rates
    tiers: tuple[tuple[int, Rates], ...] = ()  # (above, rates), ascending
    others: tuple["Price", ...] = ()  # that may hold instead

    def rates(self, input_tokens: int) -> Rates:
        """Choose the rates for a request of this size."""
        chosen = self.base
        for above, rates in self.tiers:
            if input_tokens <= above:
                break
            chosen = rates
        return chosen

    def cost(self, usage: Usage) -> Microdollars:
        """Return what a usage cost."""
        cost = (self.rates(usage.all_input) if self.tiers else self.base).cost(usage)
        return max(cost, *(other.cost(usage) for other in self.others)) if self.others else cost

    def times(self, factor: Decimal) -> "Price":
        """Return this price with every rate multiplied."""
        return Price(
            base=self.base.times(factor),
            tiers=tuple((above, rates.times(factor)) for above, rates in self.tiers),
            others=tuple(other.times(factor) for other in self.others),
        )

    def most(self, input_tokens: int, output_tokens: int) -> Microdollars:
        """Return the maximum cost of a request with at most so many tokens in and out."""
        candidates = [self.base] + [rates for above, rates in self.tiers if input_tokens > above]
        exact = max(rates.dearest_input for rates in candidates) * input_tokens
        exact += max(rates.output for rates in candidates) * output_tokens
        most = Microdollars(int(exact.to_integral_value(ROUND_CEILING)))
        if not self.others:
            return most
        return max((most, *(other.most(input_tokens, output_tokens) for other in self.others)))


class ServiceTier(StrEnum):
    """How soon a provider serves a request, and at which price."""

    AUTO = "auto"  # as the settings of the account at the provider say
    DEFAULT = "default"
    FLEX = "flex"  # cheaper, slower, and it may be refused
    PRIORITY = "priority"
    FAST = "fast"


class InferenceGeo(StrEnum):
    """Where inference may take place; an answer names where it did."""

    GLOBAL = "global"  # anywhere
    US = "us"


US_FACTOR = Decimal("1.1")  # of the global price: what inference costs that is kept in the US
_NO_GEO = "not_available"  # named by answers of models whose inference cannot be kept anywhere
_MAY_FLEX = ("", ServiceTier.AUTO, ServiceTier.FLEX)  # tiers that are asked for and can be served by flex
PRICED_TIERS = (ServiceTier.FLEX, ServiceTier.PRIORITY, ServiceTier.FAST)  # those that can have a price of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """What the calls of an agent cost, in the tier of service that it asks for and in those that may serve them."""

    standard: Price | None = None  # None: not known
    tiers: Mapping[str, Price] = field(default_factory=dict)  # other prices, by tier
    asked: str | None = ""  # empty: no tier is named; None: there are none, as in a batch
    unnamed: str = ""  # the tier that a request asks for by naming none, where the provider says so
    geo: str = ""  # where inference is asked for; empty: the account decides
    us: "Pricing | None" = None  # where inference in the US has other prices: those

    def with_us(self, geo: str) -> "Pricing":
        """Return these prices for a model whose inference can be kept in the US, which costs more."""
        tiers = {tier: price.times(US_FACTOR) for tier, price in self.tiers.items()}
        standard = self.standard and self.standard.times(US_FACTOR)
        return replace(self, geo=geo, us=replace(self, standard=standard, tiers=tiers))

    def in_tier(self, tier: str) -> Price | None:
        """Return the price in a tier of service; None where it is not known."""
        return self.standard if tier in ("", ServiceTier.DEFAULT) else self.tiers.get(tier)

    def tier_told(self, served: str) -> str:
        """Return the tier that an answer names; nothing in a batch, which is one itself."""
        return "" if self.asked is None else served

    @property
    def flex_instead_of(self) -> Price | None:
        """Return the standard price where the tier flex may serve instead; None where it is not asked to."""
        return self.standard if ServiceTier.FLEX in self.tiers and self.asked in _MAY_FLEX else None

    @property
    def reserved(self) -> tuple[Price, ...]:
        """Return the prices of which the dearest is reserved; none where the tier that is asked for has no price."""
        return self._dearest_geo._tier_prices

    @property
    def _tier_prices(self) -> tuple[Price, ...]:
        wanted = "" if self.asked is None else self.asked or self.unnamed
        if wanted == ServiceTier.AUTO and self.standard is not None:
            return (self.standard, *self.tiers.values())
        price = self.in_tier(wanted)
        return () if price is None else (price,)

    def of(self, served: str, geo: str = "") -> Price | None:
        """Return the price of an answer; of the tiers and places that it leaves open, the dearest that may be."""
        priced = self._in_geo(geo)
        return None if priced is None else priced._of_tier(served)

    def _in_geo(self, geo: str) -> "Pricing | None":
        """Return the prices in the place that an answer names; None for one that nobody knows."""
        if self.us is None or geo in (InferenceGeo.GLOBAL, _NO_GEO):
            return self
        if not geo:
            return self._dearest_geo
        return self.us if geo == InferenceGeo.US else None

    @property
    def _dearest_geo(self) -> "Pricing":
        """Return the prices in the dearest place where inference may take place."""
        return self if self.us is None or self.geo == InferenceGeo.GLOBAL else self.us

    def _of_tier(self, served: str) -> Price | None:
        if served:
            return self.in_tier(served)
        standard = () if self.standard is None else (self.standard,)
        return max((*standard, *self._tier_prices), key=_dearness, default=None)

    def most(self, input_tokens: int, output_tokens: int) -> Microdollars:
        """Return the maximum cost of a request with at most so many tokens in and out."""
        first, *others = self.reserved
        most = first.most(input_tokens, output_tokens)
        return max(most, *(price.most(input_tokens, output_tokens) for price in others)) if others else most


def _dearness(price: Price) -> tuple[Decimal, Decimal]:
    return max((one.base.output, one.base.input) for one in (price, *price.others))
