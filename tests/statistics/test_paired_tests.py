"""Whether B is not worse by more than a margin: limits against exact ones, and made-up runs whose truth is known."""

from functools import cache
from random import Random

import pytest
import scipy  # type: ignore[import-untyped]  # its parts are loaded when they are used

from muster.domain.case import Status
from muster.statistics.paired_tests import lower_limit
from muster.statistics.sample_size import needed_for_margin, spread_of
from muster.suites.compare.test import compare
from muster.suites.compare.values import ComparisonVerdict, EpochOutcome
from tests.suites.compare.test_compare import BAD, GOOD, Outcomes, outcomes

ALPHA = 0.05
RUNS = 200
SIMULATION_ERROR = 3 * (ALPHA * (1 - ALPHA) / RUNS) ** 0.5


def drawn(random: Random, cases: int, epochs: int, loss: float, gain: float) -> list[float]:
    """Draw the difference of each case: every epoch regresses or improves with these probabilities."""
    one = [-1.0, 1.0, 0.0]
    weights = [loss, gain, 1 - loss - gain]
    return [sum(random.choices(one, weights, k=epochs)) / epochs for _ in range(cases)]


@cache
def limit_of(differences: tuple[float, ...]) -> float:
    return lower_limit(differences, alpha=ALPHA, resamples=399)


def limits(runs: int, cases: int, epochs: int, loss: float, gain: float) -> list[float]:
    """Draw runs and return the limit of each; runs with the same differences are calculated once."""
    random = Random(11)
    return [limit_of(tuple(sorted(drawn(random, cases, epochs, loss, gain)))) for _ in range(runs)]


@pytest.mark.parametrize(("cases", "lost"), [(20, 0), (60, 1), (200, 7)])
def test_where_cases_only_regress_the_limit_is_the_exact_one(cases: int, lost: int) -> None:
    found = lower_limit([-1.0] * lost + [0.0] * (cases - lost), alpha=ALPHA, resamples=4000)
    assert found == pytest.approx(-scipy.stats.beta.ppf(1 - ALPHA, lost + 1, cases - lost), rel=0.08)


@pytest.mark.parametrize(
    ("cases", "epochs", "margin", "gain"),
    [(60, 1, 0.05, 0.0), (60, 1, 0.1, 0.2), (200, 1, 0.05, 0.03), (30, 2, 0.1, 0.2)],
)
def test_exactly_at_the_margin_not_worse_comes_no_more_often_than_alpha(
    cases: int, epochs: int, margin: float, gain: float
) -> None:
    found = limits(RUNS, cases, epochs, gain + margin, gain)
    assert sum(limit > -margin for limit in found) <= RUNS * (ALPHA + SIMULATION_ERROR)


@pytest.mark.parametrize(("cases", "share"), [(60, 0.1), (40, 0.5)])
def test_for_scores_too_not_worse_comes_no_more_often_than_alpha(cases: int, share: float) -> None:
    """A share of the cases loses up to all of its score, the others move by a tenth; the mean is the margin exactly."""
    random, found = Random(7), 0
    for _ in range(RUNS):
        lost = [random.random() < share for _ in range(cases)]
        moved = [-random.randint(0, 10) / 10 if one else random.choice((-0.1, 0.0, 0.1)) for one in lost]
        found += limit_of(tuple(sorted(moved))) > -share / 2
    assert found <= RUNS * (ALPHA + SIMULATION_ERROR)


def test_an_agent_that_only_flickers_is_mostly_found_not_worse_when_there_are_enough_cases() -> None:
    assert sum(limit > -0.1 for limit in limits(200, 200, 1, 0.12, 0.12)) >= 150


def test_as_many_more_cases_as_it_says_would_mostly_decide() -> None:
    first = [[-1.0]] * 4 + [[1.0]] * 4 + [[0.0]] * 32
    more = needed_for_margin([spread_of(first)], 0.1, ALPHA).more_cases
    assert more is not None
    assert 130 <= sum(limit > -0.1 for limit in limits(200, 40 + more, 1, 0.1, 0.1)) <= 190


def flickering(random: Random, cases: int, epochs: int = 1) -> Outcomes:
    return {
        (f"case-{case:03}", epoch): GOOD if random.random() < 0.85 else BAD
        for case in range(cases)
        for epoch in range(1, epochs + 1)
    }


def test_a_noisy_agent_is_not_worse_within_a_margin_where_nothing_else_can_be_said() -> None:
    random = Random(1)
    a, b = flickering(random, 200), flickering(random, 200)
    assert compare(a, b).verdict is ComparisonVerdict.UNSURE
    found = compare(a, b, margin=0.15)
    assert (found.verdict, found.margin) == (ComparisonVerdict.NOT_WORSE, 0.15)
    assert found.pass_at_least is not None
    assert -0.15 < found.pass_at_least < 0
    assert "0.15" in found.why


def test_what_is_surely_worse_but_less_than_the_margin_is_not_worse_by_more_than_it() -> None:
    before, after = outcomes(*[True] * 400), outcomes(*[True] * 390, *[False] * 10)
    assert compare(before, after).verdict is ComparisonVerdict.WORSE
    assert compare(before, after, margin=0.05).verdict is ComparisonVerdict.NOT_WORSE
    assert compare(before, after, margin=0.02).verdict is ComparisonVerdict.WORSE


def test_few_cases_without_any_change_do_not_show_a_small_margin() -> None:
    """With 5 % of all cases broken, 20 cases without any change come by chance more than once in three times."""
    found = compare(outcomes(*[True] * 20), outcomes(*[True] * 20), margin=0.05)
    assert (found.verdict, found.needed is not None) == (ComparisonVerdict.UNSURE, True)
    assert compare(outcomes(*[True] * 70), outcomes(*[True] * 70), margin=0.05).verdict is ComparisonVerdict.NOT_WORSE


def test_scores_must_lie_within_the_margin_too() -> None:
    before = outcomes(*[EpochOutcome(status=Status.PASSED, score=1.0)] * 100)
    after = outcomes(*[EpochOutcome(status=Status.PASSED, score=0.8)] * 100)
    found = compare(before, after, margin=0.1)
    assert found.verdict is ComparisonVerdict.WORSE
    assert found.pass_at_least is not None
    assert found.pass_at_least > -0.1


def test_too_little_evidence_says_how_many_more_cases_or_epochs_would_probably_decide() -> None:
    random = Random(2)
    once = compare(flickering(random, 40), flickering(random, 40), margin=0.05)
    assert once.needed is not None
    assert once.needed.more_cases is not None
    assert f"about {once.needed.more_cases:,} more cases would probably decide (with --epochs 2" in once.why
    often = compare(flickering(random, 100, 3), flickering(random, 100, 3), margin=0.05)
    assert often.needed is not None
    assert often.needed.more_epochs is not None
    assert f"or about {often.needed.more_epochs:,} more epochs of each case would probably decide" in often.why
    plain = compare(outcomes(*[True] * 20), outcomes(*[True] * 18, False, False))
    assert plain.needed is not None
    assert "more cases" in plain.why


def test_results_that_are_missing_are_never_within_a_margin() -> None:
    before = outcomes(*[True] * 200)
    broken = outcomes(*[EpochOutcome(status=Status.ERROR)] * 200)
    assert compare(before, broken, margin=0.5).verdict is ComparisonVerdict.WORSE
    assert compare(before, {}, margin=0.5).verdict is ComparisonVerdict.WORSE
    assert compare({}, before, margin=0.5).verdict is ComparisonVerdict.UNSURE
    assert compare(broken, before, margin=0.5).verdict is ComparisonVerdict.UNSURE
    one_lost = before | {("case-000", 1): EpochOutcome(status=Status.TIMED_OUT)}
    assert compare(before, one_lost, margin=0.5).verdict is ComparisonVerdict.UNSURE
