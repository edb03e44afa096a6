"""Metrics of an opened Muster: what the store holds, how this process stands, and what it has done."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from muster.app.base.backend import Backend
from muster.app.kinds import IN_SLOTS
from muster.app.runs.batches import Batches
from muster.domain.batch import UNDER_WAY, Batch, BatchState
from muster.domain.money import to_usd
from muster.domain.run import RunState
from muster.engine.engine import Engine
from muster.observability.exposition import Gauge, Labels, exposition
from muster.store.base import RunGroup, RunTotal, SlotGroup, SlotStanding, StoreTotals


async def metrics_text(backend: Backend, sse_watchers: int) -> str:
    """Return all metrics in the text format of Prometheus."""
    totals, stalled = await backend.store.totals.read(), await Batches(backend).stalled()
    gauges = [*_stored(totals, stalled), *_standing(backend.engine)]
    gauges.append(_one("muster_sse_watchers", WATCHERS, sse_watchers))
    telemetry = backend.telemetry
    return exposition(gauges, None if telemetry is None else telemetry.totals)


WATCHERS = "Clients that follow runs over HTTP at this process."


def _stored(totals: StoreTotals, stalled: Sequence[Batch]) -> Iterator[Gauge]:
    """Yield what the store holds: the same in every process, and after a restart."""
    runs: dict[Labels, float] = {
        (group.workload, str(group.state)): float(total.runs) for group, total in totals.runs.items()
    }
    yield Gauge(name="muster_runs", help="Stored runs.", labels=("workload", "state"), values=runs)
    yield Gauge(
        name="muster_calls",
        help="Calls of stored runs; uncertain ones are attempts whose outcome is unknown.",
        labels=("workload", "outcome"),
        values=_calls(totals.runs),
    )
    spent = totals.spent
    lanes: dict[Labels, float] = {(lane,): to_usd(getattr(spent, lane)) for lane in ("billed", "imputed", "uncertain")}
    yield Gauge(name="muster_spent_usd", help="Money spent by all calls ever.", labels=("lane",), values=lanes)
    yield _one("muster_reserved_usd", "Money reserved by attempts under way.", to_usd(spent.reserved))
    queues: dict[Labels, float] = {(name,): float(number) for name, number in _queues(totals.runs).items()}
    yield Gauge(
        name="muster_queued", help="Runs and tasks that no process has started yet.", labels=("queue",), values=queues
    )
    batches: dict[Labels, float] = {(str(state),): float(number) for state, number in totals.batches.items()}
    yield Gauge(name="muster_batches", help="Stored batches.", labels=("state",), values=batches)
    yield _stalled(stalled)
    slots: dict[Labels, float] = {(name,): float(number) for name, number in _slots(totals.slots).items()}
    yield Gauge(name="muster_slots", help="Slots of the pool.", labels=("state",), values=slots)


def _stalled(batches: Sequence[Batch]) -> Gauge:
    found = Counter(batch.state for batch in batches)
    values: dict[Labels, float] = {(str(state),): float(found[state]) for state in BatchState if state in UNDER_WAY}
    about = "Batches that do not get on; `muster batch list` says why."
    return Gauge(name="muster_batches_stalled", help=about, labels=("state",), values=values)


def _calls(runs: Mapping[RunGroup, RunTotal]) -> dict[Labels, float]:
    found: Counter[Labels] = Counter()
    for group, total in runs.items():
        for outcome in ("done", "failed", "uncertain", "reused"):
            found[group.workload, outcome] += getattr(total.calls, outcome)
    return {labels: float(number) for labels, number in found.items()}


def _queues(runs: Mapping[RunGroup, RunTotal]) -> Mapping[str, int]:
    found = {"runs": 0, "tasks": 0}
    for group, total in runs.items():
        if group.state is RunState.QUEUED:
            found["tasks" if group.workload in IN_SLOTS else "runs"] += total.runs
    return found


def _slots(slots: Mapping[SlotGroup, int]) -> Counter[str]:
    """Count slots by the states that `muster pool slots` shows."""
    found: Counter[str] = Counter()
    for group, number in slots.items():
        stands = group.standing in (SlotStanding.STOPPED, SlotStanding.ERRORED)
        found[str(group.standing) if stands else "busy" if group.busy else "idle"] += number
    return found


def _standing(engine: Engine) -> Iterator[Gauge]:
    """Yield how this process stands now."""
    yield _one("muster_runs_driven", "Runs that this process drives.", len(engine.driving))
    yield _one("muster_calls_on_wire", "Calls of this process that wait for their agents.", engine.on_wire)
    yield _one("muster_calls_parked", "Calls of this process that wait in batches.", engine.parked)
    limits = engine.limits
    about = {
        "in_flight": "Calls on the wire, by limiter.",
        "waiting": "Calls that wait for a place or a rate, by limiter.",
        "limit": "Places of a limiter; fewer after refusals.",
    }
    for name, text in about.items():
        values: dict[Labels, float] = {(limiter,): float(getattr(status, name)) for limiter, status in limits.items()}
        yield Gauge(name=f"muster_limiter_{name}", help=text, labels=("limiter",), values=values)


def _one(name: str, text: str, value: float) -> Gauge:
    return Gauge(name=name, help=text, values={(): float(value)})
