"""`muster costs`: what was spent by day, agent and run, and how the budgets above runs stand."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from muster.app import Muster
from muster.app.spending import Costs
from muster.app.views.costs import costs_view
from muster.cli.line import Option
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, clean, note
from muster.cli.terminal.table import Column, fitted
from muster.domain.money import usd_format
from muster.domain.run import Run, Spent

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 20  # agents and runs; --json has all of them
LEAST_MISSED = ("uncertain", "imputed", "budget")

# A name, what was spent, and the budget.
CostRow = tuple[str, Spent, int | None]


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
    yield "budget", [(_budget_name(one.kind, one.name), one.spent, one.cap) for one in found.budgets]
    yield "day", [(one.day, one.spent, one.cap) for one in found.days if one.spent.settled]
    yield "agent", [(one.agent, one.spent, None) for one in found.agents[:SHOWN] if one.spent.settled]
    yield "run", [(_run_name(run), run.spent, run.cap) for run in found.runs[:SHOWN]]


def _run_name(run: Run) -> str:
    return run.id if run.name is None else f"{run.name} ({run.id})"


def _budget_name(kind: str, name: str) -> str:
    return {"day": "today, all runs", "user": f"today, token {name}", "pool": "the pool"}.get(kind, f"{kind} {name}")


def _tell(console: "Console", title: str, rows: Sequence[CostRow]) -> None:
    """Draw the costs of some days, agents, runs or budgets; nothing when there are none."""
    if not rows:
        return
    lanes = [
        "billed",
        *(lane for lane in ("imputed", "uncertain") if any(getattr(spent, lane) for _, spent, _ in rows)),
    ]
    usd = usd_format(*(getattr(spent, lane) for _, spent, _ in rows for lane in lanes), *(cap for *_, cap in rows))
    columns = [Column(title, [Text(clean(name)) for name, *_ in rows], right=False, folds=True, least=12)]
    columns += [Column(lane, [usd(getattr(spent, lane)) for _, spent, _ in rows]) for lane in lanes]
    if any(cap is not None for *_, cap in rows):
        columns.append(Column("budget", ["none" if cap is None else usd(cap) for *_, cap in rows]))
    console.print(fitted(columns, LEAST_MISSED, console.width))
