"""`muster task logs` and `muster task watch`: what happens to a task, and to all of them, while it happens."""

import sys
from contextlib import aclosing
from datetime import datetime
from typing import Annotated

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from muster.app import Muster
from muster.app.pool.monitor import UNSETTLED, LogRecord, PoolSnapshot
from muster.app.views.pool import snapshot_view
from muster.app.views.tasks import log_view
from muster.cli.line import Option
from muster.cli.options import TaskArgument
from muster.cli.pool.tables import slots_table, status_lines, task_notes, tasks_table
from muster.cli.pool.words import work_text
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, clean, console, json_text, note, say
from muster.cli.terminal.runs import event_line
from muster.domain.errors import AwaitsSignal
from muster.domain.task import TaskState
from muster.text.words import count

TABLE_FRAME = 4  # lines of a table besides its rows
MIN_TASKS = 3  # that are shown, however small a terminal is
HIDDEN = frozenset({"run.created", "call.done", "call.reused"})  # the output says as much


def logs(
    common: CommonOptions,
    task: TaskArgument,
    follow: Annotated[bool, Option("-f", "--follow", help="Keep printing until the task ends.")] = False,
) -> None:
    """Print what happened to a task and what its agent wrote."""

    async def work(muster: Muster) -> None:
        written = False  # the last thing that was printed is output, perhaps in the middle of a line
        async with aclosing(muster.pool.monitor.logs(task, follow=follow)) as records:
            async for record in records:
                if common.json:
                    say(json_text(log_view(record)))
                elif record.event is None:
                    sys.stdout.write(clean(record.text))
                    sys.stdout.flush()
                    written = bool(record.text) and not record.text.endswith("\n")
                elif record.event.kind not in HIDDEN:
                    say(("\n" if written else "") + log_line(record))
                    written = False
        if written:
            say("")

    with_muster(common, work)


def log_line(record: LogRecord) -> str:
    """Return an event of a task as a line; what a review or a program said follows in lines of its own."""
    event = record.event
    if event is None:
        return clean(record.text)
    time, data = f"{datetime.fromtimestamp(event.at).astimezone():%H:%M:%S}", event.data
    match event.kind:
        case "task.tree":
            return clean(f"{time}  worktree {data.get('path', '')}, branch {data.get('branch', '')}")
        case "signal.received":
            return clean(f"{time}  {record.text or 'received: ' + str(data.get('channel', ''))}")
        case "run.waiting" if data.get("reason") == AwaitsSignal.code:
            return f"{time}  waiting for a person"
        case "call.failed":
            log = (f"          {line}" for line in record.text.splitlines()[1:])
            return clean("\n".join([event_line(event), *log]))
    return clean(event_line(event))


def watch(common: CommonOptions) -> None:
    """Show slots and tasks until no task is pending or running; Ctrl-C stops watching, not the tasks."""

    async def work(muster: Muster) -> None:
        async with aclosing(muster.pool.monitor.watch()) as snapshots:
            with _screen(common) as screen:
                async for snapshot in snapshots:
                    screen.show(snapshot)
                    if snapshot.at_rest:
                        return

    try:
        with_muster(common, work)
    except KeyboardInterrupt:
        note(common, "stopped watching; tasks continue")


class LiveScreen:
    """A table in the terminal that is drawn again whenever something changed."""

    def __init__(self) -> None:
        self._live = Live(console=console(), auto_refresh=False, vertical_overflow="ellipsis")

    def __enter__(self) -> "LiveScreen":
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(None, None, None)

    def show(self, snapshot: PoolSnapshot) -> None:
        """Draw the pool as it is."""
        width, height = self._live.console.size
        self._live.update(drawn(snapshot, width, height), refresh=True)


class StateLines:
    """A line for every task whose state changed, where there is no terminal; a JSON line of all with `--json`."""

    def __init__(self, common: CommonOptions) -> None:
        self._common = common
        self._told: dict[str, TaskState] = {}

    def __enter__(self) -> "StateLines":
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def show(self, snapshot: PoolSnapshot) -> None:
        """Print what changed."""
        if self._common.json:
            say(json_text(snapshot_view(snapshot)))
            return
        if not self._told:
            say(clean("\n".join(status_lines(snapshot.status))))
        for task in reversed(snapshot.tasks):
            if self._told.get(task.id) is not task.state:
                self._told[task.id] = task.state
                slot = f" in {task.slot.name}" if task.slot is not None else ""
                work = work_text(task) if task.state not in UNSETTLED else ""
                told = f"task {task.title} is {task.state}{slot}, {task.cost}"
                say(clean(told + (f"; {work}" if work else "")))


def drawn(snapshot: PoolSnapshot, width: int, height: int) -> RenderableType:
    """Return the pool as it fits into a terminal: tasks at work first, each on one line, then notes about them."""
    status, slots = status_lines(snapshot.status), slots_table(snapshot.status.slots, width)
    room = height - len(status) - TABLE_FRAME - slots.row_count - TABLE_FRAME  # for tasks and notes
    notes = task_notes(snapshot.tasks)
    fits = len(snapshot.tasks) + len(notes) + bool(snapshot.left_out) <= room
    tasks = snapshot.tasks if fits else snapshot.tasks[: max(MIN_TASKS, room - 1)]
    left_out = snapshot.left_out + len(snapshot.tasks) - len(tasks)
    shown = notes if fits else notes[: max(0, room - len(tasks) - 1)]
    more = [(left_out, "more task"), (len(notes) - len(shown), "more note")]
    told = ", ".join(count(number, noun) for number, noun in more if number)
    lines = [*shown, *([f"{told}: muster task list --limit N"] if told else [])]
    return Group(
        Text("\n".join(status), no_wrap=True, overflow="ellipsis"),
        tasks_table(tasks, width, snapshot.writing),
        *(Text(line, no_wrap=True, overflow="ellipsis") for line in lines),
        slots,
    )


def _screen(common: CommonOptions) -> LiveScreen | StateLines:
    return StateLines(common) if common.json or not sys.stdout.isatty() else LiveScreen()
