"""Budgets: whether the most an attempt can cost may be reserved now, later, or never."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muster.domain.money import NOTHING, Microdollars, show_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One budget above a call: its run's, a parent run's, or the day's; no cap means no limit."""

    id: str
    cap: Microdollars | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What a budget holds: reserved may come back, settled does not."""

    reserved: Microdollars = NOTHING
    settled: Microdollars = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The amount fits under every cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """It does not fit while others hold reservations at this level."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """It can never fit at this level."""

    level: str
    cap: Microdollars
    settled: Microdollars
    most: Microdollars

    @property
    def message(self) -> str:
        """Say which rule fired, with the numbers."""
        return (
            f"budget {self.level}: {show_usd(self.settled)} of {show_usd(self.cap)} is spent "
            f"and this call can cost up to {show_usd(self.most)}"
        )


Decision = Granted | Wait | Refused

GRANTED = Granted()


def decide(levels: Iterable[Level], balances: Mapping[str, Balance], most: Microdollars) -> Decision:
    """Refuse only when it can never fit; wait while reservations may still come back."""
    waits: Wait | None = None
    for level in levels:
        if level.cap is None:
            continue
        balance = balances[level.id]
        if balance.settled + most > level.cap:
            return Refused(level=level.id, cap=level.cap, settled=balance.settled, most=most)
        if waits is None and balance.settled + balance.reserved + most > level.cap:
            waits = Wait(level=level.id)
    return waits or GRANTED
