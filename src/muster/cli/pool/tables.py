"""Tasks and slots as tables for a terminal."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from muster.app.pool.pool import PoolStatus, Slot
from muster.app.pool.tasks import Task
from muster.app.pool.values import TaskState
from muster.cli.terminal.output import clean
from muster.domain.money import show_usd
from muster.text.words import one_line

COLOURS = {
    TaskState.PENDING: "cyan",
    TaskState.RUNNING: "blue",
    TaskState.PENDING_REVIEW: "yellow",
    TaskState.COMPLETED: "green",
    TaskState.FAILED: "red",
    TaskState.CANCELED: "magenta",
}
SLOT_COLOURS = {"idle": "green", "busy": "blue", "stopped": "yellow", "errored": "red"}
MOST_WORDS = 60


def tasks_table(tasks: Sequence[Task]) -> Table:
    """Return tasks as a table."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("task", "state", "slot", "cost", "prompt"):
        table.add_column(name, overflow="fold")
    for task in tasks:
        cost = show_usd(task.run.total.billed + task.run.total.imputed)
        slot = "" if task.slot is None else task.slot.name
        words = one_line(clean(task.refusal or task.spec.prompt), MOST_WORDS)
        table.add_row(task.id, Text(str(task.state), style=COLOURS[task.state]), slot, cost, Text(words))
    return table


def slots_table(slots: Sequence[Slot]) -> Table:
    """Return slots as a table."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("slot", "name", "role", "state", "task", "completed", "error"):
        table.add_column(name, overflow="fold")
    for slot in slots:
        state = Text(slot.state, style=SLOT_COLOURS[slot.state])
        task = "" if slot.task is None else slot.task.id
        error = Text(one_line(clean(slot.record.error), MOST_WORDS))
        table.add_row(
            slot.profile.id, slot.profile.name, slot.profile.role, state, task, str(slot.record.completed), error
        )
    return table


def status_lines(status: PoolStatus) -> list[str]:
    """Return the pool at a glance, in lines."""
    slots = ", ".join(
        f"{number} {state}" for state in SLOT_COLOURS if (number := sum(one.state == state for one in status.slots))
    )
    tasks = ", ".join(f"{number:,} {state}" for state, number in status.tasks.items() if number)
    budget = f" of {show_usd(status.budget)}" if status.budget is not None else ""
    driver = (
        f"driven by {status.driver}" if status.driver else "no process drives it; start one with: muster pool start"
    )
    return [
        f"slots: {slots or 'none yet'}",
        f"tasks: {tasks or 'none yet'}",
        f"spent: {show_usd(status.spent)}{budget}",
        "draining" if status.draining else driver,
    ]
