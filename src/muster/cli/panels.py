"""Runs drawn for a terminal: panels and tables. Whatever models or users wrote is shown as plain text."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from rich.box import ROUNDED, SIMPLE_HEAD
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from muster.cli.clean import clean
from muster.cli.portrait import COLOURS, ways_on
from muster.domain.entry import Entry
from muster.domain.money import show_usd
from muster.domain.run import DRIVEN, Run

RESULT_LINES = 16


class Attempt(Protocol):
    """One attempt of a call, as it is stored."""

    @property
    def key(self) -> str: ...  # noqa: D102
    @property
    def n(self) -> int: ...  # noqa: D102
    @property
    def cost(self) -> int: ...  # noqa: D102
    @property
    def error(self) -> Mapping[str, Any] | None: ...  # noqa: D102


def runs_table(runs: Sequence[Run], now: float) -> Table:
    """Draw runs, the newest first."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    uncertain = any(run.spent.uncertain for run in runs)
    table.add_column("run", no_wrap=True, min_width=16)
    table.add_column("what", overflow="fold", min_width=8)
    table.add_column("state", no_wrap=True, min_width=11)
    for name in ("done", "spent", *(("uncertain",) if uncertain else ()), "age"):
        table.add_column(name, justify="right", no_wrap=True)
    for run in runs:
        table.add_row(*_run_row(run, now, uncertain=uncertain))
    return table


def _run_row(run: Run, now: float, *, uncertain: bool) -> list[Text | str]:
    what = Text(clean(run.workload)).append(f" {clean(run.name)}" if run.name else "", style="bold")
    row: list[Text | str] = [run.id, what, Text(run.state, style=COLOURS[run.state])]
    row += [f"{run.calls.done}/{run.calls.total}", show_usd(run.spent.billed + run.spent.imputed)]
    row += [show_usd(run.spent.uncertain) if run.spent.uncertain else ""] if uncertain else []
    return [*row, _age(now - run.created_at)]


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def run_panel(run: Run) -> Panel:
    """Draw one run: what it is, its money, its calls, what went wrong and how to go on."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in _facts(run):
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


def _facts(run: Run) -> list[tuple[str, Text]]:
    state = Text(run.state, style=f"bold {COLOURS[run.state]}")
    if run.ended_reason and run.ended_reason not in (run.state, "done"):
        state.append(f"  ({clean(run.ended_reason)})", style="default")
    found = [("state", state), ("workload", Text(clean(run.workload)))]
    if run.state in DRIVEN:
        found.append(("driver", Text(str(run.lease.driver))))
    if run.origin is not None:
        fork = f", from {clean(run.origin.fork_key)}" if run.origin.fork_key else ""
        found.append(("comes from", Text(f"run {run.origin.run} ({run.origin.reuse}{fork})")))
    found += [("money", _money(run)), ("calls", _calls(run)), ("time", _time(run))]
    return [*found, ("go on", Text("\n".join(ways_on(run)), style="cyan"))]


def _money(run: Run) -> Text:
    spent = run.spent
    text = Text(f"{show_usd(spent.billed)} spent")
    if spent.imputed:
        text.append(f", {show_usd(spent.imputed)} covered by a subscription")
    if spent.uncertain:
        text.append(f", {show_usd(spent.uncertain)} uncertain", style="yellow")
    if spent.reserved:
        text.append(f", {show_usd(spent.reserved)} reserved")
    return text.append("  (no cap)" if run.cap is None else f"  of {show_usd(run.cap)}", style="dim")


def _calls(run: Run) -> Text:
    calls = run.calls
    text = Text(f"{calls.done} of {calls.total} done")
    if calls.reused:
        text.append(f", {calls.reused} of them reused")
    if calls.failed:
        text.append(f", {calls.failed} failed", style="red")
    if calls.uncertain:
        text.append(f", {calls.uncertain} attempts uncertain", style="yellow")
    return text


def _time(run: Run) -> Text:
    ended = f", ended {_local(run.ended_at)}" if run.ended_at else ""
    started = f"started {_local(run.started_at)}" if run.started_at else f"made {_local(run.created_at)}"
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


def calls_table(entries: Sequence[Entry]) -> Table:
    """Draw calls in the order they were made."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("key", "agent", "state"):
        table.add_column(name, overflow="fold")
    table.add_column("attempts", justify="right")
    table.add_column("quality")
    table.add_column("cost", justify="right")
    table.add_column("time", justify="right")
    for entry in entries:
        table.add_row(*_call_row(entry))
    return table


def _call_row(entry: Entry) -> tuple[Text | str, ...]:
    reply = entry.reply
    colour = {"done": "green", "failed": "red"}.get(entry.state, "yellow")
    why = f": {entry.error.get('code')}" if entry.error else ""
    return (
        Text(clean(entry.key)),
        Text(clean(entry.agent or "")),
        Text(f"{entry.state}{why}", style=colour),
        "reused" if entry.reused_from else str(entry.attempts),
        "" if reply is None else str(reply.quality),
        "" if reply is None or entry.reused_from else show_usd(reply.cost),
        "" if reply is None else f"{reply.timings.wire:.1f} s",
    )


def attempts_table(attempts: Sequence[Attempt]) -> Table:
    """Draw attempts whose outcome is unknown, with the most they can have cost."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title="outcome unknown", title_justify="left", title_style="yellow")
    table.add_column("key", overflow="fold")
    table.add_column("attempt", justify="right")
    table.add_column("at most", justify="right")
    table.add_column("why", overflow="fold")
    for attempt in attempts:
        why = str((attempt.error or {}).get("message", ""))
        table.add_row(Text(clean(attempt.key)), str(attempt.n), show_usd(attempt.cost), Text(clean(why)))
    return table


def _local(at: float | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"
