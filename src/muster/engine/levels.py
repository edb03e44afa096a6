"""The budgets above the calls of a run: its own, its lineage's, its parents', and the day's."""

from datetime import UTC, datetime

from muster.domain.budget import Budgets, Level, lowest, run_level
from muster.domain.money import Microdollars
from muster.domain.run import Run
from muster.store.base import Store


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


async def budgets_of(store: Store, run: Run) -> Budgets:
    """Return the budgets that a run was stored with; an older one has a budget of its own, below its parents'."""
    if run.budgets is not None:
        return run.budgets
    above = []
    parent = run.parent
    while parent is not None:
        found = await store.runs.get(parent)
        if found is None:
            break
        above.append(run_level(found.id))
        parent = found.parent
    return Budgets(lineage=run_level(run.id), above=tuple(above))


async def levels_of(store: Store, run: Run, day_cap: Microdollars | None) -> Levels:
    """Return the levels of a run; the day may cost what it might when the run was created, or less if set here."""
    budgets = await budgets_of(store, run)
    runs = await store.runs.levels((run_level(run.id), budgets.lineage, *budgets.above))
    return Levels(tuple(runs), lowest(day_cap, budgets.day_cap))
