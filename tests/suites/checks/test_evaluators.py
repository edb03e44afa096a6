"""Who decides, and what several epochs come to."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.case import Status
from muster.domain.errors import BadArgument
from muster.suites.checks.scoring import evaluators_of
from muster.suites.statistics import settle
from muster.suites.values.case import Case, Evaluator, Golden
from tests.suites.checks.values import case, expect, item, output

RULES, GOLDEN, PROCESS, JUDGE = Evaluator.RULES, Evaluator.GOLDEN, Evaluator.PROCESS, Evaluator.JUDGE
TEXT = Golden(path="g", text="x")


def test_a_case_has_its_own_evaluator_or_rules() -> None:
    assert evaluators_of(case(), None) == (RULES,)
    assert evaluators_of(case(evaluator=JUDGE), None) == (JUDGE,)
    assert evaluators_of(case(evaluator=JUDGE), "golden") == (GOLDEN,)


@pytest.mark.parametrize(
    ("tested", "expected"),
    [
        (case(), (RULES,)),
        (case(output=(output("contains", "x"),)), (RULES,)),
        (case(tool_sequence=(expect("a"),), golden=TEXT), (RULES, GOLDEN)),
        (case(rubric=(item("a"),)), (JUDGE,)),
        (case(rubric=(item("a", contains="x"),), process=("check",)), (RULES, PROCESS, JUDGE)),
        (case(evaluator=GOLDEN), (GOLDEN,)),
    ],
)
def test_all_means_every_one_that_a_case_has_material_for(tested: Case, expected: tuple[Evaluator, ...]) -> None:
    assert evaluators_of(tested, "all") == expected


def test_an_unknown_evaluator_is_refused_by_name() -> None:
    with pytest.raises(BadArgument, match="jury"):
        evaluators_of(case(), "jury")


@pytest.mark.parametrize("status", list(Status))
def test_epochs_that_agree_keep_their_status(status: Status) -> None:
    assert settle([status] * 3) is status


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([Status.PASSED, Status.FAILED], Status.FLAKY),
        ([Status.PASSED, Status.ERROR, Status.FAILED], Status.FLAKY),
        ([Status.PASSED, Status.SKIPPED], Status.FLAKY),
        ([Status.FAILED, Status.ERROR], Status.ERROR),
        ([Status.FAILED, Status.TIMED_OUT], Status.TIMED_OUT),
        ([Status.FAILED, Status.UNJUDGED], Status.FAILED),
        ([Status.UNJUDGED, Status.SKIPPED], Status.UNJUDGED),
        ([], Status.UNJUDGED),
    ],
)
def test_epochs_that_differ_are_flaky_or_the_worst(statuses: list[Status], expected: Status) -> None:
    assert {settle(order) for order in permutations(statuses)} == {expected}


@given(st.lists(st.sampled_from(list(Status)), max_size=5))
def test_a_case_passed_only_when_every_epoch_did(statuses: list[Status]) -> None:
    assert (settle(statuses) is Status.PASSED) == (bool(statuses) and set(statuses) == {Status.PASSED})
