"""Metrics in the text format of Prometheus, from values that were read before: each text has a registry of its own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from muster.observability.call_totals import BOUNDS, CallTotals, SecondsHistogram

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """Values of one name that may rise and fall, by their labels."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    values: Mapping[Labels, float]


def exposition(gauges: Sequence[Gauge], totals: CallTotals | None) -> str:
    """Write metrics as Prometheus reads them; without totals, only the gauges."""
    registry = CollectorRegistry()
    registry.register(_Read([*map(_gauge, gauges), *(() if totals is None else _counted(totals))]))
    return generate_latest(registry).decode()


class _Read(Collector):
    """Metrics that have their values already."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Return them."""
        return self._metrics


def _gauge(gauge: Gauge) -> Metric:
    family = GaugeMetricFamily(gauge.name, gauge.help, labels=gauge.labels)
    for labels, value in sorted(gauge.values.items()):
        family.add_metric(labels, value)
    return family


def _counted(totals: CallTotals) -> Iterable[Metric]:
    attempts = CounterMetricFamily(
        "muster_attempts", "Attempts that ended in this process.", labels=("agent", "outcome")
    )
    for labels, number in sorted(totals.attempts.items()):
        attempts.add_metric(labels, number)
    tokens = CounterMetricFamily(
        "muster_tokens", "Tokens of replies that arrived in this process.", labels=("agent", "kind")
    )
    for labels, number in sorted(totals.tokens.items()):
        tokens.add_metric(labels, number)
    yield attempts
    yield tokens
    yield _histogram("muster_attempt_wait_seconds", "Wait of live attempts for a place and for money.", totals.waits)
    yield _histogram(
        "muster_attempt_seconds", "Live attempts, from their reservation to their outcome.", totals.durations
    )


def _histogram(name: str, text: str, found: Mapping[str, SecondsHistogram]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=("agent",))
    for agent, histogram in sorted(found.items()):
        buckets, below = [], 0
        for bound, number in zip((*BOUNDS, float("inf")), histogram.counts, strict=True):
            below += number
            buckets.append(("+Inf" if bound == float("inf") else str(bound), below))
        family.add_metric((agent,), buckets, histogram.sum)
    return family
