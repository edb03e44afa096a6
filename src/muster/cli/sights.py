"""What there is to see of runs and batches while they go on. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from muster.cli.batch_portrait import calls, standing
from muster.domain.batch import Batch
from muster.domain.money import show_usd
from muster.domain.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One look at something that takes its time."""

    title: str
    words: str
    done: int = 0
    total: int | None = None  # None: nobody counts
    unit: str = "calls"  # what is counted
    waits: str = ""  # for what
    since: float | None = None  # when that, or the whole, began


def run_sight(run: Run, on_wire: int, batches: Sequence[Batch] = ()) -> Sight:
    """Look at a run, and at the batches that it waits for."""
    return Sight(
        title=f"run {run.id}",
        words=facts(run, on_wire),
        done=run.calls.done,
        total=run.calls.total,
        waits=waiting(batches) if batches else "",
        since=began(batches) if batches else None,
    )


def batch_sight(batch: Batch) -> Sight:
    """Look at one batch."""
    title, since = f"batch {batch.id}", began([batch])
    if batch.done is None:
        return Sight(title=title, words=f"{standing(batch)}, {calls(batch.requests)}", since=since)
    return Sight(title=title, words=standing(batch), done=batch.done, total=batch.requests, since=since)


def facts(run: Run, on_wire: int, noun: str = "") -> str:
    """Put the numbers of a run in a few words; `noun` says of what, where something else is counted beside it."""
    counts, spent = run.calls, run.spent
    parts = [f"{counts.failed} {noun}failed"] if counts.failed else []
    parts += [f"{counts.reused} {noun}reused"] if counts.reused else []
    parts += [f"{on_wire} on the wire"] if on_wire else []
    parts += [show_usd(spent.billed + spent.imputed)]
    parts += [f"{show_usd(spent.uncertain)} uncertain"] if spent.uncertain else []
    return ", ".join(parts)


def waiting(batches: Sequence[Batch]) -> str:
    """Say what is waited for: by count where a provider counts, else by where it stands."""
    requests = sum(batch.requests for batch in batches)
    counted = [batch.done for batch in batches if batch.done is not None]
    done = f"{sum(counted):,} of {requests:,} done" if counted else ""
    if len(batches) == 1:
        return f"waiting for batch {batches[0].id}: {standing(batches[0])}" + (f", {done}" if done else "")
    return f"waiting for {len(batches)} batches: {done or calls(requests)}"


def began(batches: Sequence[Batch]) -> float:
    """Give the moment since which the oldest of some batches is on its way."""
    return min(batch.submitted_at or batch.created_at for batch in batches)
