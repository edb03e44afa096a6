"""How far something is: a bar on a terminal, now and then a line elsewhere, nothing when quiet."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, TypeVar

from muster.cli.batches.words import calls, standing, trouble_words
from muster.cli.terminal.output import CommonOptions, warn
from muster.cli.terminal.times import span
from muster.domain.batch import Batch
from muster.domain.run import Run
from muster.text.words import count


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressState:
    """One look at something that takes its time."""

    title: str
    words: str
    done: int = 0
    total: int | None = None  # None: nobody counts
    unit: str = "calls"  # what is counted
    waits: str = ""  # for what
    since: float | None = None  # when that, or the whole, began
    activity: str = ""  # who is at work with what; on a terminal it has a line of its own
    below: tuple[str, ...] = ()  # more lines, for a terminal


def run_progress(run: Run, on_wire: int, batches: Sequence[Batch] = ()) -> ProgressState:
    """Look at a run, and at the batches that it waits for."""
    return ProgressState(
        title=f"run {run.id}",
        words=facts(run, on_wire),
        done=run.calls.done,
        total=run.calls.total,
        waits=waiting(batches) if batches else "",
        since=began(batches) if batches else None,
    )


def batch_progress(batch: Batch) -> ProgressState:
    """Look at one batch."""
    title, since, words = f"batch {batch.id}", began([batch]), standing(batch)
    if batch.done is None:
        words = f"{words}, {calls(batch.requests)}"
    words += trouble_words(batch)
    if batch.done is None:
        return ProgressState(title=title, words=words, since=since)
    return ProgressState(title=title, words=words, done=batch.done, total=batch.requests, since=since)


def facts(run: Run, on_wire: int, noun: str = "") -> str:
    """Put the numbers of a run in a few words; `noun` says of what, where something else is counted beside it."""
    counts = run.calls
    parts = [f"{_counted(counts.failed, noun)} failed"] if counts.failed else []
    parts += [f"{_counted(counts.reused, noun)} reused"] if counts.reused else []
    parts += [f"{on_wire} on the wire"] if on_wire else []
    return ", ".join([*parts, str(run.own_cost)])


def _counted(number: int, noun: str) -> str:
    return count(number, noun) if noun else f"{number}"


def waiting(batches: Sequence[Batch]) -> str:
    """Return what is waited for: by count where a provider counts, else by where it stands; and what is in the way."""
    requests = sum(batch.requests for batch in batches)
    counted = [batch.done for batch in batches if batch.done is not None]
    done = f"{sum(counted):,} of {requests:,} done" if counted else ""
    if len(batches) == 1:
        (batch,) = batches
        return f"waiting for batch {batch.id}: {standing(batch)}" + (f", {done}" if done else "") + trouble_words(batch)
    stalled = [batch for batch in batches if batch.stalled]
    trouble = f"; batch {stalled[0].id}: {standing(stalled[0])}{trouble_words(stalled[0])}" if stalled else ""
    return f"waiting for {len(batches)} batches: {done or calls(requests)}{trouble}"


def began(batches: Sequence[Batch]) -> float:
    """Return the moment since which the oldest of some batches is on its way."""
    return min(batch.submitted_at or batch.created_at for batch in batches)


T = TypeVar("T")

LOOK_SECONDS = 0.1
SECONDS_BETWEEN_LINES = 1.0
SECONDS_BETWEEN_SIGNS_OF_LIFE = 60.0


class Display(Protocol):
    """Shows one thing while it goes on; a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, state: ProgressState, *, last: bool = False) -> None:
        """Show how it stands."""

    def tell(self, text: str) -> None:
        """Print something in between."""


def display(common: CommonOptions, *, stays: bool = True) -> Display:
    """Choose the display for where we are; `stays` says whether a bar is left to be seen at the end."""
    if common.quiet:
        return SilentDisplay()
    if not sys.stderr.isatty():
        return LineDisplay()

    from muster.cli.terminal.bar import BarDisplay  # rich takes longer to load than a short command takes

    return BarDisplay(stays=stays)


async def shown(work: Awaitable[T], look: Callable[[], Awaitable[ProgressState]], display: Display) -> T:
    """Do some work and show how it stands until it is done."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.sleep(0)  # it begins before it is looked at
        while not working.done():
            display.show(await look())
            await asyncio.wait({working}, timeout=LOOK_SECONDS)
        return await working
    finally:
        working.cancel()


class SilentDisplay:
    """Shows nothing; what must be known is still told."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, state: ProgressState, *, last: bool = False) -> None:
        """Show nothing."""

    def tell(self, text: str) -> None:
        """Print something in between."""
        warn(text)


class MutedDisplay(SilentDisplay):
    """Says nothing at all."""

    def tell(self, text: str) -> None:
        """Print nothing."""


class LineDisplay(SilentDisplay):
    """Prints a line when something changed, at most one a second; and now and then a sign of life while it waits."""

    def __init__(self) -> None:
        self._printed: ProgressState | None = None
        self._printed_at = float("-inf")

    def show(self, state: ProgressState, *, last: bool = False) -> None:
        """Print how it stands, if it is time."""
        now = time.monotonic()
        begins_to_wait = bool(state.waits) and (self._printed is None or not self._printed.waits)
        due = last or begins_to_wait or now - self._printed_at >= SECONDS_BETWEEN_LINES
        alive = state.since is not None and now - self._printed_at >= SECONDS_BETWEEN_SIGNS_OF_LIFE
        begun = last or bool(state.done or state.total or state.waits)
        if (state != self._printed and due and begun) or alive:
            self._printed, self._printed_at = state, now
            warn(line(state, time.time()))


def line(state: ProgressState, now: float) -> str:
    """Return a state of progress as one line."""
    count = "" if state.total is None else f"{state.done:,} of {state.total:,} {state.unit} done, "
    activity = f"{state.activity}, " if state.activity else ""
    waits = f"; {state.waits}" if state.waits else ""
    return f"{state.title}: {count}{activity}{state.words}{waits}{age(state, now)}"


def age(state: ProgressState, now: float) -> str:
    """Return in brackets since when it goes on."""
    return "" if state.since is None else f" ({span(now - state.since)})"
