"""A batch as it is shown: as JSON for programs, in a few words for people."""

from collections.abc import Mapping
from typing import Any

from muster.cli.portrait import moment
from muster.domain.batch import OVER, Batch, BatchState, Tally
from muster.domain.ids import RunId
from muster.domain.money import show_usd, to_usd

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
    BatchState.PLANNED: "not handed in yet",
    BatchState.SENT: "handed in, not confirmed yet",
    BatchState.RUNNING: "running",
    BatchState.ENDED: "ended, results are being read",
    BatchState.ABANDONED: "given up",
}


def batch_json(batch: Batch, runs: Mapping[RunId, int] | None = None) -> dict[str, Any]:
    """Give a batch as JSON; with `runs`, how many calls of which runs it holds."""
    found = batch_reference(batch) | {
        "provider": batch.desk.kind,
        "base_url": batch.desk.base_url,
        "provider_state": batch.word or None,
        "provider_done": batch.done,
        "bytes": batch.bytes,
        "agents": {agent: tariff.model for agent, tariff in batch.tariffs.items()},
        "members": members_json(batch),
        "reserved_usd": 0.0 if batch.state in OVER else to_usd(batch.reserved),
        "cost_usd": to_usd(batch.cost),
        "live_usd": to_usd(batch.live_cost),
        "saving_usd": to_usd(batch.live_cost - batch.cost),
        "tokens": {"input": batch.input_tokens, "output": batch.output_tokens},
        "created_at": moment(batch.created_at),
        "submitted_at": moment(batch.submitted_at),
        "polled_at": moment(batch.polled_at),
        "ended_at": moment(batch.ended_at),
        "collected_at": moment(batch.collected_at),
        "cancel_requested": batch.cancel_requested,
        "input_file": batch.file,
        "note": batch.note,
        "error": batch.error,
    }
    return found if runs is None else found | {"runs": [{"run": run, "calls": calls} for run, calls in runs.items()]}


def batch_reference(batch: Batch) -> dict[str, Any]:
    """Give as much of a batch as tells it from others."""
    return {
        "id": batch.id,
        "provider_id": batch.provider_id,
        "state": str(batch.state),
        "requests": batch.requests,
    }


def members_json(batch: Batch) -> dict[str, int]:
    """Count the members of a batch by how they ended."""
    tally = batch.tally
    return {
        "succeeded": tally.succeeded,
        "errored": tally.errored,
        "canceled": tally.canceled,
        "expired": tally.expired,
        "uncertain": tally.uncertain,
        "waiting": batch.requests - tally.over,
    }


def standing(batch: Batch) -> str:
    """Say where a batch stands; while it runs, in the provider's own word."""
    if batch.cancel_requested and batch.state is BatchState.RUNNING:
        return "being canceled"
    if batch.state is BatchState.RUNNING and batch.word:
        return batch.word
    if batch.cancel_requested and batch.state is BatchState.REFUSED:
        return "canceled"
    return _STANDING.get(batch.state, str(batch.state))


def tally_words(tally: Tally) -> str:
    """Say how members ended; what none did is left out."""
    names = ("succeeded", "errored", "canceled", "expired", "uncertain")
    parts = [f"{getattr(tally, name):,} {name}" for name in names if getattr(tally, name)]
    return ", ".join(parts) or "none has ended"


def money_words(cost: int, live_cost: int) -> str:
    """Say what batches cost and what live calls would have cost."""
    return f"batch {show_usd(cost)}, live would have been {show_usd(live_cost)}"


def batch_name(batch: Batch) -> str:
    """Name a batch by our id and the provider's."""
    return f"batch {batch.id} ({batch.provider_id})" if batch.provider_id else f"batch {batch.id}"


def batch_summary(batch: Batch) -> str:
    """Say on one line what became of a batch."""
    if batch.state in (BatchState.REFUSED, BatchState.ABANDONED):
        return f"{batch_name(batch)} is {standing(batch)}: {batch.note}"
    if batch.state is not BatchState.COLLECTED:
        return f"{batch_name(batch)} is {standing(batch)}: {calls(batch.requests)}"
    money = f"; {money_words(batch.cost, batch.live_cost)}" if batch.live_cost or batch.cost else ""
    return f"{batch_name(batch)} is collected: {tally_words(batch.tally)}{money}"


def some_batches(number: int) -> str:
    """Count batches in words."""
    return "1 batch" if number == 1 else f"{number:,} batches"


def calls(number: int) -> str:
    """Count calls in words."""
    return "1 call" if number == 1 else f"{number:,} calls"
