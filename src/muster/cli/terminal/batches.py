"""A batch in a few words for people."""

from collections.abc import Mapping, Sequence

from muster.domain.batch import Batch, BatchState, Tally, ways_out
from muster.domain.money import usd_format

COLOURS: Mapping[BatchState, str] = {
    BatchState.PLANNED: "cyan",
    BatchState.SENT: "yellow",
    BatchState.RUNNING: "blue",
    BatchState.ENDED: "blue",
    BatchState.COLLECTED: "green",
    BatchState.REFUSED: "red",
    BatchState.ABANDONED: "magenta",
}

_STANDING: Mapping[BatchState, str] = {
    BatchState.PLANNED: "not submitted yet",
    BatchState.SENT: "submitted, not confirmed yet",
    BatchState.RUNNING: "running",
    BatchState.ENDED: "ended, results are being read",
    BatchState.ABANDONED: "given up",
}


def standing(batch: Batch) -> str:
    """Return where a batch stands; while it runs, in the provider's own word."""
    if batch.cancel_requested and batch.state is BatchState.RUNNING:
        return "being canceled"
    if batch.state is BatchState.RUNNING and batch.word:
        return batch.word
    if batch.cancel_requested and batch.state is BatchState.REFUSED:
        return "canceled"
    return _STANDING.get(batch.state, str(batch.state))


def trouble_words(batch: Batch) -> str:
    """Return why a batch does not get on and what to do, behind where it stands; nothing while it does."""
    return "" if batch.gets_on else f"; {batch.note}; {ways_out(batch)[0]}"


def trouble_lines(batches: Sequence[Batch]) -> list[str]:
    """Return which batches do not get on, why, and what to do about each."""
    return [
        line
        for batch in batches
        if not batch.gets_on
        for line in (f"{batch_name(batch)}, {standing(batch)}: {batch.note}", *(f"  {way}" for way in ways_out(batch)))
    ]


def tally_words(tally: Tally) -> str:
    """Return how members ended; what none did is left out."""
    names = ("succeeded", "errored", "canceled", "expired", "uncertain")
    parts = [f"{getattr(tally, name):,} {name}" for name in names if getattr(tally, name)]
    return ", ".join(parts) or "none has ended"


def money_words(cost: int, live_cost: int, way: str = "batch") -> str:
    """Return what batches, or another way to ask, cost and what live calls would have cost."""
    usd = usd_format(cost, live_cost)
    return f"{way} {usd(cost)}, live would have been {usd(live_cost)}"


def batch_name(batch: Batch) -> str:
    """Name a batch by our id and the provider's."""
    return f"batch {batch.id} ({batch.provider_id})" if batch.provider_id else f"batch {batch.id}"


def batch_summary(batch: Batch) -> str:
    """Return on one line what became of a batch."""
    if batch.state in (BatchState.REFUSED, BatchState.ABANDONED):
        return f"{batch_name(batch)} is {standing(batch)}: {batch.note}"
    if batch.state is not BatchState.COLLECTED:
        return f"{batch_name(batch)} is {standing(batch)}: {calls(batch.requests)}{trouble_words(batch)}"
    money = f"; {money_words(batch.cost, batch.live_cost)}" if batch.live_cost or batch.cost else ""
    return f"{batch_name(batch)} is collected: {tally_words(batch.tally)}{money}"


def some_batches(number: int) -> str:
    """Count batches in words."""
    return "1 batch" if number == 1 else f"{number:,} batches"


def calls(number: int) -> str:
    """Count calls in words."""
    return "1 call" if number == 1 else f"{number:,} calls"
