"""`muster verify metrics`: figures over past verifications."""

import time
from typing import Annotated

from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster.app import Muster
from muster.app.runs.batches import Durations
from muster.app.verify.values import Ending, VerifyMetrics, verify_metrics_view
from muster.cli.line import Option
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, clean
from muster.cli.terminal.table import Column, fitted
from muster.cli.terminal.times import local, since, span
from muster.cli.verify.table import TITLES, WIDE
from muster.domain.money import usd_format
from muster.text.words import count, percent


def metrics(
    common: CommonOptions,
    window: Annotated[str, Option("--since", metavar="WHEN", help="A duration (7d, 24h, 30m) or a date.")] = "7d",
) -> None:
    """Show duration, results, findings and cost of verifications."""
    begin = since(window, time.time())

    async def work(muster: Muster) -> VerifyMetrics:
        return await muster.verify.metrics(begin)

    found = with_muster(common, work)

    def tell(console: Console) -> None:
        if found.cycles:
            tell_metrics(console, found)
        else:
            console.print(f"no verifications since {local(begin)}")

    answer(common, verify_metrics_view(found), tell)


MIN_MISSED = ("rejected", "low", "med", "reports", "broken", "high", "failed", "crit", "passed")


def tell_metrics(console: Console, found: VerifyMetrics) -> None:
    """Print the figures, and below them what each agent came to."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, words in _rows(found).items():
        table.add_row(name, Text(clean(words)))
    console.print(table)
    if found.agents:
        console.print(_agents(found, console.width))


def _rows(found: VerifyMetrics) -> dict[str, str]:
    under_way = f", {found.under_way:,} under way" if found.under_way else ""
    rows = {
        "cycles": f"{found.cycles:,} since {local(found.since)}{under_way}",
        "passed": f"{found.passed:,} ({percent(found.pass_rate)}), {found.failed:,} failed, {found.stopped:,} stopped",
        "time": _times(found.completion),
        "reports": f"{found.reports:,} of agents, {percent(found.error_rate)} of them broken",
    }
    if found.codes:
        rows["failures"] = ", ".join(f"{number:,} {code}" for code, number in found.codes.items())
    if found.batches.batches:
        stats = found.batches
        rows["batches"] = (
            f"{stats.batches:,} with {count(stats.requests, 'call')}, "
            f"{percent(stats.expiry_rate)} expired; {_times(stats.completion)}"
        )
    return rows | {"cost": _cost(found)}


def _times(durations: Durations | None) -> str:
    if durations is None:
        return "none has ended yet"
    names = {"p50": durations.p50, "p95": durations.p95, "p99": durations.p99}
    return ", ".join(f"{name} {span(seconds)}" for name, seconds in names.items())


def _cost(found: VerifyMetrics) -> str:
    cycle = None if found.cost_per_cycle is None else round(found.cost_per_cycle)
    usd = usd_format(found.cost, cycle, found.live, found.uncertain)
    words = usd(found.cost)
    if cycle is not None:
        words += f", {usd(cycle)} a cycle"
    if found.live != found.cost:
        words += f"; live would have been {usd(found.live)}"
    return words + (f"; {usd(found.uncertain)} uncertain" if found.uncertain else "")


def _agents(found: VerifyMetrics, width: int) -> Table:
    """Draw the agents; what there is no room for is left out, but never names and costs."""
    agents = found.agents
    usd = usd_format(*(one.cost for one in agents))
    columns = [
        Column("agent", [Text(clean(one.agent)) for one in agents], right=False, folds=True, least=WIDE),
        Column("reports", [f"{one.reports:,}" for one in agents]),
        Column("passed", [percent(one.pass_rate, 0) for one in agents]),
        Column("failed", [f"{one.endings.get(Ending.FAILED, 0):,}" for one in agents]),
        Column("broken", [f"{one.endings.get(Ending.BROKEN, 0):,}" for one in agents]),
        *(Column(title, [f"{getattr(one.counts, name):,}" for one in agents]) for name, title in TITLES.items()),
        Column("rejected", [f"{one.counts.rejected:,}" for one in agents]),
        Column("cost", [usd(one.cost) for one in agents]),
    ]
    return fitted(columns, MIN_MISSED, width)
