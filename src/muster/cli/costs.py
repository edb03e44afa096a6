"""`muster costs`: what was spent by day, agent and run, and how the budgets above runs stand."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from muster.app import Muster
from muster.app.parts.spending import Costs
from muster.app.views.costs import costs_view
from muster.cli.line import Option
from muster.cli.session import with_muster
from muster.cli.terminal.costs import cost_columns
from muster.cli.terminal.output import CommonOptions, answer, clean, note
from muster.cli.terminal.table import Column, fitted
from muster.domain.run import BudgetedCost, Run, Spent

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 20  # agents and runs; --json has all of them
MIN_MISSED = ("uncertain", "imputed", "budget")

CostRow = tuple[str, BudgetedCost]  # with a name


def costs(
    common: CommonOptions,
    days: Annotated[int, Option("--days", metavar="N", min=1, max=366, help="Number of days, including today.")] = 30,
) -> None:
    """Show the cost by day, agent and run, and what is left of each budget; days are in UTC."""

    async def work(muster: Muster) -> Costs:
        return await muster.costs(days)

    found = with_muster(common, work)

    def tell(console: "Console") -> None:
        if not found.total.settled and not found.total.reserved:
            note(common, f"nothing was spent since {found.days[0].day}")
        for title, rows in _parts(found):
            _tell(console, title, rows)

    answer(common, costs_view(found), tell)


def _parts(found: Costs) -> Iterator[tuple[str, Sequence[CostRow]]]:
    yield "budget", [(_budget_name(one.kind, one.name), one.cost) for one in found.budgets]
    yield "day", [(one.day, one.cost) for one in found.days if one.cost.total]
    agents = [one for one in found.agents if one.spent.settled]
    shown = [(one.agent, BudgetedCost(spent=one.spent)) for one in agents[:SHOWN]]
    yield "agent", [*shown, *_rest("deleted runs", found.outside_agents, [one.spent for one in agents[SHOWN:]])]
    runs = [(_run_name(run), run.cost) for run in found.runs[:SHOWN]]
    others = [run.cost.spent for run in found.runs[SHOWN:]]
    yield "run", [*runs, *_rest("deleted runs, or begun before", found.outside_runs, others)]


def _rest(name: str, outside: Spent, others: Sequence[Spent]) -> Iterator[CostRow]:
    """Yield what the rows of a table leave out of the sum of its days."""
    if others:
        yield f"{len(others):,} others", BudgetedCost(spent=sum(others, Spent()))
    if outside.settled:
        yield name, BudgetedCost(spent=outside)


def _run_name(run: Run) -> str:
    return run.id if run.name is None else f"{run.name} ({run.id})"


def _budget_name(kind: str, name: str) -> str:
    return {"day": "today, all runs", "user": f"today, token {name}", "pool": "the pool"}.get(kind, f"{kind} {name}")


def _tell(console: "Console", title: str, rows: Sequence[CostRow]) -> None:
    """Draw the costs of some days, agents, runs or budgets; nothing when there are none."""
    if not rows:
        return
    names = Column(title, [Text(clean(name)) for name, _ in rows], right=False, folds=True, least=12)
    console.print(fitted([names, *cost_columns([cost for _, cost in rows])], MIN_MISSED, console.width))
