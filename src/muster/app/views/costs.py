"""Money that was spent, as JSON."""

from typing import Any

from muster.app.runs.reading import kind_of
from muster.app.spending import Costs
from muster.app.views.runs import moment
from muster.app.views.subjects import subject_of
from muster.domain.money import to_usd
from muster.domain.run import BudgetedCost, Run, Spent


def costs_view(found: Costs) -> dict[str, Any]:
    """Return what was spent as JSON: in all, by day, agent and run, and how budgets stand."""
    return {
        "since": found.days[0].day,
        "until": found.days[-1].day,
        **money_view(found.total),
        "days": [{"day": one.day, **cost_view(BudgetedCost(spent=one.spent, cap=one.cap))} for one in found.days],
        "agents": [{"agent": one.agent, "attempts": one.attempts, **money_view(one.spent)} for one in found.agents],
        "runs": [_run_view(run) for run in found.runs],
        "budgets": [
            {"kind": one.kind, "name": one.name, **cost_view(BudgetedCost(spent=one.spent, cap=one.cap))}
            for one in found.budgets
        ],
    }


def money_view(spent: Spent) -> dict[str, float]:
    """Return amounts by lane as JSON, with the names that runs have, and what counts against a budget."""
    return {
        "cost_usd": to_usd(spent.settled),
        "spent_usd": to_usd(spent.billed),
        "imputed_usd": to_usd(spent.imputed),
        "uncertain_usd": to_usd(spent.uncertain),
        "reserved_usd": to_usd(spent.reserved),
    }


def cost_view(cost: BudgetedCost) -> dict[str, float | None]:
    """Return what something has cost and may cost as JSON: in all, by lane, and its budget."""
    return {**money_view(cost.spent), "budget_usd": None if cost.cap is None else to_usd(cost.cap)}


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
    return named | cost_view(BudgetedCost(spent=run.spent, cap=run.cap)) | begun
