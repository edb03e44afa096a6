"""How far a run is: a bar on a terminal, now and then a line elsewhere, nothing when quiet. Shows stored runs only."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from muster.cli.manner import Manner
from muster.cli.speech import console, warn
from muster.domain.money import show_usd

if TYPE_CHECKING:
    from muster.domain.run import Run

SECONDS_BETWEEN_LINES = 1.0


class Display(Protocol):
    """Shows one run while it is driven; a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, run: "Run", on_wire: int, *, last: bool = False) -> None:
        """Show how the run stands."""

    def tell(self, text: str) -> None:
        """Say something in between."""


def display(manner: Manner) -> Display:
    """Choose the display for where we are."""
    if manner.quiet:
        return Silence()
    return Bar() if sys.stderr.isatty() else Lines()


def facts(run: "Run", on_wire: int) -> str:
    """Put the numbers of a run in a few words."""
    calls, spent = run.calls, run.spent
    parts = [f"{calls.failed} failed"] if calls.failed else []
    parts += [f"{calls.reused} reused"] if calls.reused else []
    parts += [f"{on_wire} on the wire"] if on_wire else []
    parts += [show_usd(spent.billed + spent.imputed)]
    parts += [f"{show_usd(spent.uncertain)} uncertain"] if spent.uncertain else []
    return ", ".join(parts)


class Silence:
    """Shows nothing; what must be known is still told."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, run: "Run", on_wire: int, *, last: bool = False) -> None:
        """Show nothing."""

    def tell(self, text: str) -> None:
        """Say something in between."""
        warn(text)


class Hush(Silence):
    """Says nothing at all."""

    def tell(self, text: str) -> None:
        """Say nothing."""


class Lines(Silence):
    """Prints a line when something changed, at most one a second."""

    def __init__(self) -> None:
        self._printed = ""
        self._printed_at = float("-inf")

    def show(self, run: "Run", on_wire: int, *, last: bool = False) -> None:
        """Print how the run stands, if it is time."""
        line = f"run {run.id}: {run.calls.done} of {run.calls.total} calls done, {facts(run, on_wire)}"
        now = time.monotonic()
        if line != self._printed and (last or now - self._printed_at >= SECONDS_BETWEEN_LINES):
            self._printed, self._printed_at = line, now
            warn(line)


class Bar(Silence):
    """Draws a bar on standard error."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            SpinnerColumn(finished_text=" "),
            TextColumn("run {task.fields[run]}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[facts]}", markup=False),
            console=console(stderr=True),
        )
        self._task: Any = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, run: "Run", on_wire: int, *, last: bool = False) -> None:
        """Draw how the run stands."""
        shown: dict[str, Any] = {"run": run.id, "facts": facts(run, on_wire)}
        total = max(run.calls.total, 1)
        if self._task is None:
            self._task = self._progress.add_task("", total=total, completed=run.calls.done, **shown)
        else:
            self._progress.update(self._task, total=total, completed=run.calls.done, **shown)

    def tell(self, text: str) -> None:
        """Print above the bar."""
        self._progress.console.print(text)
