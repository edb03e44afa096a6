"""Results added up, and subjects put in order."""

import tracemalloc
from random import Random
from typing import Any

import msgspec
import pytest

from muster.domain.case import Status
from muster.domain.errors import BadArgument
from muster.domain.money import Microdollars
from muster.statistics.intervals import Interval, wilson
from muster.suites.statistics import Rank, SubjectStats, SubjectTally, rank
from muster.suites.values.verdict import (
    CaseResult,
    CheckResult,
    ItemScore,
    Judgement,
)
from tests.suites.checks.values import result

PASSED, FAILED = Status.PASSED, Status.FAILED


def tallied(*results: CaseResult) -> SubjectStats:
    tally = SubjectTally()
    for one in results:
        tally.add(one)
    return tally.stats(resamples=200)


MIXED = (
    result("good", epoch=1, seconds=1.0, cost=Microdollars(10), input_tokens=3),
    result("good", epoch=2, seconds=2.0, cost=Microdollars(10), output_tokens=4),
    result("flaky", epoch=1, seconds=3.0, judge_cost=Microdollars(6)),
    result("flaky", FAILED, 0.0, epoch=2, seconds=4.0),
    result("bad", FAILED, 0.2, epoch=1, seconds=5.0),
    result("bad", FAILED, 0.4, epoch=2, seconds=6.0),
    result("broken", Status.ERROR, None, epoch=1, seconds=7.0),
    result("broken", Status.TIMED_OUT, None, epoch=2, seconds=8.0),
    result("open", Status.UNJUDGED, None, epoch=1, seconds=9.0, items=(ItemScore(id="style"),)),
    result("open", Status.UNJUDGED, None, epoch=2, seconds=10.0, items=(ItemScore(id="style"),)),
    result("later", Status.SKIPPED, None, epoch=1),
    result("later", Status.SKIPPED, None, epoch=2),
)


def test_cases_are_counted_by_what_their_epochs_come_to() -> None:
    found = tallied(*MIXED)
    assert (found.subject, found.cases, found.run, found.results, found.epochs) == ("sim/echo", 6, 5, 10, 2)
    assert found.statuses == {
        PASSED: 1, Status.FLAKY: 1, FAILED: 1, Status.ERROR: 1, Status.UNJUDGED: 1, Status.SKIPPED: 1,
    }  # fmt: skip


def test_the_pass_rate_is_over_all_cases_that_were_run() -> None:
    found = tallied(*MIXED)
    assert found.pass_rate == 0.2
    assert found.pass_interval == wilson(1, 5)


def test_the_score_is_the_mean_over_cases_of_the_mean_over_epochs() -> None:
    found = tallied(*MIXED, result("bad", FAILED, 0.6, epoch=3))
    assert found.scored == 3
    assert found.mean_score == pytest.approx((1.0 + 0.5 + 0.4) / 3)
    assert found.score_interval is not None
    assert found.score_interval.holds(1.9 / 3)


def test_repeats_count_errors_as_no_pass_and_leave_skipped_cases_out() -> None:
    one, two = tallied(*MIXED).repeats
    assert (one.k, one.one, one.every) == pytest.approx((1, 0.3, 0.3))
    assert (two.k, two.one, two.every) == pytest.approx((2, 0.4, 0.2))


def test_money_tokens_and_time_are_added_up() -> None:
    found = tallied(*MIXED)
    assert (found.cost, found.judge_cost, found.input_tokens, found.output_tokens) == (20, 6, 3, 4)
    assert (found.cost_per_case, found.judge_cost_per_case) == (4.0, 1.2)
    assert found.latency is not None
    assert (found.latency.p50, found.latency.p95) == pytest.approx((5.5, 9.55))
    assert found.unjudged_items == 2


def test_the_order_of_results_changes_nothing() -> None:
    shuffled = list(MIXED)
    Random(1).shuffle(shuffled)
    assert tallied(*shuffled).statuses == tallied(*MIXED).statuses
    assert tallied(*shuffled).repeats == tallied(*MIXED).repeats
    assert tallied(*shuffled).mean_score == pytest.approx(tallied(*MIXED).mean_score)


def judged(name: str, epoch: int, samples: tuple[float, ...], **given: Any) -> CaseResult:
    mean = sum(samples) / len(samples)
    items = (ItemScore(id="a", score=mean, samples=samples),)
    judgement = Judgement(by="j", items=items, samples=len(samples), agreement=0.5)
    return result(name, points=mean, epoch=epoch, items=items, judgements=(judgement,), **given)


def test_the_judge_s_part_of_the_variance_is_told_from_the_agent_s() -> None:
    found = tallied(
        judged("a", 1, (0.4, 0.6)), judged("a", 2, (0.5, 0.5)), judged("b", 1, (0.8, 1.0)), judged("b", 2, (0.9, 0.9))
    )
    assert found.variance.judge == pytest.approx(0.01)
    assert found.variance.agent == 0
    assert found.variance.case == pytest.approx(0.08, abs=0.01)
    assert (found.agreement, found.agreements) == (0.5, 4)


def test_where_a_check_failed_the_samples_of_the_judge_say_nothing() -> None:
    failed = (CheckResult(name="contains", passed=False),)
    found = tallied(judged("a", 1, (0.0, 1.0), checks=failed), judged("b", 1, (0.5, 0.5), checks=failed))
    assert found.variance.judge is None


def test_nothing_added_gives_nothing() -> None:
    found = tallied()
    assert (found.cases, found.pass_rate, found.mean_score, found.latency, found.repeats) == (0, None, None, None, ())
    assert found.pass_interval is None


def test_a_suite_that_was_skipped_has_no_pass_rate() -> None:
    assert tallied(result("a", Status.SKIPPED, None)).pass_rate is None


def test_two_subjects_are_not_mixed() -> None:
    with pytest.raises(BadArgument, match="other"):
        tallied(result("a"), result("a", subject="other"))


def test_figures_can_be_written_as_json_and_read_back() -> None:
    found = tallied(*MIXED)
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(found)), SubjectStats) == found


def test_very_many_cases_take_little_memory() -> None:
    tracemalloc.start()
    try:
        tally = SubjectTally()
        for number in range(6_000):
            tally.add(result(f"suite/case-{number}", PASSED if number % 3 else FAILED, number % 3 / 2))
        held, _ = tracemalloc.get_traced_memory()
        found = tally.stats()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.cases == 6_000
    assert held / 6_000 < 400  # bytes a case: 40 MB for 100,000
    assert peak / 6_000 < 1000


# Ranks


def stats(subject: str, rate: float, score: float = 0.5, cost: int = 0, width: float = 0.05) -> SubjectStats:
    return SubjectStats(
        subject=subject,
        pass_rate=rate,
        pass_interval=Interval(low=rate - width, high=rate + width),
        mean_score=score,
        score_interval=Interval(low=score - width, high=score + width),
        cost=Microdollars(cost),
    )


def order(ranks: tuple[Rank, ...]) -> list[tuple[int, str, bool]]:
    return [(one.place, one.stats.subject, one.told_apart) for one in ranks]


def test_subjects_are_ranked_by_pass_rate_then_score_then_cost() -> None:
    ranked = rank([
        stats("dear", 0.8, 0.7, cost=9),
        stats("cheap", 0.8, 0.7, cost=1),
        stats("best", 0.95),
        stats("nice", 0.8, 0.9),
        stats("near", 0.75),
        SubjectStats(subject="none"),
    ])  # fmt: skip
    assert order(ranked) == [
        (1, "best", True),
        (2, "nice", True),
        (3, "cheap", True),  # by its score
        (4, "dear", False),
        (5, "near", False),
        (6, "none", False),
    ]


def test_nobody_to_rank_is_no_error() -> None:
    assert rank([]) == ()
