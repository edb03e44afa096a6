"""The audit: what was paid, that is, every answer that was computed and counted, whether or not the client got it."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any

from muster.domain.call import Usage
from muster.domain.canonical import Json, JsonObject
from muster.domain.money import NOTHING, Microdollars, from_usd, to_usd
from muster.domain.price import Price, Rates
from muster.sim.protocols.ask import DEFAULT_TIER, FAST, FLEX, GLOBAL, PRIORITY, US, ThinkingPlan

# Play money for models without a price: round figures, a millionth of a dollar for a token that goes in.
PLAY_PRICE = Price(
    base=Rates(
        input=Decimal("1"),
        output=Decimal("5"),
        cache_read=Decimal("0.1"),
        cache_write=Decimal("1.25"),
        cache_write_1h=Decimal("2"),
    )
)

BATCH = "batch"
# What other tiers cost, as a part of the standard price, where there is no price for them.
FACTORS = {BATCH: Decimal("0.5"), FLEX: Decimal("0.5"), PRIORITY: Decimal(2), FAST: Decimal(2)}
GEO_FACTORS = {US: Decimal("1.1")}  # of inference that is kept in a place


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens that were paid; `cache_write` holds both lifetimes."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingCounts:
    """Thinking that was paid, and thinking blocks (or items of reasoning) that came back."""

    tokens: int = 0
    returned: int = 0
    missing: int = 0  # answers that used tools and came back without it
    mismatched: int = 0  # of another model, from elsewhere, or changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What was paid and what was seen since the start or the last reset."""

    calls: int = 0
    by_digest: Mapping[str, int] = field(default_factory=dict)
    batches: tuple[Any, ...] = ()
    in_flight: int = 0  # being answered now
    max_in_flight: int = 0
    tokens: Tokens = Tokens()
    cost: Microdollars = NOTHING
    cost_by_digest: Mapping[str, int] = field(default_factory=dict)  # in microdollars
    requests: int = 0  # refused ones too
    statuses: Mapping[str, int] = field(default_factory=dict)  # answers begun, by status
    faults: Mapping[str, int] = field(default_factory=dict)  # played, by kind
    play_money: Mapping[str, int] = field(default_factory=dict)  # answers that were charged play money, by model
    thinking: ThinkingCounts = ThinkingCounts()
    cost_by_tier: Mapping[str, int] = field(default_factory=dict)  # in microdollars; members of batches have their own


class AuditLog:
    """Writes the audit; grows only by distinct digests."""

    def __init__(self, prices: Mapping[str, Price], price_of: Callable[[str, str], Price | None]) -> None:
        self._prices, self._price_of = prices, price_of
        self.in_flight = 0
        self.clear()

    def clear(self) -> None:
        """Start over; what is in flight stays in flight."""
        self.requests = 0
        self._max_in_flight = self.in_flight
        self._costs: Counter[str] = Counter()
        self._by_digest: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._play_money: Counter[str] = Counter()  # answers of models without a price
        self._thinking: Counter[str] = Counter()
        self._tiers: Counter[str] = Counter()  # costs

    def kept(self) -> dict[str, dict[str, int]]:
        """Return every count, for a state that is kept."""
        return {
            "costs": dict(self._costs),
            "by_digest": dict(self._by_digest),
            "tokens": dict(self._tokens),
            "statuses": dict(self._statuses),
            "faults": dict(self._faults),
            "play_money": dict(self._play_money),
            "thinking": dict(self._thinking),
            "tiers": dict(self._tiers),
            "seen": {"requests": self.requests, "max_in_flight": self._max_in_flight},
        }

    def restore(self, kept: Mapping[str, Mapping[str, int]]) -> None:
        """Go on from counts that were kept."""
        self.requests, self._max_in_flight = kept["seen"]["requests"], kept["seen"]["max_in_flight"]
        self._costs = Counter(kept["costs"])
        self._by_digest = Counter(kept["by_digest"])
        self._tokens = Counter(kept["tokens"])
        self._statuses = Counter(kept["statuses"])
        self._faults = Counter(kept["faults"])
        # A state of an earlier version does not have these.
        self._play_money = Counter(kept.get("play_money", {}))
        self._thinking = Counter(kept.get("thinking", {}))
        self._tiers = Counter(kept.get("tiers", {}))

    def enter(self) -> None:
        """Note that a request is being answered."""
        self.in_flight += 1
        self._max_in_flight = max(self._max_in_flight, self.in_flight)

    def leave(self) -> None:
        """Note that it is answered, or that its client went away."""
        self.in_flight -= 1

    def status(self, status: int) -> None:
        """Note the status of an answer."""
        self._statuses[str(status)] += 1

    def fault(self, kind: str) -> None:
        """Note a fault."""
        self._faults[kind] += 1

    def pay(
        self,
        digest: str,
        model: str,
        usage: Usage,
        *,
        tier: str = DEFAULT_TIER,
        geo: str = GLOBAL,
        batch: bool = False,
    ) -> None:
        """Count an answer; in a batch it costs half."""
        self._by_digest[digest] += 1
        self._tokens["input"] += usage.input
        self._tokens["output"] += usage.output
        self._tokens["cache_read"] += usage.cache_read
        self._tokens["cache_write"] += usage.cache_write + usage.cache_write_1h
        name = BATCH if batch else tier
        cost = self._price(model, name).times(GEO_FACTORS.get(geo, Decimal(1))).cost(usage)
        self._costs[digest] += cost
        self._tiers[name] += cost

    def look(self, plan: ThinkingPlan) -> None:
        """Count the thinking that came back with a request."""
        self._thinking["returned"] += plan.returned
        self._thinking["missing"] += plan.missing
        self._thinking["mismatched"] += plan.mismatched

    def think(self, tokens: int) -> None:
        """Count the thinking before an answer, which is part of its output."""
        self._thinking["tokens"] += tokens

    def audit(self, batches: tuple[Json, ...] = ()) -> Audit:
        """Return the audit as it stands."""
        return Audit(
            calls=self._by_digest.total(),
            by_digest=dict(self._by_digest),
            batches=batches,
            in_flight=self.in_flight,
            max_in_flight=self._max_in_flight,
            tokens=Tokens(**self._tokens),
            cost=Microdollars(self._costs.total()),
            cost_by_digest=dict(self._costs),
            requests=self.requests,
            statuses=dict(self._statuses),
            faults=dict(self._faults),
            play_money={model: number for model, number in self._play_money.items() if number},
            thinking=ThinkingCounts(**self._thinking),
            cost_by_tier=dict(self._tiers),
        )

    def _price(self, model: str, tier: str) -> Price:
        """Return the price of a model in a tier: its own, a part of its standard price, or play money."""
        own = next((price for glob, price in self._prices.items() if fnmatchcase(model, glob)), None)
        listed = None if own or tier in (DEFAULT_TIER, BATCH) else self._price_of(model, tier)
        if listed is not None:
            return listed
        price = own or self._price_of(model, DEFAULT_TIER)
        self._play_money[model] += price is None
        return (price or PLAY_PRICE).times(FACTORS.get(tier, Decimal(1)))


def audit_json(audit: Audit) -> JsonObject:
    """Return an audit as JSON."""
    return {
        "calls": audit.calls,
        "by_digest": audit.by_digest,
        "batches": list(audit.batches),
        "in_flight": audit.in_flight,
        "max_in_flight": audit.max_in_flight,
        "tokens": {name: getattr(audit.tokens, name) for name in ("input", "output", "cache_read", "cache_write")},
        "cost_usd": to_usd(audit.cost),
        "cost_usd_by_digest": {name: to_usd(cost) for name, cost in audit.cost_by_digest.items()},
        "requests": audit.requests,
        "statuses": audit.statuses,
        "faults": audit.faults,
        "play_money": audit.play_money,
        "thinking": asdict(audit.thinking),
        "cost_usd_by_tier": {name: to_usd(cost) for name, cost in audit.cost_by_tier.items()},
    }


def read_audit(found: Mapping[str, Any]) -> Audit:
    """Read an audit back from JSON."""
    apart = ("tokens", "cost_usd", "cost_usd_by_digest", "batches", "thinking", "cost_usd_by_tier")
    rest = {name: value for name, value in found.items() if name not in apart}
    return Audit(
        tokens=Tokens(**found["tokens"]),
        cost=_microdollars(found["cost_usd"]),
        cost_by_digest={name: _microdollars(cost) for name, cost in found["cost_usd_by_digest"].items()},
        batches=tuple(found["batches"]),
        thinking=ThinkingCounts(**found["thinking"]),
        cost_by_tier={name: _microdollars(cost) for name, cost in found["cost_usd_by_tier"].items()},
        **rest,
    )


def _microdollars(dollars: float) -> Microdollars:
    return from_usd(round(Decimal(str(dollars)), 6))
