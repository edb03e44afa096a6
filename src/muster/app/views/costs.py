"""Money that was spent."""

from collections.abc import Sequence

from muster.app.kinds import word_of
from muster.app.parts.spending import Costs
from muster.app.views.money import CostView, MoneyView, cost_view, money_view
from muster.app.views.subjects import subject_of
from muster.domain.money import to_usd
from muster.domain.run import Run, RunState
from muster.text.views import asdict, instant


class DayView(CostView):
    """What one day (UTC) cost, and was allowed to."""

    day: str


class AgentCostView(MoneyView):
    """What an agent cost in the attempts that began in this time."""

    agent: str
    attempts: int


class RunCostView(CostView):
    """What the lineage of a run cost."""

    id: str
    name: str | None
    subject: str | None
    workload: str
    kind: str
    state: RunState
    started_by: str | None
    created_at: str


class BudgetView(CostView):
    """How a budget above runs stands."""

    kind: str
    name: str


class CostsView(MoneyView):
    """What was spent: in all, by day, agent and run, and how budgets stand."""

    since: str
    until: str
    days: Sequence[DayView]
    agents: Sequence[AgentCostView]
    unlisted_by_agent_usd: float
    runs: Sequence[RunCostView]
    unlisted_by_run_usd: float
    budgets: Sequence[BudgetView]


def costs_view(costs: Costs) -> CostsView:
    """Return what was spent."""
    return CostsView(
        **asdict(money_view(costs.total)),
        since=costs.days[0].day,
        until=costs.days[-1].day,
        days=[DayView(day=day.day, **asdict(cost_view(day.cost))) for day in costs.days],
        agents=[
            AgentCostView(agent=total.agent, attempts=total.attempts, **asdict(money_view(total.spent)))
            for total in costs.agents
        ],
        unlisted_by_agent_usd=to_usd(costs.outside_agents.settled),
        runs=[_run_view(run) for run in costs.runs],
        unlisted_by_run_usd=to_usd(costs.outside_runs.settled),
        budgets=[
            BudgetView(kind=budget.kind, name=budget.name, **asdict(cost_view(budget.cost))) for budget in costs.budgets
        ],
    )


def _run_view(run: Run) -> RunCostView:
    return RunCostView(
        **asdict(cost_view(run.cost)),
        id=run.id,
        name=run.name,
        subject=subject_of(run),
        workload=run.workload,
        kind=word_of(run.workload),
        state=run.state,
        started_by=run.owner,
        created_at=instant(run.created_at),
    )
