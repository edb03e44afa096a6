"""What something has cost as JSON: one shape for tasks, runs, slots, the pool, days, agents and budgets."""

from muster.domain.money import to_usd
from muster.domain.run import BudgetedCost, Spent


def money_view(spent: Spent) -> dict[str, float]:
    """Return amounts by lane as JSON, and as `cost_usd` what counts against a budget: all lanes together."""
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
