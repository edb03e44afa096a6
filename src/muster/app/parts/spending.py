"""Money that was spent: by day, by agent and by run, and how the budgets above runs stand. `Muster.costs`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from muster.app.base.backend import Backend
from muster.domain.budget import UserBudget, server_level
from muster.domain.errors import BadArgument
from muster.domain.money import Lane, Microdollars, from_usd
from muster.domain.run import BudgetedCost, Run, Spent
from muster.settings import Settings
from muster.store.base import POOL_LEVEL, AgentTotal, LevelTotal

__all__ = ["AgentTotal", "BudgetStanding", "Costs", "DayCosts", "costs_since"]

DAY_SECONDS = 86_400
MAX_DAYS = 366
MAX_RUNS = 100  # the dearest


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCosts:
    """What all calls of one day (UTC) cost, those of deleted runs too, and what they were allowed to."""

    day: str
    cost: BudgetedCost


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStanding:
    """A budget above runs as it stands now."""

    kind: str  # day, user (of a token, today), pool or server
    name: str
    cost: BudgetedCost


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What was spent in some days."""

    days: tuple[DayCosts, ...]  # every day, the oldest first; today is the last
    agents: Sequence[AgentTotal]  # of the attempts that began in this time, the dearest first
    runs: Sequence[Run]  # the newest of each lineage, if it was created in this time, the dearest lineage first
    budgets: tuple[BudgetStanding, ...]

    @property
    def total(self) -> Spent:
        """What all days cost together."""
        return sum((day.cost.spent for day in self.days), Spent())

    @property
    def outside_agents(self) -> Spent:
        """What calls of the days have cost that are no agent's here: those of deleted runs."""
        return self._outside(sum((one.spent for one in self.agents), Spent()))

    @property
    def outside_runs(self) -> Spent:
        """What calls of the days have cost beside the runs here: deleted ones, cheaper ones, and those begun before."""
        return self._outside(sum((run.cost.spent for run in self.runs), Spent()))

    def _outside(self, listed: Spent) -> Spent:
        whole = self.total
        return Spent(**{lane: Microdollars(max(0, getattr(whole, lane) - getattr(listed, lane))) for lane in Lane})


async def costs_since(backend: Backend, days: int) -> Costs:
    """Return what was spent in so many days (UTC), today among them."""
    if not 1 <= days <= MAX_DAYS:
        raise BadArgument(f"must be between 1 and {MAX_DAYS}, not {days}", argument="days")
    today = backend.clock.now() // DAY_SECONDS
    names = [_day_name((today - back) * DAY_SECONDS) for back in range(days - 1, -1, -1)]
    found = await backend.store.totals.spent_since((today - days + 1) * DAY_SECONDS, MAX_RUNS)
    levels = {level.id: level for level in found.levels}
    return Costs(
        days=tuple(_day(name, levels, backend.settings, today=name == names[-1]) for name in names),
        agents=found.agents,
        runs=found.runs,
        budgets=tuple(_standings(levels, backend.settings, names[-1])),
    )


def _day_name(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def _day(name: str, levels: Mapping[str, LevelTotal], settings: Settings, *, today: bool) -> DayCosts:
    """Return one day; of today the cap is the one that is set now, of others the one they had."""
    found = levels.get(f"day:{name}", LevelTotal(id="", spent=Spent(), cap=None))
    cap = settings.day_cap if today and settings.day_cap is not None else found.cap
    return DayCosts(day=name, cost=BudgetedCost(spent=found.spent, cap=cap))


def _standings(levels: Mapping[str, LevelTotal], settings: Settings, today: str) -> Iterator[BudgetStanding]:
    """Yield the budgets that hold now: of the day, of every token, of the pool and of servers."""
    day = _day(today, levels, settings, today=True)
    yield BudgetStanding(kind="day", name=today, cost=day.cost)
    for token in settings.tokens:
        level = levels.get(UserBudget(name=token.name).level(today).id)
        cap = None if token.day_usd is None else from_usd(f"{token.day_usd:.6f}")
        spent = Spent() if level is None else level.spent
        yield BudgetStanding(kind="user", name=token.name, cost=BudgetedCost(spent=spent, cap=cap))
    servers = server_level("")
    for level in levels.values():
        if level.id == POOL_LEVEL or level.id.startswith(servers):
            kind, _, name = level.id.partition(":")
            yield BudgetStanding(kind=kind, name=name, cost=BudgetedCost(spent=level.spent, cap=level.cap))
