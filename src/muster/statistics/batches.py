"""What past batches took, brought and cost, over a window of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from muster.domain.batch import Batch, BatchState
from muster.domain.money import NOTHING, Microdollars


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """Seconds that some things took from their beginning to their end."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStats:
    """Figures over some batches; rates are shares of the members that have ended, None when none has."""

    batches: int = 0
    under_way: int = 0
    refused: int = 0
    requests: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0
    uncertain: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Microdollars = NOTHING
    live_cost: Microdollars = NOTHING
    completion: Durations | None = None

    @property
    def ended(self) -> int:
        """How many members have ended."""
        return self.succeeded + self.errored + self.canceled + self.expired + self.uncertain

    @property
    def success_rate(self) -> float | None:
        """The share that brought a reply."""
        return share(self.succeeded, self.ended)

    @property
    def error_rate(self) -> float | None:
        """The share that failed, known or unknown how."""
        return share(self.errored + self.uncertain, self.ended)

    @property
    def expiry_rate(self) -> float | None:
        """The share that ran out of time."""
        return share(self.expired, self.ended)

    @property
    def saving(self) -> Microdollars:
        """What live calls would have cost more."""
        return Microdollars(self.live_cost - self.cost)


def batch_stats(batches: Sequence[Batch]) -> BatchStats:
    """Sum up batches."""
    tallies = [batch.tally for batch in batches]
    answered = [batch for batch in batches if batch.tally.succeeded]
    return BatchStats(
        batches=len(batches),
        under_way=sum(batch.collected_at is None for batch in batches),
        refused=sum(batch.state in (BatchState.REFUSED, BatchState.ABANDONED) for batch in batches),
        requests=sum(batch.requests for batch in batches),
        succeeded=sum(tally.succeeded for tally in tallies),
        errored=sum(tally.errored for tally in tallies),
        canceled=sum(tally.canceled for tally in tallies),
        expired=sum(tally.expired for tally in tallies),
        uncertain=sum(tally.uncertain for tally in tallies),
        input_tokens=sum(batch.input_tokens for batch in batches),
        output_tokens=sum(batch.output_tokens for batch in batches),
        cost=Microdollars(sum(batch.cost for batch in answered)),
        live_cost=Microdollars(sum(batch.live_cost for batch in answered)),
        completion=durations([seconds for batch in batches if (seconds := _seconds(batch)) is not None]),
    )


def _seconds(batch: Batch) -> float | None:
    if batch.submitted_at is None or batch.ended_at is None:
        return None
    return max(0.0, batch.ended_at - batch.submitted_at)


def durations(seconds: Sequence[float]) -> Durations | None:
    """Sum up lengths of time; None when there is none."""
    if not seconds:
        return None
    ordered = sorted(seconds)
    return Durations(
        count=len(ordered),
        mean=fmean(ordered),
        p50=percentile(ordered, 50),
        p95=percentile(ordered, 95),
        p99=percentile(ordered, 99),
    )


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the smallest value that at least so many percent of the values do not exceed."""
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(rank, 1) - 1]


def share(part: int, whole: int) -> float | None:
    """Return a part of a whole; None when there is no whole."""
    return part / whole if whole else None
