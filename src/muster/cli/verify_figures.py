"""Figures over past verifications, drawn for a terminal."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster.cli.clean import clean
from muster.cli.spans import local, span
from muster.domain.finding import Severity
from muster.domain.money import show_usd
from muster.domain.waves import Ending
from muster.reports.batch_stats import Durations
from muster.reports.waves.metrics import VerifyMetrics
from muster.reports.words import count, percent


def tell_metrics(console: Console, found: VerifyMetrics) -> None:
    """Print the figures, and below them what each agent came to."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, words in _rows(found).items():
        table.add_row(name, Text(clean(words)))
    console.print(table)
    if found.agents:
        console.print(_agents(found))


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
    words = show_usd(found.cost)
    if found.cost_per_cycle is not None:
        words += f", {show_usd(round(found.cost_per_cycle))} a cycle"
    if found.live != found.cost:
        words += f"; live would have been {show_usd(found.live)}"
    return words + (f"; {show_usd(found.uncertain)} uncertain" if found.uncertain else "")


def _agents(found: VerifyMetrics) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("agent", overflow="fold", min_width=10)
    for title in ("reports", "passed", "failed", "broken", "crit", "high", "med", "low", "rejected", "cost"):
        table.add_column(title, justify="right", no_wrap=True)
    for agent in found.agents:
        endings = [agent.endings.get(ending, 0) for ending in (Ending.FAILED, Ending.BROKEN)]
        counts = [getattr(agent.counts, severity) for severity in Severity]
        numbers = [f"{number:,}" for number in (*endings, *counts, agent.counts.rejected)]
        row = [f"{agent.reports:,}", percent(agent.pass_rate, 0), *numbers, show_usd(agent.cost)]
        table.add_row(Text(clean(agent.agent)), *row)
    return table
