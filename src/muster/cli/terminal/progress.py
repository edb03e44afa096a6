"""How far something is: a bar on a terminal, now and then a line elsewhere, nothing when quiet."""

from collections.abc import Sequence
from dataclasses import dataclass

from muster.cli.terminal.batches import calls, standing, trouble_words
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


def line(state: ProgressState, now: float) -> str:
    """Return a state of progress as one line."""
    count = "" if state.total is None else f"{state.done:,} of {state.total:,} {state.unit} done, "
    activity = f"{state.activity}, " if state.activity else ""
    waits = f"; {state.waits}" if state.waits else ""
    return f"{state.title}: {count}{activity}{state.words}{waits}{age(state, now)}"


def age(state: ProgressState, now: float) -> str:
    """Return in brackets since when it goes on."""
    return "" if state.since is None else f" ({span(now - state.since)})"
