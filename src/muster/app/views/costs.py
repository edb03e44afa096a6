"""Money that was spent, as JSON."""

from typing import Any

from muster.app.runs.reading import kind_of
from muster.app.spending import Costs
from muster.app.views.money import cost_view, money_view
from muster.app.views.runs import moment
from muster.app.views.subjects import subject_of
from muster.domain.money import to_usd
from muster.domain.run import Run


def costs_view(found: Costs) -> dict[str, Any]:
    """Return what was spent as JSON: in all, by day, agent and run, and how budgets stand."""
    return {
        "since": found.days[0].day,
        "until": found.days[-1].day,
        **money_view(found.total),
        "days": [{"day": one.day, **cost_view(one.cost)} for one in found.days],
        "agents": [{"agent": one.agent, "attempts": one.attempts, **money_view(one.spent)} for one in found.agents],
        "unlisted_by_agent_usd": to_usd(found.outside_agents.settled),
        "runs": [_run_view(run) for run in found.runs],
        "unlisted_by_run_usd": to_usd(found.outside_runs.settled),
        "budgets": [{"kind": one.kind, "name": one.name, **cost_view(one.cost)} for one in found.budgets],
    }


def _run_view(run: Run) -> dict[str, Any]:
    named = {
        "id": run.id,
        "name": run.name,
        "subject": subject_of(run),
        "workload": run.workload,
        "kind": kind_of(run.workload),
        "state": str(run.state),
    }
    begun = {"started_by": run.owner, "created_at": moment(run.created_at)}
    return named | cost_view(run.cost) | begun
