"""One run drawn for a terminal. Whatever models or users wrote is shown as plain text."""

import json
from typing import Any

from rich.box import ROUNDED
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from muster.app.run_details import RunBatches
from muster.cli.batch_portrait import calls, standing
from muster.cli.clean import clean
from muster.cli.pooled import saving_words
from muster.cli.portrait import COLOURS, ways_on
from muster.cli.spans import local
from muster.domain.errors import LeftWaiting
from muster.domain.money import show_usd
from muster.domain.run import Mode, Run

RESULT_LINES = 16
BATCHES = 5


def run_panel(run: Run, pooled: RunBatches) -> Panel:
    """Draw one run: what it is, its money, its calls, what went wrong and how to go on."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in _facts(run, pooled):
        grid.add_row(label, value)
    title = Text(f"run {run.id}" + (f"  {clean(run.name)}" if run.name else ""), style="bold")
    parts: list[Any] = [grid]
    if run.error:
        parts += [Text(""), _error(run)]
    if run.result is not None:
        parts += [Text(""), Text("result", style="dim"), Text(_shortened(run.result))]
    return Panel(
        Group(*parts), title=title, title_align="left", box=ROUNDED, border_style=COLOURS[run.state], expand=False
    )


def _facts(run: Run, pooled: RunBatches) -> list[tuple[str, Text]]:
    state = Text(run.state, style=f"bold {COLOURS[run.state]}")
    if run.ended_reason and run.ended_reason not in (run.state, "done", LeftWaiting.code):
        state.append(f"  ({clean(run.ended_reason)})", style="default")
    found = [("state", state), ("workload", Text(clean(run.workload)))]
    if run.is_driven:
        found.append(("driver", Text(str(run.lease.driver))))
    if run.origin is not None:
        fork = f", from {clean(run.origin.fork_key)}" if run.origin.fork_key else ""
        found.append(("comes from", Text(f"run {run.origin.run} ({run.origin.reuse}{fork})")))
    found += [("money", _money(run)), ("calls", _calls(run, pooled)), ("time", _time(run))]
    if run.dispatch.mode is Mode.BATCH or pooled.batches:
        found.append(("batches", _batches(pooled)))
    return [*found, ("go on", Text("\n".join(_ways_on(run, pooled)), style="cyan"))]


def _batches(pooled: RunBatches) -> Text:
    if not pooled.batches:
        return Text("none yet")
    lines = [f"{batch.id}  {clean(standing(batch))}, {calls(batch.requests)}" for batch in pooled.batches[:BATCHES]]
    lines += [f"… and {len(pooled.batches) - BATCHES} more: --json"] if len(pooled.batches) > BATCHES else []
    booked = not pooled.saving.parked or pooled.saving.live_cost
    return Text("\n".join([*lines, *([saving_words(pooled)] if booked else [])]))


def _ways_on(run: Run, pooled: RunBatches) -> tuple[str, ...]:
    left_alone = pooled.under_way if not run.is_driven else ()
    return (*ways_on(run), *(f"muster batch watch {batch.id}" for batch in left_alone[:1]))


def _money(run: Run) -> Text:
    spent = run.spent
    text = Text(f"{show_usd(spent.billed)} spent")
    if spent.imputed:
        text.append(f", {show_usd(spent.imputed)} covered by a subscription")
    if spent.uncertain:
        text.append(f", {show_usd(spent.uncertain)} uncertain", style="yellow")
    if spent.reserved:
        text.append(f", {show_usd(spent.reserved)} reserved")
    if run.total.settled == spent.settled:
        return text.append("  (no cap)" if run.cap is None else f"  of {show_usd(run.cap)}", style="dim")
    cap = "(no cap)" if run.cap is None else f"of {show_usd(run.cap)}"
    everything = f"{show_usd(run.total.settled)} {cap}, with the runs that it was resumed from or as"
    return text.append(f"\n{everything}", style="dim")


def _calls(run: Run, pooled: RunBatches) -> Text:
    counts = run.calls
    text = Text(f"{counts.done} of {counts.total} done")
    if counts.reused:
        text.append(f", {counts.reused} of them reused")
    if pooled.saving.parked:
        text.append(f", {pooled.saving.parked} waiting in batches", style="blue")
    if counts.failed:
        text.append(f", {counts.failed} failed", style="red")
    if counts.uncertain:
        text.append(f", {counts.uncertain} attempts uncertain", style="yellow")
    return text


def _time(run: Run) -> Text:
    ended = f", ended {local(run.ended_at)}" if run.ended_at else ""
    started = f"started {local(run.started_at)}" if run.started_at else f"made {local(run.created_at)}"
    seconds = f"  ({run.ended_at - run.started_at:.1f} s)" if run.ended_at and run.started_at else ""
    return Text(started + ended + seconds)


def _error(run: Run) -> Text:
    error = dict(run.error or {})
    text = Text(clean(str(error.get("message", "failed"))), style="red")
    for suggestion in error.get("suggestions") or ():
        text.append(f"\n  {clean(str(suggestion))}", style="default")
    if error.get("traceback"):
        text.append("\n" + clean(str(error["traceback"])).rstrip(), style="dim")
    return text


def _shortened(result: Any) -> str:
    if isinstance(result, dict) and isinstance(result.get("text"), str):
        text = result["text"]
    else:
        text = json.dumps(result, indent=2, ensure_ascii=False)
    lines = clean(text).splitlines()
    more = [f"… and {len(lines) - RESULT_LINES} more lines: --json"] if len(lines) > RESULT_LINES else []
    return "\n".join([*lines[:RESULT_LINES], *more])
