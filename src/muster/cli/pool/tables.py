"""Tasks and slots as tables for a terminal."""

import json
from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from muster.app.pool.status import PoolStatus, Slot
from muster.app.pool.task_queries import Task
from muster.app.pool.values import PermissionQuestion
from muster.cli.pool.words import has_asides, notice_lines, work_cell, work_text
from muster.cli.terminal.costs import cost_columns
from muster.cli.terminal.output import clean
from muster.cli.terminal.table import GAP, Column, filled, fitted, fitting
from muster.domain.money import show_usd
from muster.domain.task import TaskState
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
MAX_WORDS = 60
MAX_QUESTION = 300
MAX_NAME = 24
MIN_WORDS = 16  # of the prompt, before a column is left out
SLOTS_LEAST_MISSED = ("completed", "role", "slot", "error")
MIN_MISSED = ("branch", "imputed", "slot", "budget", "work", "uncertain")


def tasks_table(tasks: Sequence[Task], width: int, writing: Mapping[str, str] | None = None) -> Table:
    """Return tasks as a table with one line for each; `writing` is the last line of what a task's agent writes."""
    states = [Text(str(task.state), style=COLOURS[task.state]) for task in tasks]
    slots = ["" if task.slot is None else one_line(task.slot.name, MAX_NAME) for task in tasks]
    columns = [
        Column("task", [task.id for task in tasks], right=False),
        Column("state", states, right=False),
        Column("slot", slots, right=False),
        Column("work", [work_cell(task) for task in tasks], right=False),
        Column("branch", [task.branch or "" for task in tasks], right=False),
        *cost_columns([task.cost for task in tasks]),
    ]
    used = [column for column in columns if any(map(str, column.cells))]
    words = Column("prompt", ["x" * MIN_WORDS])
    kept = [column for column in fitting([*used, words], MIN_MISSED, width, GAP) if column.name != words.name]
    room = max(MIN_WORDS, width - sum(column.width + GAP for column in kept) - GAP)
    said = [_said(task, writing or {}, room) for task in tasks]
    return filled(_table(), [*kept, Column(words.name, said, right=False)])


def _table() -> Table:
    return Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def _said(task: Task, writing: Mapping[str, str], room: int) -> Text:
    """Return the name of a task, what it is about or waits for, and what its agent writes, on one line."""
    asks = "" if task.permission is None else permission_text(task.permission)
    preparing = f"prepares its worktree: {task.setup}" if task.setup else ""
    name = f"{task.run.name}: " if task.run.name else ""
    about = clean(name + (task.refusal or asks or preparing or task.spec.prompt))
    last = one_line(clean(writing.get(task.id, "")), room)
    words = one_line(about, max(MIN_WORDS, room - len(last) - GAP) if last else room)
    left = room - len(words) - GAP
    return Text(words).append(f"  {one_line(last, left)}" if last and left > 1 else "", style="dim")


def task_notes(tasks: Sequence[Task]) -> list[str]:
    """Return lines about tasks of a table whose work is not only on their branches, or that changed more than files."""
    notes = [clean(f"task {task.title}: {work_text(task)}") for task in tasks if has_asides(task)]
    return notes + [clean(line) for task in tasks for line in notice_lines(task)]


def permission_text(question: PermissionQuestion) -> str:
    """Return what is asked for, in one line."""
    given = "" if question.input is None else f": {json.dumps(question.input, ensure_ascii=False)}"
    return one_line(clean(f"asks for permission to use {question.wanted}{given}"), MAX_QUESTION)


def slots_table(slots: Sequence[Slot], width: int) -> Table:
    """Return slots as a table with one line for each, as far as their names allow."""
    errors = [Text(one_line(clean(slot.record.error), MAX_WORDS)) for slot in slots]
    titles = ["" if slot.task is None else one_line(clean(slot.task.title), MAX_WORDS) for slot in slots]
    columns = [
        Column("slot", [slot.profile.id for slot in slots], right=False),
        Column("name", [one_line(slot.profile.name, MAX_NAME) for slot in slots], right=False),
        Column("role", [one_line(slot.profile.role, MAX_NAME) for slot in slots], right=False),
        Column("state", [Text(slot.state, style=SLOT_COLOURS[slot.state]) for slot in slots], right=False),
        Column("task", [Text(title) for title in titles], right=False, folds=True),
        Column("completed", [str(slot.record.completed) for slot in slots]),
        *cost_columns([slot.cost for slot in slots]),
        Column("error", errors, right=False, folds=True),
    ]
    used = [column for column in columns if any(map(str, column.cells))]
    return fitted(used, SLOTS_LEAST_MISSED, width)


def status_lines(status: PoolStatus) -> list[str]:
    """Return the pool at a glance, in lines."""
    slots = ", ".join(
        f"{number} {state}" for state in SLOT_COLOURS if (number := sum(one.state == state for one in status.slots))
    )
    tasks = ", ".join(f"{number:,} {state}" for state, number in status.tasks.items() if number)
    driver = f"run by {status.driver}" if status.driver else "no process runs it; start one with: muster pool start"
    return [
        f"slots: {slots or 'none yet'}",
        f"tasks: {tasks or 'none yet'}",
        f"spent: {status.cost}" + (f", {unlisted_words(status)}" if status.unlisted else ""),
        _drained(status) if status.draining else driver,
    ]


def unlisted_words(status: PoolStatus) -> str:
    """Return what is part of the pool's cost and of no slot's."""
    return f"{show_usd(status.unlisted)} of it by no task of a slot: deleted ones, or of removed slots"


def _drained(status: PoolStatus) -> str:
    busy = sum(slot.state == "busy" for slot in status.slots)
    if not busy:
        return "drained; start it again with: muster pool start"
    return f"draining: {count(busy, 'task')} {'is' if busy == 1 else 'are'} running"
