"""The budgets above the calls of a run: its own, its lineage's, its parents', and the day's."""

from datetime import UTC, datetime

from muster.domain.budget import Budgets, Excess, Level, overdraft, run_level
from muster.domain.errors import Overdraft
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import Run
from muster.store.base import Store


class Levels:
    """Gives the levels that count now; the day changes under a run that goes on past midnight (UTC)."""

    def __init__(self, runs: tuple[Level, ...], day_cap: Microdollars | None) -> None:
        """Take the levels of runs, that of the lineage first."""
        self.runs = runs
        self._day_cap = day_cap
        self._day = -1
        self._levels: tuple[Level, ...] = ()

    def now(self, at: float) -> tuple[Level, ...]:
        """Return the levels in the order in which they are locked."""
        day = int(at // 86_400)
        if day != self._day:
            name = datetime.fromtimestamp(at, UTC).strftime("day:%Y-%m-%d")
            everything = (*self.runs, Level(id=name, cap=self._day_cap))
            self._day, self._levels = day, tuple(sorted(everything, key=lambda level: level.id))
        return self._levels

    @property
    def lineage(self) -> Level:
        """The budget that the run shares with those it is resumed as."""
        return self.runs[0]

    @property
    def capped(self) -> bool:
        """Return whether any level has a cap."""
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
    """Return the levels of a run; where no day cap is set here, the one it was created under holds."""
    budgets = await budgets_of(store, run)
    names = tuple(dict.fromkeys((budgets.lineage, run_level(run.id), *budgets.above)))
    balances = await store.runs.balances(names)
    caps = {name: balance.cap for name, balance in balances.items()}
    runs = tuple(Level(id=name, cap=caps.get(name), in_ledger=True) for name in names)
    return Levels(runs, budgets.day_cap if day_cap is None else day_cap)


async def overdraft_of(store: Store, run: RunId, levels: Levels, excess: Excess | None, at: float) -> Overdraft | None:
    """Return how a run exceeded a budget: by a call of its own, in its lineage, or by a child under any budget."""
    counted = levels.now(at) if excess is not None else (levels.lineage,)
    found = overdraft(excess, counted, await store.runs.balances(level.id for level in counted))
    if found is not None:
        return found
    for child in await store.archive.children(run):
        if child.ended_reason == Overdraft.code:
            return Overdraft(f"child run {child.id}: {(child.error or {}).get('message', 'it exceeded a budget')}")
    return None


async def first_excess(store: Store, run: RunId) -> Excess | None:
    """Return the first call that cost more than was reserved for it, also under a former driver."""
    event = await store.events.first(run, "overdraft")
    if event is None:
        return None
    key, cost, reserved = (event.data[name] for name in ("key", "cost", "reserved"))
    return Excess(key=str(key), cost=Microdollars(int(str(cost))), reserved=Microdollars(int(str(reserved))))
