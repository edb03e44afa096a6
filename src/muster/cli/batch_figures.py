"""Figures over past batches, drawn for a terminal."""

from rich.table import Table

from muster.app.batches import BatchStats, Durations
from muster.cli.spans import local, span
from muster.domain.money import show_usd


def figures(found: BatchStats, begin: float) -> Table:
    """Draw the figures."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("batches", f"{found.batches:,} since {local(begin)}{_exceptions(found)}")
    table.add_row("calls", f"{found.requests:,}, of which {found.ended:,} have ended")
    if found.ended:
        table.add_row("", _endings(found))
    table.add_row("time", _times(found.completion))
    table.add_row("tokens", f"{found.input_tokens:,} in, {found.output_tokens:,} out")
    table.add_row("money", _money(found))
    return table


def _exceptions(found: BatchStats) -> str:
    parts = [f"{found.under_way:,} under way"] if found.under_way else []
    parts += [f"{found.refused:,} refused or given up"] if found.refused else []
    return f" ({', '.join(parts)})" if parts else ""


def _endings(found: BatchStats) -> str:
    parts = [f"{_percent(found.success_rate)} succeeded"]
    parts += [f"{_percent(found.error_rate)} failed", f"{_percent(found.expiry_rate)} expired"]
    parts += [f"{found.canceled:,} canceled"] if found.canceled else []
    parts += [f"{found.uncertain:,} with an outcome that nobody knows"] if found.uncertain else []
    return ", ".join(parts)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.3g}%"


def _times(durations: Durations | None) -> str:
    if durations is None:
        return "no batch has ended yet"
    names = {"mean": durations.mean, "p50": durations.p50, "p95": durations.p95, "p99": durations.p99}
    return ", ".join(f"{name} {span(seconds)}" for name, seconds in names.items())


def _money(found: BatchStats) -> str:
    saved = f" ({100 * found.saving / found.live_cost:.0f}%)" if found.live_cost else ""
    return (
        f"{show_usd(found.cost)}, live would have been {show_usd(found.live_cost)}: "
        f"{show_usd(found.saving)} saved{saved}"
    )
