"""The budgets above the calls of a run: its own, its parents', and the day's."""

from datetime import UTC, datetime

from muster.domain.budget import Level
from muster.domain.money import Microdollars


class Levels:
    """Gives the levels that count now; the day changes under a run that goes on past midnight (UTC)."""

    def __init__(self, runs: tuple[Level, ...], day_cap: Microdollars | None) -> None:
        self.runs = runs
        self._day_cap = day_cap
        self._day = -1
        self._levels: tuple[Level, ...] = ()

    def now(self, at: float) -> tuple[Level, ...]:
        """Give the levels in the order in which they are locked."""
        day = int(at // 86_400)
        if day != self._day:
            name = datetime.fromtimestamp(at, UTC).strftime("day:%Y-%m-%d")
            everything = (*self.runs, Level(id=name, cap=self._day_cap))
            self._day, self._levels = day, tuple(sorted(everything, key=lambda level: level.id))
        return self._levels

    @property
    def capped(self) -> bool:
        """Whether any level has a cap."""
        return any(level.cap is not None for level in (*self.runs, Level(id="day", cap=self._day_cap)))
