"""A comparison for a terminal: the verdict, the numbers, and the cases that changed."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster.app.suites.values import (
    WORDS,
    Change,
    Comparison,
    ComparisonVerdict,
    RunComparison,
    SubjectComparison,
    between,
    gate_words,
    limits,
    power,
    summary,
)
from muster.app.views.suites import BaselineView
from muster.cli.terminal.output import clean
from muster.text.words import percent

COLOURS = {
    ComparisonVerdict.BETTER: "green",
    ComparisonVerdict.SAME: "green",
    ComparisonVerdict.NOT_WORSE: "green",
    ComparisonVerdict.WORSE: "red",
    ComparisonVerdict.UNSURE: "yellow",
}
MAX_CHANGES = 50


def tell_comparison(console: Console, found: RunComparison) -> None:
    """Print a comparison."""
    verdict = (str(found.verdict).upper(), f"bold {COLOURS[found.verdict]}")
    console.print(Text.assemble(verdict, f"{gate_words(found)}  {clean(found.why)}"), soft_wrap=True)
    console.print(Text(f"A {_named(found, 0)}   B {_named(found, 1)}", style="dim"), soft_wrap=True)
    for note in found.notes:
        console.print(Text(f"note: {clean(note)}", style="yellow"), soft_wrap=True)
    for one in found.subjects:
        if len(found.subjects) > 1:
            mark = (str(one.comparison.verdict), COLOURS[one.comparison.verdict])
            console.print()
            console.print(Text.assemble((clean(one.before), "bold"), "  ", mark))
        _tell_subject(console, one, alone=len(found.subjects) == 1)


def _named(found: RunComparison, side: int) -> str:
    one = (found.a, found.b)[side]
    run = one.suite.run
    return clean(one.name) + ("" if one.name == run.id else f" (run {run.id})")


def _tell_subject(console: Console, one: SubjectComparison, *, alone: bool) -> None:
    found = one.comparison
    console.print(_numbers(found))
    for line in (limits(found), None if alone else power(found), summary(found)):
        if line:
            console.print(Text(line, style="dim"), soft_wrap=True)
    for title, changes, colour in (("regressed", found.regressions, "red"), ("improved", found.improvements, "green")):
        if changes:
            console.print(_changes(title, changes, colour))
            if len(changes) > MAX_CHANGES:
                console.print(Text(f"… and {len(changes) - MAX_CHANGES:,} more", style="dim"))


def _numbers(found: Comparison) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for name in ("A", "B"):
        table.add_column(name, justify="right")
    table.add_column("difference")
    table.add_column("p", justify="right")
    points = "–"
    if found.pass_difference is not None:
        points = f"{100 * found.pass_difference:+.1f} points{between(found.pass_interval, 100)}"
    moved = "–"
    if found.score_difference is not None:
        moved = f"{found.score_difference:+.3f}{between(found.score_interval)}"
    table.add_row("pass rate", percent(found.pass_before), percent(found.pass_after), points, f"{found.pass_p:.3g}")
    table.add_row("score", _score(found.score_before), _score(found.score_after), moved, f"{found.score_p:.3g}")
    return table


def _changes(title: str, changes: Sequence[Change], colour: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(title, overflow="fold", header_style=f"bold {colour}")
    table.add_column("epoch", justify="right")
    for name in ("A", "B"):
        table.add_column(name, no_wrap=True)
    table.add_column("score", no_wrap=True)
    for change in changes[:MAX_CHANGES]:
        after = "missing" if change.after is None else WORDS[change.after]
        scores = f"{_score(change.before_score)} → {_score(change.after_score)}"
        table.add_row(Text(clean(change.case)), str(change.epoch), WORDS[change.before], after, scores)
    return table


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.3f}"


def baselines_table(rows: Sequence[BaselineView]) -> Table:
    """Draw the baselines, one below the other."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("baseline", "run", "called", "since"):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(Text(clean(row.name)), row.run, Text(clean(row.run_name or "")), row.set_at)
    return table
