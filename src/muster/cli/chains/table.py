"""Chains for people: a table of the steps, and what the last of them gave."""

from typing import TYPE_CHECKING

from muster.app.chains.chains import ChainProgress, StepRecord, StepStatus
from muster.cli.pool.words import repository_lines
from muster.cli.terminal.output import clean
from muster.cli.terminal.runs import run_cost
from muster.cli.terminal.table import Column, fitted
from muster.domain.errors import state_verb
from muster.domain.money import usd_format
from muster.domain.run import TERMINAL, RunState
from muster.text.words import count, one_line

if TYPE_CHECKING:
    from rich.console import Console

MAX_CELL = 100  # characters
MAX_ROWS = 20  # failed rows that are named


def tell_progress(console: "Console", found: ChainProgress) -> None:
    """Print how far a chain is."""
    console.print(clean(headline(found)), soft_wrap=True)
    if found.rows:
        _tell_rows(console, found)
    else:
        _tell_steps(console, found)
    if found.setup:
        console.print(clean(f"preparing the worktree: {one_line(found.setup, MAX_CELL)}"), soft_wrap=True)
    if found.branch:
        changes = f": {found.summary}" if found.summary else ""
        console.print(clean(f"its work is on the branch {found.branch}{changes}"), soft_wrap=True)
    for line in repository_lines(f"chain {found.chain}", found.repository):
        console.print(clean(line), soft_wrap=True)
    if found.partial_output:
        console.print(clean(f"writing: {one_line(found.partial_output, MAX_CELL)}"), soft_wrap=True)
    if found.run.state is RunState.COMPLETED and isinstance(found.run.result, dict) and not found.rows:
        console.print(clean(str(found.run.result.get("output", ""))), soft_wrap=True)


def headline(found: ChainProgress) -> str:
    """Return on one line how a chain stands."""
    unit = "row" if found.rows else "step"
    now = f", at step {found.current[0]}: {found.current[1]}" if found.current else ""
    done = f"{found.completed:,} of {count(found.total, unit)} completed{now}"
    return f"chain {found.chain}, run {found.run.id} {state_verb(found.run.state)}: {done}"


def _tell_steps(console: "Console", found: ChainProgress) -> None:
    steps = found.steps
    usd = usd_format(*(step.cost for step in steps))
    columns = [
        Column("step", [clean(step.name) for step in steps], right=False, folds=True, least=16),
        Column("status", [str(step.status) for step in steps], right=False),
        Column("cost", [usd(step.cost) for step in steps]),
        Column("retries", [str(step.retries_used) for step in steps]),
        Column("output", [_words(step) for step in steps], right=False, folds=True, least=20),
    ]
    console.print(fitted(columns, ("retries", "cost"), console.width))


def _words(step: StepRecord) -> str:
    if step.status is StepStatus.FAILED:
        return clean(one_line(step.error, MAX_CELL))
    return clean(one_line(step.skipped or step.output, MAX_CELL))


def _tell_rows(console: "Console", found: ChainProgress) -> None:
    for row in found.rows:
        if row.output is not None:
            branch = f" (its work is on the branch {row.branch})" if row.branch else ""
            console.out(clean(f"row {row.index + 1}{branch}:\n{row.output}\n"), highlight=False)
    unread = [row for row in found.rows if row.status is StepStatus.COMPLETED and row.output is None]
    if unread and found.run.state in TERMINAL:
        console.print(f"the output of {count(len(unread), 'more row')} is shown by: muster runs show {found.run.id}")
    failed = [row for row in found.rows if row.status is StepStatus.FAILED]
    for row in failed[:MAX_ROWS]:
        console.print(clean(f"row {row.index + 1}: {row.error}"), soft_wrap=True)
    if len(failed) > MAX_ROWS:
        console.print(f"and {count(len(failed) - MAX_ROWS, 'more row')} that failed")
    console.print(f"cost: {run_cost(found.run)}")
