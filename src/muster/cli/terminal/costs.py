"""What runs, tasks and slots have cost, for a terminal: the same columns and the same words for all of them."""

from collections.abc import Sequence

from muster.cli.terminal.table import Column
from muster.domain.money import usd_format
from muster.domain.run import BudgetedCost


def cost_columns(costs: Sequence[BudgetedCost], marks: Sequence[str] = ()) -> list[Column]:
    """Return what each has cost in all, its budget, and what of it is imputed or uncertain, where anything is.

    `marks` are words after what each has cost in all.
    """
    spent = [cost.spent for cost in costs]
    usd = usd_format(*(amount for one in spent for amount in (one.settled, one.imputed, one.uncertain)))
    of_budgets = usd_format(*(cost.cap for cost in costs))
    columns = [
        Column("budget", ["" if cost.cap is None else of_budgets(cost.cap) for cost in costs]),
        Column("imputed", [usd(one.imputed) if one.imputed else "" for one in spent]),
        Column("uncertain", [usd(one.uncertain) if one.uncertain else "" for one in spent]),
    ]
    total = [f"{usd(cost.total)}{mark}" for cost, mark in zip(costs, marks or [""] * len(costs), strict=True)]
    return [Column("cost", total), *(column for column in columns if any(column.cells))]
