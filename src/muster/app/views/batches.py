"""Batches as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.app.batches import Reconciled
from muster.app.views.times import moment
from muster.domain.batch import OVER, Batch
from muster.domain.ids import RunId
from muster.domain.money import to_usd
from muster.reports.batch_stats import BatchStats, Durations


def batch_view(batch: Batch, runs: Mapping[RunId, int] | None = None) -> dict[str, Any]:
    """Return a batch as JSON; with `runs`, how many calls of which runs it holds."""
    found = batch_reference(batch) | {
        "provider": batch.desk.kind,
        "base_url": batch.desk.base_url,
        "provider_state": batch.word or None,
        "provider_done": batch.done,
        "bytes": batch.bytes,
        "agents": {agent: tariff.model for agent, tariff in batch.tariffs.items()},
        "members": _members_view(batch),
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
    """Return as much of a batch as tells it from others."""
    return {
        "id": batch.id,
        "provider_id": batch.provider_id,
        "state": str(batch.state),
        "requests": batch.requests,
    }


def _members_view(batch: Batch) -> dict[str, int]:
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


def reconciled_view(one: Reconciled, runs: Sequence[RunId]) -> dict[str, Any]:
    """Return a batch that was looked for as JSON, with the runs that can go on now."""
    why = one.batch.note if one.error is None else one.error.message
    return batch_reference(one.batch) | {"open": one.error is not None, "why": why, "runs": list(runs)}


def batch_stats_view(found: BatchStats, begin: float) -> dict[str, Any]:
    """Return the figures as JSON; what nobody can say yet is null."""
    return {
        "since": moment(begin),
        "batches": found.batches,
        "under_way": found.under_way,
        "refused": found.refused,
        "requests": found.requests,
        "succeeded": found.succeeded,
        "errored": found.errored,
        "canceled": found.canceled,
        "expired": found.expired,
        "uncertain": found.uncertain,
        "success_rate": found.success_rate,
        "error_rate": found.error_rate,
        "expiry_rate": found.expiry_rate,
        "completion_seconds": _seconds(found.completion),
        "tokens": {"input": found.input_tokens, "output": found.output_tokens},
        "cost_usd": to_usd(found.cost),
        "live_usd": to_usd(found.live_cost),
        "saving_usd": to_usd(found.saving),
    }


def _seconds(durations: Durations | None) -> dict[str, float] | None:
    if durations is None:
        return None
    return {name: round(getattr(durations, name), 3) for name in ("count", "mean", "p50", "p95", "p99")}
