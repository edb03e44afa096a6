"""Tasks and slots as tables for a terminal."""

import json
from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from muster.app.pool.status import PoolStatus, Slot
from muster.app.pool.task_queries import Task
from muster.app.pool.trees import OverlapReport, TaskOverlap
from muster.app.pool.values import PermissionQuestion, TaskState
from muster.cli.terminal.output import clean
from muster.domain.money import show_usd
from muster.text.words import count, one_line

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
MOST_QUESTION = 300


def tasks_table(tasks: Sequence[Task], writing: Mapping[str, str] | None = None) -> Table:
    """Return tasks as a table; `writing` is the last line of what a task's agent writes, shown beside its prompt."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("task", "state", "slot", "cost", "prompt"):
        table.add_column(name, overflow="fold")
    for task in tasks:
        cost = show_usd(task.run.total.billed + task.run.total.imputed)
        cost += f", {show_usd(task.run.total.uncertain)} uncertain" if task.run.total.uncertain else ""
        slot = "" if task.slot is None else task.slot.name
        asks = "" if task.permission is None else permission_text(task.permission)
        preparing = f"prepares its worktree: {task.setup}" if task.setup else ""
        words = one_line(clean(task.refusal or asks or preparing or task.spec.prompt), MOST_WORDS)
        said = one_line(clean((writing or {}).get(task.id, "")), MOST_WORDS)
        told = Text(words).append(f"  {said}" if said else "", style="dim")
        table.add_row(task.id, Text(str(task.state), style=COLOURS[task.state]), slot, cost, told)
    return table


def permission_text(question: PermissionQuestion) -> str:
    """Return what is asked for, in one line."""
    given = "" if question.input is None else f": {json.dumps(question.input, ensure_ascii=False)}"
    return one_line(clean(f"asks for permission to use {question.wanted}{given}"), MOST_QUESTION)


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


def overlap_lines(found: OverlapReport, task: str | None = None) -> list[str]:
    """Return the files that several tasks changed, in lines; of one task, with the others."""
    lines = [_overlap_words(one, task) for one in found.overlaps]
    if found.left_out:
        lines.append(f"{found.left_out:,} older tasks were not compared")
    if found.obstacle:
        lines.append(f"whether other tasks changed the same files is not known: {found.obstacle}")
    return lines


def _overlap_words(one: TaskOverlap, task: str | None) -> str:
    conflicts = [pair for pair in one.conflicts if task is None or task in pair]
    others = [other for other in one.tasks if other != task]
    if not conflicts:
        same = "" if one.examined else "; whether in the same lines is not known"
    else:
        pairs = (" and ".join(other for other in pair if other != task) for pair in conflicts)
        same = f"; in the same lines: {', '.join(pairs)}"
    too = "is also changed by" if task else "is changed by"
    return f"{one.path} {too} {', '.join(others)}{same}"


def status_lines(status: PoolStatus) -> list[str]:
    """Return the pool at a glance, in lines."""
    slots = ", ".join(
        f"{number} {state}" for state in SLOT_COLOURS if (number := sum(one.state == state for one in status.slots))
    )
    tasks = ", ".join(f"{number:,} {state}" for state, number in status.tasks.items() if number)
    budget = f" of {show_usd(status.budget)}" if status.budget is not None else ""
    driver = f"run by {status.driver}" if status.driver else "no process runs it; start one with: muster pool start"
    return [
        f"slots: {slots or 'none yet'}",
        f"tasks: {tasks or 'none yet'}",
        f"spent: {show_usd(status.spent)}{budget}",
        _drained(status) if status.draining else driver,
    ]


def _drained(status: PoolStatus) -> str:
    busy = sum(slot.state == "busy" for slot in status.slots)
    if not busy:
        return "drained; start it again with: muster pool start"
    return f"draining: {count(busy, 'task')} {'is' if busy == 1 else 'are'} running"
