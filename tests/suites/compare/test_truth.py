"""Comparisons of made-up runs whose truth is known: false alarms, and real changes that are found."""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import pytest

from muster.domain.case import Status
from muster.suites.compare.test import compare
from muster.suites.compare.values import ComparisonVerdict, EpochOutcome

ALPHA = 0.05
TRIALS = 200
Outcomes = dict[tuple[str, int], EpochOutcome]
Draw = Callable[[Random, float], float]


def by_rule(random: Random, skill: float) -> float:
    return float(random.random() < skill)


def by_judge(random: Random, skill: float) -> float:
    """A score around the skill, in the tenths that judges like."""
    return round(min(1.0, max(0.0, random.gauss(skill, 0.15))), 1)


def run(random: Random, skills: Sequence[float], epochs: int, draw: Draw) -> Outcomes:
    found = {}
    for case, skill in enumerate(skills):
        for epoch in range(epochs):
            score = draw(random, skill)
            found[f"case-{case}", epoch] = EpochOutcome(
                status=Status.PASSED if score >= 0.7 else Status.FAILED, score=score
            )
    return found


def skills_of(random: Random, cases: int) -> list[float]:
    """Cases of all difficulties, most of them easy."""
    return [random.betavariate(3, 1) for _ in range(cases)]


def alarms(verdicts: Counter[ComparisonVerdict]) -> int:
    return verdicts[ComparisonVerdict.BETTER] + verdicts[ComparisonVerdict.WORSE]


@pytest.mark.parametrize("draw", [by_rule, by_judge])
@pytest.mark.parametrize(("epochs", "cases"), [(1, 30), (3, 15)])
def test_without_a_difference_false_alarms_stay_below_alpha(epochs: int, cases: int, draw: Draw) -> None:
    random, verdicts = Random(1000 + epochs), Counter[ComparisonVerdict]()
    for seed in range(TRIALS):
        skills = skills_of(random, cases)
        a, b = run(random, skills, epochs, draw), run(random, skills, epochs, draw)
        verdicts[compare(a, b, alpha=ALPHA, resamples=99, seed=seed).verdict] += 1
    print(f"{draw.__name__}, {epochs} epochs: {alarms(verdicts)} false alarms of {TRIALS}")
    assert alarms(verdicts) <= TRIALS * ALPHA


def test_cases_that_change_both_ways_alike_raise_no_more_alarms() -> None:
    """B is another agent: each case is easier or harder for it, on the whole it is the same."""
    random, verdicts = Random(7), Counter[ComparisonVerdict]()
    for seed in range(TRIALS):
        pairs = [(random.random(), random.random()) for _ in range(20)]
        a = run(random, [before for before, _ in pairs], 3, by_rule)
        b = run(random, [after for _, after in pairs], 3, by_rule)
        verdicts[compare(a, b, alpha=ALPHA, resamples=99, seed=seed).verdict] += 1
    assert alarms(verdicts) <= TRIALS * ALPHA


@pytest.mark.parametrize(
    ("before", "after", "expected"), [(0.9, 0.7, ComparisonVerdict.WORSE), (0.7, 0.9, ComparisonVerdict.BETTER)]
)
def test_a_real_change_on_a_hundred_cases_is_mostly_found(
    before: float, after: float, expected: ComparisonVerdict
) -> None:
    random, verdicts = Random(5), Counter[ComparisonVerdict]()
    for seed in range(100):
        a, b = run(random, [before] * 100, 1, by_rule), run(random, [after] * 100, 1, by_rule)
        verdicts[compare(a, b, alpha=ALPHA, resamples=199, seed=seed).verdict] += 1
    print(f"{before} to {after}: {verdicts[expected]} of 100 found")
    assert verdicts[expected] >= 85
    assert verdicts[ComparisonVerdict.SAME] == 0
    assert alarms(verdicts) == verdicts[expected]


def test_a_change_that_only_scores_show_is_found() -> None:
    random, verdicts = Random(9), Counter[ComparisonVerdict]()
    for seed in range(60):
        a, b = run(random, [0.95] * 40, 2, by_judge), run(random, [0.85] * 40, 2, by_judge)
        verdicts[compare(a, b, alpha=ALPHA, resamples=199, seed=seed).verdict] += 1
    assert verdicts[ComparisonVerdict.WORSE] >= 50


def test_more_epochs_find_more() -> None:
    found = Counter[int]()
    for epochs in (1, 4):
        random = Random(3)
        for seed in range(60):
            a, b = run(random, [0.85] * 40, epochs, by_rule), run(random, [0.65] * 40, epochs, by_rule)
            found[epochs] += compare(a, b, alpha=ALPHA, resamples=99, seed=seed).verdict is ComparisonVerdict.WORSE
    assert found[4] > found[1]
