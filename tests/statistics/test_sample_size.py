"""How many more cases or epochs would decide: what is said, held against made-up runs whose variances are known."""

from functools import cache
from random import Random

import pytest

from muster.domain.case import Status
from muster.statistics.paired_tests import lower_limit
from muster.statistics.sample_size import MAX_EPOCHS, Needed, Spread, needed_for_change, needed_for_margin
from muster.suites.compare.test import compare
from muster.suites.compare.values import EpochOutcome

ALPHA, MARGIN, CASES = 0.05, 0.1, 60
RUNS = 100


@cache
def limit_of(differences: tuple[float, ...]) -> float:
    return lower_limit(differences, alpha=ALPHA, resamples=399)


def decided(epochs: int, shift: float, flicker: float) -> float:
    """Return how often "not worse" comes, if cases differ by a shift of their own and epochs flicker around it.

    The difference of a case is `shift` up or down for all its epochs, and each epoch moves it by 1 up or down with a
    probability of `flicker`; its mean is 0.
    """
    random, found = Random(5), 0
    for _ in range(RUNS):
        cases = []
        for _ in range(CASES):
            moves = sum(random.choices((-1, 0, 1), (flicker / 2, 1 - flicker, flicker / 2), k=epochs))
            cases.append(random.choice((-shift, shift)) + moves / epochs)
        found += limit_of(tuple(sorted(round(one, 3) for one in cases))) > -MARGIN
    return found / RUNS


def told(shift: float, flicker: float, epochs: int = 2) -> Needed:
    """Return what is said of a run that shows exactly the variances that it has."""
    spread = Spread(mean=0.0, cases=CASES, epochs=epochs, between=shift**2, within=flicker)
    return needed_for_margin([spread], MARGIN, ALPHA)


@pytest.mark.parametrize(("shift", "flicker"), [(0.0, 0.4), (0.1, 0.4)])
def test_as_many_more_epochs_as_it_says_would_mostly_decide(shift: float, flicker: float) -> None:
    more = told(shift, flicker).more_epochs
    assert more is not None
    assert decided(2, shift, flicker) < 0.7
    assert 0.7 <= decided(2 + more, shift, flicker) <= 0.93


def test_where_cases_themselves_differ_no_number_of_epochs_is_promised() -> None:
    found = told(0.5, 0.2)
    assert (found.more_epochs, found.epochs_known, found.epochs_decide) == (None, True, False)
    assert found.more_cases is not None
    assert decided(20, 0.5, 0.2) < 0.6


def test_epochs_beyond_the_limit_are_told_from_those_that_never_decide() -> None:
    spread = Spread(mean=0.0, cases=CASES, epochs=2, between=0.0, within=MAX_EPOCHS)
    found = needed_for_margin([spread], MARGIN, ALPHA)
    assert (found.more_epochs, found.epochs_decide) == (None, True)


@pytest.mark.parametrize(("cases", "can"), [(6, False), (7, True)])
def test_a_difference_in_few_cases_is_never_shown_by_epochs(cases: int, can: bool) -> None:
    """Six cases that all point one way have a p of 2/64, which is above the half of 0.05 that one test gets."""
    spread = Spread(mean=0.5, cases=cases, epochs=2, between=0.0, within=1.0)
    assert needed_for_change([spread], 0.05, ALPHA).epochs_decide == can


def test_a_comparison_says_when_epochs_alone_cannot_decide() -> None:
    """Every case is always right or always wrong, so that another epoch brings nothing new."""
    passed = [[True, False, True], [False, True, True]]
    a, b = (
        {
            (f"case-{case:02}", epoch): EpochOutcome(status=Status.PASSED if side[case % 3] else Status.FAILED)
            for case in range(30)
            for epoch in (1, 2)
        }
        for side in passed
    )
    for found in (compare(a, b), compare(a, b, margin=0.05)):
        assert "more cases would probably decide; more epochs of the same cases alone would not, however" in found.why
