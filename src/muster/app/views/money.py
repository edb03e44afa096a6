"""What something has cost: one shape for tasks, runs, slots, the pool, days, agents and budgets."""

from muster.domain.money import to_usd
from muster.domain.run import BudgetedCost, Spent
from muster.text.views import View


class MoneyView(View, kw_only=True):
    """Amounts by lane, and as `cost_usd` what counts against a budget: all lanes together."""

    cost_usd: float
    spent_usd: float
    imputed_usd: float
    uncertain_usd: float
    reserved_usd: float


class CostView(MoneyView, kw_only=True):
    """What something has cost and may cost; without a limit its budget is null."""

    budget_usd: float | None


def money_view(spent: Spent) -> MoneyView:
    """Return amounts by lane."""
    return MoneyView(
        cost_usd=to_usd(spent.settled),
        spent_usd=to_usd(spent.billed),
        imputed_usd=to_usd(spent.imputed),
        uncertain_usd=to_usd(spent.uncertain),
        reserved_usd=to_usd(spent.reserved),
    )


def cost_view(cost: BudgetedCost) -> CostView:
    """Return what something has cost and may cost: in all, by lane, and its budget."""
    spent = cost.spent
    return CostView(
        cost_usd=to_usd(spent.settled),
        spent_usd=to_usd(spent.billed),
        imputed_usd=to_usd(spent.imputed),
        uncertain_usd=to_usd(spent.uncertain),
        reserved_usd=to_usd(spent.reserved),
        budget_usd=None if cost.cap is None else to_usd(cost.cap),
    )
