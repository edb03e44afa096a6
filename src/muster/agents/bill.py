"""What a call of a process costs: what it says, or what was reserved for it. Pure."""

from dataclasses import dataclass
from decimal import Decimal

from muster.domain.errors import AgentFailed, NotStarted, Paid
from muster.domain.money import NOTHING, Lane, Microdollars

_TOLD = Decimal("0.8")

# How Claude Code, and agents that write like it, name an end at a limit of their own. What they then say of their cost
# counts; after other failures it does not: answers of the API that they could not read were paid too.
OWN_LIMITS = frozenset({"error_max_turns", "error_max_budget_usd", "error_max_structured_output_retries"})


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

    def charge(self, error: AgentFailed, reported: Microdollars | None = None, *, sure: bool = True) -> None:
        """Write into a failure what it cost; a report that is not sure counts only from the reservation on."""
        if reported is not None and (sure or reported >= self.reserved):
            error.paid, error.cost, error.imputed = Paid.YES, reported, self.lane is Lane.IMPUTED
        elif self.reserved and error.paid is Paid.NO and not isinstance(error, NotStarted):
            error.paid = Paid.UNKNOWN
