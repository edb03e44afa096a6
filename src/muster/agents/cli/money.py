"""What a call of a CLI agent costs: what it says, or what was reserved for it."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from muster.domain.canonical import Json
from muster.domain.errors import AgentFailed, NotStarted, Paid
from muster.domain.money import MOST_DOLLARS, NOTHING, Lane, Microdollars

_NOISE = Decimal("1e-9")  # dollars; what is finer comes from sums of floating-point numbers
_TOLD = Decimal("0.8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
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
        """Say what an answered call cost; one that does not tell is booked as all that was reserved."""
        if reported is not None:
            return reported, self.lane
        return (self.reserved, Lane.UNCERTAIN) if self.reserved else (NOTHING, self.lane)

    def charge(self, error: AgentFailed, reported: Microdollars | None) -> None:
        """Write into a failure what it cost, as far as anybody knows."""
        if reported is not None:
            error.paid, error.cost, error.imputed = Paid.YES, reported, self.lane is Lane.IMPUTED
        elif self.reserved and not isinstance(error, NotStarted):
            error.paid = Paid.UNKNOWN


def microdollars_of(values: list[Json]) -> Microdollars | None:
    """Add up amounts in dollars, rounded up to a microdollar; None when none of them is an amount."""
    amounts = [amount for amount in map(_amount, values) if amount is not None]
    if not amounts:
        return None
    micro = min(sum(amounts, Decimal()), Decimal(MOST_DOLLARS)).quantize(_NOISE) * 1_000_000
    return Microdollars(int(micro.to_integral_value(ROUND_CEILING)))


def _amount(value: Json) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        dollars = Decimal(str(value))
    except ArithmeticError:
        return None
    return dollars if dollars.is_finite() and 0 <= dollars <= MOST_DOLLARS else None
