"""The power of a comparison: what it says is held against made-up runs whose truth is known."""

from functools import cache
from random import Random
from statistics import fmean

import pytest

from muster.domain.case import Status
from muster.domain.money import Microdollars
from muster.suites.compare.test import ALPHA, NOTICE, compare
from muster.suites.compare.values import Comparison, ComparisonVerdict, EpochOutcome, Noticing

from .test_compare import Outcomes, outcomes
from .test_truth import by_judge, by_rule, run, skills_of

TRIALS, PAIRS = 100, 4
SIMULATION_ERROR = 0.12  # of some comparisons that tell a power, and of a hundred that show it


def noticing(found: Comparison) -> Noticing:
    assert found.noticing is not None
    return found.noticing


@cache
def told(cases: int, epochs: int) -> float:
    """Return the power that comparisons of two equal agents tell, on average; one that decides tells none."""
    random, powers = Random(cases), list[float]()
    while len(powers) < PAIRS:
        skills = skills_of(random, cases)
        a, b = run(random, skills, epochs, by_rule), run(random, skills, epochs, by_rule)
        found = compare(a, b, drop=NOTICE, resamples=99)
        powers += [found.noticing.power] if found.noticing else []
    return fmean(powers)


@cache
def noticed(cases: int, epochs: int) -> float:
    """Return how often a drop is noticed in which whole cases fail: 20 of the 75 points that skills have."""
    random, found = Random(1000 + cases), 0
    for seed in range(TRIALS):
        skills = skills_of(random, cases)
        broken = [0.0 if random.random() < NOTICE / 0.75 else skill for skill in skills]
        a, b = run(random, skills, epochs, by_rule), run(random, broken, epochs, by_rule)
        found += compare(a, b, resamples=199, seed=seed).verdict is ComparisonVerdict.WORSE
    return found / TRIALS


@pytest.mark.parametrize(("cases", "epochs"), [(10, 1), (40, 1), (20, 3)])
def test_the_power_is_how_often_the_drop_is_noticed(cases: int, epochs: int) -> None:
    assert told(cases, epochs) == pytest.approx(noticed(cases, epochs), abs=SIMULATION_ERROR)


def test_scores_that_say_more_than_passing_notice_as_much_as_is_told() -> None:
    random, powers, found = Random(4), [], 0
    for seed in range(TRIALS):
        a, b = run(random, [0.85] * 30, 1, by_judge), run(random, [0.85] * 30, 1, by_judge)
        powers += [noticing(compare(a, b, drop=NOTICE, resamples=99)).power] if seed < PAIRS else []
        broken = [0.4 if random.random() < NOTICE / 0.86 else 0.85 for _ in range(30)]
        worse = compare(a, run(random, broken, 1, by_judge), resamples=199, seed=seed)
        found += worse.verdict is ComparisonVerdict.WORSE
    assert fmean(powers) <= found / TRIALS + SIMULATION_ERROR  # a mean of failed scores: it may tell less


def test_as_many_more_cases_as_it_says_would_be_enough() -> None:
    a, b = flickering(20, 1), flickering(20, 2)
    more = noticing(compare(a, b, drop=NOTICE)).more_cases
    assert more is not None
    assert noticing(compare(flickering(20 + more, 1), flickering(20 + more, 2), drop=NOTICE)).power == pytest.approx(
        0.5, abs=0.12
    )


def flickering(cases: int, seed: int, epochs: int = 1, cost: int = 0) -> Outcomes:
    random = Random(seed)
    return {
        (f"case-{case:03}", epoch): EpochOutcome(
            status=Status.PASSED if random.random() < 0.8 else Status.FAILED,
            cost=Microdollars(cost),
        )
        for case in range(cases)
        for epoch in range(1, epochs + 1)
    }


def test_what_would_be_enough_comes_with_its_price() -> None:
    found = compare(flickering(20, 1, 2, 30_000), flickering(20, 2, 2, 20_000), drop=0.25)
    enough = noticing(found)
    assert enough.more_cases is not None
    assert enough.cases_cost == enough.more_cases * 2 * 50_000
    assert f"add about {enough.more_cases} cases (about $" in found.why
    assert enough.epochs_cost == (None if enough.more_epochs is None else enough.more_epochs * 20 * 50_000)


def test_few_cases_cannot_notice_anything() -> None:
    """It takes six cases that all got worse."""
    before = outcomes(*[True] * 4)
    found = noticing(compare(before, before, drop=0.2))
    assert (found.power, found.enough) == (0.0, False)


def test_a_drop_from_less_than_it_is_not_noticed() -> None:
    before = outcomes(*[False] * 18, True, True)
    after = outcomes(*[False] * 17, True, False, True)
    found = compare(before, after, drop=0.2)
    assert (noticing(found).power, noticing(found).possible) == (0.0, False)
    assert "a drop of 20 points is not possible, since fewer pass" in found.why


def test_one_number_is_tested_once_and_two_share_alpha() -> None:
    """Six of six changes have p = 0.031: enough for one test, and not for one of two."""
    before, after = outcomes(*[True] * 20), outcomes(*[True] * 14, *[False] * 6)
    assert compare(before, after).verdict is ComparisonVerdict.WORSE
    judged, later = (
        {key: EpochOutcome(status=one.status, score=0.9 * (one.score or 0)) for key, one in side.items()}
        for side in (before, after)
    )
    assert compare(judged, later).verdict is ComparisonVerdict.UNSURE


@pytest.mark.parametrize(("epochs", "cases"), [(1, 50), (3, 12)])
def test_one_test_at_all_of_alpha_raises_no_more_false_alarms(epochs: int, cases: int) -> None:
    random, found = Random(77 + epochs), 0
    for seed in range(120):
        skills = skills_of(random, cases)
        a, b = run(random, skills, epochs, by_rule), run(random, skills, epochs, by_rule)
        verdict = compare(a, b, alpha=ALPHA, resamples=199, seed=seed).verdict
        found += verdict in (ComparisonVerdict.BETTER, ComparisonVerdict.WORSE)
    assert found <= 120 * ALPHA + 5  # two deviations of a binomial


def test_with_one_test_the_power_at_fifty_cases_is_higher() -> None:
    found = shared = 0
    random = Random(11)
    for seed in range(TRIALS):
        skills = skills_of(random, 50)
        a, b = run(random, skills, 1, by_rule), run(random, [one * (1 - NOTICE / 0.75) for one in skills], 1, by_rule)
        found += compare(a, b, resamples=99, seed=seed).verdict is ComparisonVerdict.WORSE
        shared += compare(a, b, resamples=99, seed=seed, alpha=ALPHA / 2).verdict is ComparisonVerdict.WORSE
    assert found >= shared + TRIALS * 0.05
