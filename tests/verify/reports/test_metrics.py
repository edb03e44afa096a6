"""Figures over past verifications."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from muster.domain.run import RunState
from muster.store.base import Store
from muster.store.sqlite.store import open_sqlite
from muster.testing.stores import new_run
from muster.text.views import plain
from muster.verify.findings.finding import Severity
from muster.verify.findings.journal import Ending
from muster.verify.reports.metrics import PAGE, VerifyMetrics, verify_metrics, verify_metrics_view
from tests.verify.reports.house import START, Story, agent, bad, fill, finding, good, model, wave


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    found = open_sqlite(tmp_path / "muster.db")
    yield found
    await found.maintenance.close()


async def test_nothing_has_no_rates(store: Store) -> None:
    metrics = await verify_metrics(store, 0.0)
    assert metrics == VerifyMetrics(since=0.0)
    assert (metrics.pass_rate, metrics.error_rate, metrics.expired_share, metrics.cost_per_cycle) == (None,) * 4
    assert metrics.completion is None


async def test_cycles_are_counted_by_how_they_ended(store: Store) -> None:
    stories = [
        good(seconds=10.0),
        good(seconds=20.0),
        bad(seconds=30.0),
        good(state=RunState.INTERRUPTED),
        good(state=RunState.FAILED, read=False),
        good(state=RunState.RUNNING),
    ]
    for number, story in enumerate(stories):
        await fill(store, replace(story, run=f"run{number}", name=None))
    metrics = await verify_metrics(store, START)
    assert (metrics.cycles, metrics.passed, metrics.failed) == (6, 2, 1)
    assert (metrics.stopped, metrics.under_way, metrics.over) == (2, 1, 5)
    assert metrics.pass_rate == 0.4
    assert metrics.completion is not None
    assert (metrics.completion.count, metrics.completion.mean, metrics.completion.p50) == (3, 20.0, 20.0)
    assert (metrics.completion.p95, metrics.completion.p99) == (30.0, 30.0)


async def test_only_verifications_of_the_window_count(store: Store) -> None:
    await fill(store, good(run="old", at=START - 1, name=None))
    await fill(store, good(run="new", name=None))
    await store.runs.create(new_run("other"))
    assert (await verify_metrics(store, START)).cycles == 1
    assert (await verify_metrics(store, START - 1)).cycles == 2
    assert (await verify_metrics(store, START + 1)).cycles == 0


async def test_a_verification_is_found_behind_many_newer_runs(store: Store) -> None:
    await fill(store, good())
    for number in range(PAGE + 5):
        await store.runs.create(replace(new_run(f"r{number}"), created_at=START + 100))
    assert (await verify_metrics(store, START - 10)).passed == 1


async def test_broken_reports_are_errors_and_expired_calls_are_told_apart(store: Store) -> None:
    agents = [
        agent("a"),
        agent("b", 1, Ending.BROKEN, codes={"expired": 2, "unparsed": 1}),
        agent("c", 1, Ending.IDLE),
        agent("d", 1, Ending.BROKEN, codes={"expired": 1}),
    ]
    story = Story(
        verifiers=[model(name) for name in "abcd"], waves=[wave(1, *agents)], batch=[(5, 10), None, None, None]
    )
    await fill(store, story)
    metrics = await verify_metrics(store, 0.0)
    assert (metrics.reports, metrics.error_rate) == (3, 2 / 3)
    assert (metrics.expired, metrics.expired_share, metrics.codes["unparsed"]) == (3, 0.75, 1)
    assert (metrics.batches.batches, metrics.batches.ended, metrics.batches.expiry_rate) == (1, 4, 0.75)


async def test_money_is_summed_with_the_live_price_beside(store: Store) -> None:
    await fill(store, good(run="one", name=None, paid=[1_000], batch=[(500, 1_000)]))
    await fill(store, good(run="two", name=None, paid=[300]))
    await fill(store, good(run="three", name=None, paid=[200], read=False, state=RunState.CANCELED))
    metrics = await verify_metrics(store, 0.0)
    assert (metrics.billed, metrics.cost, metrics.live, metrics.uncertain) == (2_000, 2_000, 2_500, 0)
    assert (metrics.cost_per_cycle, metrics.live_per_cycle) == (2_000 / 3, 2_500 / 3)


async def test_agents_have_their_findings_by_severity_and_their_pass_rate(store: Store) -> None:
    low = [finding(severity=Severity.LOW)]
    for number, ending in enumerate((Ending.PASSED, Ending.FAILED, Ending.FAILED, Ending.BROKEN, Ending.IDLE)):
        reports = wave(1, agent("a", 1, ending, low), agent("b"))
        await fill(store, Story(verifiers=[model("a"), model("b")], waves=[reports], run=f"run{number}", name=None))
    await fill(store, bad(run="bad", name=None))
    by_name = {one.agent: one for one in (await verify_metrics(store, 0.0)).agents}
    assert list(by_name) == ["a", "auditor", "b", "enforcer"]
    assert (by_name["a"].reports, by_name["a"].pass_rate, by_name["a"].counts.low) == (4, 0.25, 5)
    assert (by_name["b"].pass_rate, by_name["b"].cost) == (1.0, 7_500)
    assert (by_name["auditor"].counts.critical, by_name["auditor"].counts.rejected) == (1, 1)


async def test_the_figures_are_one_object_of_json(store: Store) -> None:
    await fill(store, bad(paid=[1_000]))
    found = plain(verify_metrics_view(await verify_metrics(store, START)))
    assert (found["since"], found["cycles"], found["failed"]) == ("2027-01-15T08:00:00.000+00:00", 1, 1)
    assert found["seconds"]["p99"] == 14.25
    assert found["cost"]["per_cycle_usd"] == 0.001
    assert found["agents"][0]["endings"] == {"passed": 0, "failed": 1, "broken": 0, "idle": 0}
    assert found["agents"][0]["findings"]["critical"] == 1
    assert found["batches"]["expiry_rate"] is None
