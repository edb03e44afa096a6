"""Figures over past batches."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.batch import Batch, BatchEndpoint, BatchState, Tally
from muster.domain.ids import BatchId
from muster.domain.money import NOTHING, Microdollars
from muster.statistics.batches import batch_stats, percentile

DONE = Batch(
    id=BatchId("b1"),
    endpoint=BatchEndpoint(kind="openai", base_url="http://127.0.0.1:1", account="a", variable="K"),
    state=BatchState.COLLECTED,
    requests=10,
    bytes=1,
    tariffs={},
    created_at=0.0,
    submitted_at=100.0,
    ended_at=160.0,
    collected_at=161.0,
    nonce="n",
    tally=Tally(succeeded=6, errored=1, expired=2, uncertain=1),
    cost=Microdollars(300),
    live_cost=Microdollars(600),
    input_tokens=70,
    output_tokens=30,
)


def test_batches_are_summed_up() -> None:
    slow = replace(DONE, ended_at=400.0, tally=Tally(succeeded=10))
    running = replace(DONE, state=BatchState.RUNNING, ended_at=None, collected_at=None, tally=Tally(), cost=NOTHING)
    stats = batch_stats([DONE, slow, running])
    assert (stats.batches, stats.under_way, stats.requests, stats.ended) == (3, 1, 30, 20)
    assert (stats.success_rate, stats.error_rate, stats.expiry_rate) == (0.8, 0.1, 0.1)
    assert (stats.cost, stats.live_cost, stats.saving) == (600, 1200, 600)
    assert stats.completion is not None
    assert (stats.completion.count, stats.completion.mean, stats.completion.p50) == (2, 180.0, 60.0)
    assert (stats.completion.p95, stats.completion.p99) == (300.0, 300.0)


def test_nothing_is_no_success() -> None:
    stats = batch_stats([])
    assert (stats.success_rate, stats.error_rate, stats.expiry_rate, stats.completion) == (None, None, None, None)


def test_a_refused_batch_is_counted_as_such() -> None:
    refused = replace(DONE, state=BatchState.REFUSED, submitted_at=None, ended_at=None, tally=Tally(errored=10))
    stats = batch_stats([refused])
    assert (stats.refused, stats.error_rate, stats.completion) == (1, 1.0, None)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200), st.integers(1, 100))
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(values: list[float], percent: int) -> None:
    ordered = sorted(values)
    found = percentile(ordered, percent)
    assert found in ordered
    assert sum(value <= found for value in ordered) * 100 >= percent * len(ordered)


@pytest.mark.parametrize(("percent", "expected"), [(50, 2.0), (75, 3.0), (76, 4.0), (100, 4.0), (1, 1.0)])
def test_percentiles_by_hand(percent: int, expected: float) -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], percent) == expected
