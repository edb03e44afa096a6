"""A bar on a terminal, with a line under it for what is waited for."""

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn
from rich.text import Text

from muster.cli.terminal.output import clean, console
from muster.cli.terminal.progress import ProgressState, age
from muster.cli.terminal.times import span

WIDTH = 24
NARROW, NARROWER = 90, 70  # columns; below, the numbers need the room of the bar, and then of the title


class Spinner(SpinnerColumn):
    """Turns until it is told to stand still; then nothing is left of it."""

    still = False

    def render(self, task: Task) -> RenderableType:
        """Return the next picture."""
        return Text(" ") if self.still else super().render(task)


class Underlined(Progress):
    """A bar with words under it."""

    under = ""
    below: tuple[str, ...] = ()

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the bar, and the words if there are any."""
        yield self.make_tasks_table(self.tasks)
        for line in self.below:
            yield Text(f"  {line}", overflow="ellipsis", no_wrap=True)
        if self.under:
            yield Text(f"  {self.under}", style="dim", overflow="fold")


class BarDisplay:
    """Draws a bar on standard error; one that does not stay is gone when it is done."""

    def __init__(self, *, stays: bool = True) -> None:
        out = console(stderr=True)
        self._spinner = Spinner(finished_text=" ")
        self._progress = Underlined(
            self._spinner,
            *([TextColumn("{task.fields[title]}", markup=False)] if out.width >= NARROWER else []),
            *([BarColumn(bar_width=WIDTH)] if out.width >= NARROW else []),
            TextColumn("{task.fields[count]}", markup=False, style="green"),
            TextColumn("{task.fields[time]}", markup=False, style="yellow"),
            TextColumn("{task.fields[words]}", markup=False),
            console=out,
            transient=not stays,
        )
        self._began = time.time()
        self._task: Any = None

    def __enter__(self) -> Self:
        self._began = time.time()
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spinner.still = True
        self._progress.under, self._progress.below = "", ()  # what was waited for is past, one way or another
        self._progress.stop()

    def show(self, state: ProgressState, *, last: bool = False) -> None:
        """Draw how it stands."""
        now = time.time()
        self._progress.under = clean(f"{state.waits}{age(state, now)}") if state.waits else ""
        self._progress.below = tuple(clean(line) for line in (state.activity, *state.below) if line)
        total = None if state.total is None else max(state.total, 1)
        shown: dict[str, Any] = {
            "title": state.title,
            "count": "" if state.total is None else f"{state.done:,}/{total:,} {state.unit}",
            "time": span(now - (self._began if state.waits or state.since is None else state.since)),
            "words": clean(state.words),
        }
        if self._task is None:
            self._task = self._progress.add_task("", total=total, completed=state.done, **shown)
        else:
            self._progress.update(self._task, total=total, completed=state.done, **shown)

    def tell(self, text: str) -> None:
        """Print above the bar."""
        self._progress.console.print(clean(text))
