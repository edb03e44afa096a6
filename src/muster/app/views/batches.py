"""Batches: what they hold, how they stand, what they saved, and figures over them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from muster.domain.batch import OVER, Batch, BatchState, ways_out
from muster.domain.canonical import Json
from muster.domain.ids import RunId
from muster.domain.money import to_usd
from muster.text.views import UNSET, UnsetType, View, asdict, instant, moment

if TYPE_CHECKING:
    from muster.app.runs.batches import BatchStats, Durations, Reconciled


class BatchReferenceView(View):
    """As much of a batch as tells it from others, and why it does not get on if it does not."""

    id: str
    provider_id: str | None
    state: BatchState
    requests: int
    stalled: bool
    waits_for: str | None
    why: str | None
    next: Sequence[str]


class MembersView(View):
    """The members of a batch by how they ended."""

    succeeded: int
    errored: int
    canceled: int
    expired: int
    uncertain: int
    waiting: int


class TokensView(View):
    """How many tokens were read and written."""

    input: int
    output: int


class BatchRunView(View):
    """How many calls of a run a batch holds."""

    run: str
    calls: int


class BatchView(BatchReferenceView):
    """A batch; where it is asked for by itself, with how many calls of which runs it holds."""

    provider: str
    base_url: str
    provider_state: str | None
    provider_done: int | None
    bytes: int
    agents: Mapping[str, str]
    members: MembersView
    reserved_usd: float
    cost_usd: float
    live_usd: float
    saving_usd: float
    tokens: TokensView
    created_at: str
    submitted_at: str | None
    polled_at: str | None
    ended_at: str | None
    collected_at: str | None
    cancel_requested: bool
    input_file: str | None
    note: str
    error: Mapping[str, Json] | None
    runs: Sequence[BatchRunView] | UnsetType = UNSET


class BatchPageView(View):
    """A page of batches, the newest first."""

    batches: Sequence[BatchView]
    next: str | None


class FetchedBatchView(BatchView, kw_only=True):
    """A batch whose results were fetched, with the runs that can go on now."""

    resumable: Sequence[str]


class ReconciledBatchView(BatchReferenceView):
    """A batch that was looked for, with the runs that can go on now."""

    open: bool
    runs: Sequence[str]


class ReconciliationView(View):
    """All batches that were looked for."""

    batches: Sequence[ReconciledBatchView]
    open: int
    resumable: Sequence[str]


class DurationsView(View):
    """How long something took, in seconds."""

    count: float
    mean: float
    p50: float
    p95: float
    p99: float


class BatchStatsView(View):
    """Figures over batches; what is not known yet is null."""

    since: str
    batches: int
    under_way: int
    refused: int
    requests: int
    succeeded: int
    errored: int
    canceled: int
    expired: int
    uncertain: int
    success_rate: float | None
    error_rate: float | None
    expiry_rate: float | None
    completion_seconds: DurationsView | None
    tokens: TokensView
    cost_usd: float
    live_usd: float
    saving_usd: float


def batch_reference(batch: Batch) -> BatchReferenceView:
    """Return as much of a batch as tells it from others."""
    return BatchReferenceView(
        id=batch.id,
        provider_id=batch.provider_id,
        state=batch.state,
        requests=batch.requests,
        stalled=batch.stalled,
        waits_for=batch.waits_for,
        why=None if batch.gets_on else batch.note,
        next=ways_out(batch),
    )


def batch_view(batch: Batch, runs: Mapping[RunId, int] | None = None) -> BatchView:
    """Return a batch; with `runs`, how many calls of which runs it holds."""
    return BatchView(
        **asdict(batch_reference(batch)),
        provider=batch.endpoint.kind,
        base_url=batch.endpoint.base_url,
        provider_state=batch.word or None,
        provider_done=batch.done,
        bytes=batch.bytes,
        agents={agent: tariff.model for agent, tariff in batch.tariffs.items()},
        members=_members_view(batch),
        reserved_usd=0.0 if batch.state in OVER else to_usd(batch.reserved),
        cost_usd=to_usd(batch.cost),
        live_usd=to_usd(batch.live_cost),
        saving_usd=to_usd(batch.live_cost - batch.cost),
        tokens=TokensView(input=batch.input_tokens, output=batch.output_tokens),
        created_at=instant(batch.created_at),
        submitted_at=moment(batch.submitted_at),
        polled_at=moment(batch.polled_at),
        ended_at=moment(batch.ended_at),
        collected_at=moment(batch.collected_at),
        cancel_requested=batch.cancel_requested,
        input_file=batch.file,
        note=batch.note,
        error=batch.error,
        runs=UNSET if runs is None else [BatchRunView(run=run, calls=calls) for run, calls in runs.items()],
    )


def batch_page_view(batches: Sequence[Batch], limit: int) -> BatchPageView:
    """Return a page of at most so many batches."""
    after = batches[-1].id if len(batches) == limit else None
    return BatchPageView(batches=[batch_view(batch) for batch in batches], next=after)


def fetched_view(batch: Batch, runs: Sequence[RunId]) -> FetchedBatchView:
    """Return a batch whose results were fetched, with the runs that can go on now."""
    return FetchedBatchView(**asdict(batch_view(batch)), resumable=runs)


def _members_view(batch: Batch) -> MembersView:
    """Count the members of a batch by how they ended."""
    tally = batch.tally
    return MembersView(
        succeeded=tally.succeeded,
        errored=tally.errored,
        canceled=tally.canceled,
        expired=tally.expired,
        uncertain=tally.uncertain,
        waiting=batch.requests - tally.over,
    )


def reconciled_view(looked: "Reconciled", runs: Sequence[RunId]) -> ReconciledBatchView:
    """Return a batch that was looked for, with the runs that can go on now."""
    batch, error = looked.batch, looked.error
    reference = asdict(batch_reference(batch)) | {"why": batch.note if error is None else error.message}
    return ReconciledBatchView(**reference, open=error is not None, runs=runs)


def reconciliation_view(outcomes: "Sequence[tuple[Reconciled, Sequence[RunId]]]") -> ReconciliationView:
    """Return all batches that were looked for."""
    return ReconciliationView(
        batches=[reconciled_view(looked, runs) for looked, runs in outcomes],
        open=sum(looked.error is not None for looked, _ in outcomes),
        resumable=resumable(outcomes),
    )


def resumable(outcomes: "Sequence[tuple[Reconciled, Sequence[RunId]]]") -> list[RunId]:
    """Return the runs that can go on now, each once."""
    return list(dict.fromkeys(run for looked, runs in outcomes if looked.error is None for run in runs))


def batch_stats_view(stats: "BatchStats", begin: float) -> BatchStatsView:
    """Return figures over the batches since a time."""
    return BatchStatsView(
        since=instant(begin),
        batches=stats.batches,
        under_way=stats.under_way,
        refused=stats.refused,
        requests=stats.requests,
        succeeded=stats.succeeded,
        errored=stats.errored,
        canceled=stats.canceled,
        expired=stats.expired,
        uncertain=stats.uncertain,
        success_rate=stats.success_rate,
        error_rate=stats.error_rate,
        expiry_rate=stats.expiry_rate,
        completion_seconds=_durations_view(stats.completion),
        tokens=TokensView(input=stats.input_tokens, output=stats.output_tokens),
        cost_usd=to_usd(stats.cost),
        live_usd=to_usd(stats.live_cost),
        saving_usd=to_usd(stats.saving),
    )


def _durations_view(durations: "Durations | None") -> DurationsView | None:
    if durations is None:
        return None
    return DurationsView(
        count=round(durations.count, 3),
        mean=round(durations.mean, 3),
        p50=round(durations.p50, 3),
        p95=round(durations.p95, 3),
        p99=round(durations.p99, 3),
    )
