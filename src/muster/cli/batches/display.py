"""Batches drawn for a terminal: a table of many, a panel of one. What providers wrote is shown as plain text."""

from collections.abc import Mapping, Sequence

from rich.box import ROUNDED
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from muster.app.runs.batches import BatchStats, Durations
from muster.cli.terminal.batches import COLOURS, calls, standing, tally_words
from muster.cli.terminal.output import clean
from muster.cli.terminal.table import Column, fitted
from muster.cli.terminal.times import local, rough, span
from muster.domain.batch import OVER, Batch, BatchState, ways_out
from muster.domain.ids import RunId
from muster.domain.money import usd_format

RUNS = 10
MIN_MISSED = ("saved", "age", "provider", "done")


def batches_table(batches: Sequence[Batch], now: float, width: int) -> Table:
    """Draw batches, the newest first; what there is no room for is left out, but never ids and costs."""
    states = [Text(batch.state, style=COLOURS[batch.state]) for batch in batches]
    saved = [batch.live_cost - batch.cost for batch in batches]
    usd = usd_format(*(batch.cost for batch in batches), *saved)
    columns = [
        Column("batch", [batch.id for batch in batches], right=False),
        Column("provider", [batch.endpoint.kind for batch in batches], right=False),
        Column("state", states, right=False),
        Column("done", [f"{_done(batch):,}/{batch.requests:,}" for batch in batches]),
        Column("cost", [usd(batch.cost) for batch in batches]),
        Column("saved", [usd(amount) for amount in saved]),
        Column("age", [rough(now - batch.created_at) for batch in batches]),
    ]
    return fitted(columns, MIN_MISSED, width)


def _done(batch: Batch) -> int:
    return max(batch.tally.over, batch.done or 0)


def batch_panel(batch: Batch, runs: Mapping[RunId, int]) -> Panel:
    """Draw one batch: where it is, its members, its money, its times, why it stands where it stands."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    rows = [*_where(batch), *_what(batch), ("time", _time(batch)), ("runs", _runs(runs)), *_why(batch)]
    for label, value in rows:
        grid.add_row(label, Text(clean(value)) if isinstance(value, str) else value)
    title = Text(f"batch {batch.id}", style="bold")
    return Panel(grid, title=title, title_align="left", box=ROUNDED, border_style=COLOURS[batch.state], expand=False)


def _where(batch: Batch) -> list[tuple[str, str | Text]]:
    state = Text(batch.state, style=f"bold {COLOURS[batch.state]}")
    if standing(batch) != batch.state:
        state.append(f"  ({clean(standing(batch))})", style="default")
    known = f", known there as {batch.provider_id}" if batch.provider_id else ""
    file = f"\ninput file {batch.file}" if batch.file else ""
    return [("state", state), ("provider", f"{batch.endpoint.kind} at {batch.endpoint.base_url}{known}{file}")]


def _what(batch: Batch) -> list[tuple[str, str | Text]]:
    waiting = batch.requests - batch.tally.over
    members = f"{calls(batch.requests)}, {batch.bytes:,} bytes: {tally_words(batch.tally)}"
    members += f", {waiting:,} waiting" if waiting else ""
    members += "" if batch.done is None or not waiting else f" (the provider says {batch.done:,} done)"
    return [
        ("agents", ", ".join(batch.tariffs)),
        ("members", members),
        ("tokens", f"{batch.input_tokens:,} in, {batch.output_tokens:,} out"),
        ("money", _money(batch)),
    ]


def _money(batch: Batch) -> str:
    if batch.state not in OVER:
        usd = usd_format(batch.reserved, batch.cost)
        return f"{usd(batch.reserved)} reserved, {usd(batch.cost)} booked so far"
    usd, saved = usd_format(batch.cost, batch.live_cost), batch.live_cost - batch.cost
    return f"{usd(batch.cost)}, live would have been {usd(batch.live_cost)}: {usd(saved)} saved"


def _time(batch: Batch) -> str:
    lines = [f"planned {local(batch.created_at)}"]
    lines += [f"submitted {local(batch.submitted_at)}"] if batch.submitted_at else []
    if batch.ended_at and batch.submitted_at:
        lines.append(f"ended {local(batch.ended_at)} (after {span(batch.ended_at - batch.submitted_at)})")
    elif batch.polled_at:
        lines.append(f"last checked {local(batch.polled_at)}")
    lines += [f"collected {local(batch.collected_at)}"] if batch.state is BatchState.COLLECTED else []
    return "\n".join(lines)


def _runs(runs: Mapping[RunId, int]) -> str:
    lines = [f"{run}  {calls(members)}" for run, members in list(runs.items())[:RUNS]]
    return "\n".join([*lines, *([f"… and {len(runs) - RUNS} more: --json"] if len(runs) > RUNS else [])])


def _why(batch: Batch) -> list[tuple[str, str | Text]]:
    found: list[tuple[str, str | Text]] = [("why", batch.note)] if batch.note else []
    match batch.state:
        case _ if not batch.gets_on:
            ways = list(ways_out(batch))
        case BatchState.SENT:
            ways = ["muster batch reconcile"]
        case state if state not in OVER:
            ways = [f"muster batch {verb} {batch.id}" for verb in ("watch", "fetch", "cancel")]
        case BatchState.COLLECTED:
            ways = [f"muster batch show {batch.id} --lines"]
        case _:
            ways = []
    return [*found, ("next", Text("\n".join(ways), style="cyan"))] if ways else found


def figures(found: BatchStats, begin: float) -> Table:
    """Draw the figures."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("batches", f"{found.batches:,} since {local(begin)}{_exceptions(found)}")
    table.add_row("calls", f"{found.requests:,}, {found.ended:,} of them ended")
    if found.ended:
        table.add_row("", _endings(found))
    table.add_row("time", _times(found.completion))
    table.add_row("tokens", f"{found.input_tokens:,} in, {found.output_tokens:,} out")
    table.add_row("money", _saved_money(found))
    return table


def _exceptions(found: BatchStats) -> str:
    parts = [f"{found.under_way:,} under way"] if found.under_way else []
    parts += [f"{found.refused:,} refused or abandoned"] if found.refused else []
    return f" ({', '.join(parts)})" if parts else ""


def _endings(found: BatchStats) -> str:
    parts = [f"{_percent(found.success_rate)} succeeded"]
    parts += [f"{_percent(found.error_rate)} failed", f"{_percent(found.expiry_rate)} expired"]
    parts += [f"{found.canceled:,} canceled"] if found.canceled else []
    parts += [f"{found.uncertain:,} with an unknown outcome"] if found.uncertain else []
    return ", ".join(parts)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.3g}%"


def _times(durations: Durations | None) -> str:
    if durations is None:
        return "no batch has ended yet"
    names = {"mean": durations.mean, "p50": durations.p50, "p95": durations.p95, "p99": durations.p99}
    return ", ".join(f"{name} {span(seconds)}" for name, seconds in names.items())


def _saved_money(found: BatchStats) -> str:
    saved = f" ({100 * found.saving / found.live_cost:.0f}%)" if found.live_cost else ""
    usd = usd_format(found.cost, found.live_cost)
    return f"{usd(found.cost)}, live would have been {usd(found.live_cost)}: {usd(found.saving)} saved{saved}"
