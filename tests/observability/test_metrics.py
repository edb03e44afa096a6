"""Metrics: what Prometheus reads is what the store holds, also after a restart, and what this process has done."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from muster.app import Muster, open_muster
from muster.domain.dispatch import Mode
from muster.domain.money import to_usd
from muster.domain.run import RunState
from muster.observability.call_totals import BOUNDS, SecondsHistogram
from tests.engine.batches.house import ANTHROPIC, open_house, questions, survey, wait_for
from tests.observability.house import watched_run

Labels = frozenset[tuple[str, str]]
Values = dict[str, dict[Labels, float]]
OF_THE_STORE = (
    "muster_runs", "muster_calls", "muster_spent_usd", "muster_reserved_usd", "muster_queued", "muster_batches",
    "muster_batches_stalled", "muster_slots",
)  # fmt: skip


def read(text: str) -> Values:
    """Read metrics as Prometheus does: by the names of samples, and their labels."""
    found: Values = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[labels(**sample.labels)] = sample.value
    return found


def labels(**given: str) -> Labels:
    return frozenset(given.items())


def of_the_store(values: Values) -> Values:
    return {name: found for name, found in values.items() if name in OF_THE_STORE}


async def recount(muster: Muster) -> Mapping[str, Mapping[Labels, float]]:
    """Count everything row by row, without the queries that metrics are made of."""
    store = muster._backend.store
    runs, calls, spent = Counter[Labels](), Counter[Labels](), Counter[str]()
    for run in await store.runs.select(limit=1000):
        runs[labels(workload=run.workload, state=str(run.state))] += 1
        for outcome in ("done", "failed", "uncertain", "reused"):
            calls[labels(workload=run.workload, outcome=outcome)] += getattr(run.calls, outcome)
        for attempt in await store.archive.attempts(run.id):
            spent[str(attempt.lane)] += attempt.cost
    batches = Counter(labels(state=str(batch.state)) for batch in await muster.batches.list())
    money = {labels(lane=lane): to_usd(spent[lane]) for lane in ("billed", "imputed", "uncertain")}
    return {"muster_runs": runs, "muster_calls": calls, "muster_spent_usd": money, "muster_batches": batches}


async def test_after_a_restart_metrics_of_the_store_are_the_same_and_equal_a_recount(tmp_path: Path) -> None:
    async with open_house(tmp_path / "house") as house:
        await watched_run(house)
        async with house.open(metrics=True) as muster:
            await muster.ask(ANTHROPIC, "hello")
            await muster.submit("ask", {"agent": ANTHROPIC, "prompt": "later"})
            before = read(await muster.metrics())
        async with house.open() as muster:
            after = read(await muster.metrics())
            counted = await recount(muster)
    assert of_the_store(after) == of_the_store(before)
    for name, values in counted.items():
        assert after[name] == dict(values), name
    assert after["muster_queued"] == {labels(queue="runs"): 1, labels(queue="tasks"): 0}
    assert after["muster_batches"] == {labels(state="collected"): 1}
    assert after["muster_spent_usd"][labels(lane="billed")] > 0


async def test_attempts_and_tokens_of_this_process_are_counted_by_agent(tmp_path: Path) -> None:
    async with open_house(tmp_path / "house") as house:
        house.play({"fault": "429", "nth": 1, "retry_after": 0.01})
        async with house.open(metrics=True) as muster:
            replies = [
                await muster.ask(ANTHROPIC, "hello"),
                await muster.ask(ANTHROPIC, "in a batch", dispatch=Mode.BATCH.value),
            ]
            found = read(await muster.metrics())
    assert found["muster_attempts_total"] == {
        labels(agent=ANTHROPIC, outcome="succeeded"): 2,
        labels(agent=ANTHROPIC, outcome="failed"): 1,
    }
    tokens = found["muster_tokens_total"]
    assert tokens[labels(agent=ANTHROPIC, kind="input")] == sum(reply.usage.input for reply in replies)
    assert tokens[labels(agent=ANTHROPIC, kind="output")] == sum(reply.usage.output for reply in replies)
    # Live attempts only: how long a batch takes says nothing about an agent.
    assert found["muster_attempt_seconds_count"] == {labels(agent=ANTHROPIC): 2}
    assert found["muster_attempt_wait_seconds_count"] == {labels(agent=ANTHROPIC): 2}


async def test_without_metrics_nothing_of_this_process_is_counted(tmp_path: Path) -> None:
    async with open_muster(tmp_path) as muster:
        await muster.ask("sim/echo", "hello")
        found = read(await muster.metrics())
    assert "muster_attempts_total" not in found
    assert found["muster_runs"] == {labels(workload="ask", state="completed"): 1}


async def test_the_limiter_shows_who_is_on_the_wire_and_who_waits(tmp_path: Path) -> None:
    async with open_house(tmp_path / "house", latency_ms=60_000.0) as house:
        house.declare("concurrency = 1\n")
        async with house.open() as muster:
            await muster.start("survey", survey(ANTHROPIC, questions(3)))
            await wait_for(lambda: house.audit.requests > 0 and sum(_waiting(muster)) == 2)
            found = read(await muster.metrics(sse_watchers=3))
    (in_flight,) = found["muster_limiter_in_flight"].values()
    (limit,) = found["muster_limiter_limit"].values()
    assert (in_flight, limit) == (1, 1)
    assert found["muster_calls_on_wire"] == {labels(): 1}
    assert found["muster_runs_driven"] == {labels(): 1}
    assert found["muster_runs"] == {labels(workload="survey", state=str(RunState.RUNNING)): 1}
    assert found["muster_sse_watchers"] == {labels(): 3}


def _waiting(muster: Muster) -> list[int]:
    return [status.waiting for status in muster._backend.engine.limits.values()]


def test_a_histogram_counts_each_duration_below_its_first_bound() -> None:
    histogram = SecondsHistogram()
    for seconds in (0.0, BOUNDS[0], BOUNDS[0] + 0.001, BOUNDS[-1] + 1):
        histogram.add(seconds)
    assert histogram.counts == [2, 1, *([0] * (len(BOUNDS) - 2)), 1]
