"""Runs, calls and attempts in tables for a terminal. Whatever models or users wrote is shown as plain text."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from muster.cli.clean import clean
from muster.cli.columns import Column, fitted
from muster.cli.portrait import COLOURS
from muster.cli.spans import rough
from muster.domain.entry import Entry
from muster.domain.money import show_usd
from muster.domain.run import Run

WIDE, NARROW = 28, 12  # columns for what folds
RUNS_LEAST_MISSED = ("age", "done")
CALLS_LEAST_MISSED = ("quality", "attempts", "time", "agent")


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


def runs_table(runs: Sequence[Run], now: float, width: int) -> Table:
    """Draw runs, the newest first; what there is no room for is left out, but never ids and costs."""
    columns = [
        Column("run", [run.id for run in runs], right=False),
        Column("what", [_what(run) for run in runs], right=False, folds=True, least=NARROW),
        Column("state", [Text(run.state, style=COLOURS[run.state]) for run in runs], right=False),
        Column("done", [f"{run.calls.done}/{run.calls.total}" for run in runs]),
        Column("spent", [show_usd(run.spent.billed + run.spent.imputed) for run in runs]),
    ]
    if any(run.spent.uncertain for run in runs):
        amounts = [show_usd(run.spent.uncertain) if run.spent.uncertain else "" for run in runs]
        columns.append(Column("uncertain", amounts))
    columns.append(Column("age", [rough(now - run.created_at) for run in runs]))
    return fitted(columns, RUNS_LEAST_MISSED, width)


def _what(run: Run) -> Text:
    return Text(clean(run.workload)).append(f" {clean(run.name)}" if run.name else "", style="bold")


def calls_table(entries: Sequence[Entry], width: int) -> Table:
    """Draw calls in the order they were made; what there is no room for is left out, but never keys and costs."""
    replies = [entry.reply for entry in entries]
    paid = [None if entry.reused_from else reply for entry, reply in zip(entries, replies, strict=True)]
    columns = [
        Column("key", [Text(clean(entry.key)) for entry in entries], right=False, folds=True, least=WIDE),
        Column("agent", [Text(clean(entry.agent or "")) for entry in entries], right=False, folds=True, least=NARROW),
        Column("state", [_state(entry) for entry in entries], right=False, folds=True, least=NARROW),
        Column("attempts", ["reused" if entry.reused_from else str(entry.attempts) for entry in entries]),
        Column("quality", ["" if reply is None else str(reply.quality) for reply in replies], right=False),
        Column("cost", ["" if reply is None else show_usd(reply.cost) for reply in paid]),
        Column("time", ["" if reply is None else f"{reply.timings.shown:.1f} s" for reply in replies]),
    ]
    return fitted(columns, CALLS_LEAST_MISSED, width)


def _state(entry: Entry) -> Text:
    colour = {"done": "green", "failed": "red"}.get(entry.state, "yellow")
    why = f": {entry.error.get('code')}" if entry.error else ""
    return Text(f"{entry.state}{why}", style=colour)


def attempts_table(attempts: Sequence[Attempt]) -> Table:
    """Draw attempts whose outcome is unknown, with the most they can have cost."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title="outcome unknown", title_justify="left", title_style="yellow")
    table.add_column("key", overflow="fold")
    table.add_column("attempt", justify="right", no_wrap=True)
    table.add_column("at most", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for attempt in attempts:
        why = str((attempt.error or {}).get("message", ""))
        table.add_row(Text(clean(attempt.key)), str(attempt.n), show_usd(attempt.cost), Text(clean(why)))
    return table
