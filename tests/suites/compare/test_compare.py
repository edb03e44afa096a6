"""What two runs say when they are laid side by side."""

import msgspec
import pytest

from muster.domain.case import Status
from muster.suites.compare.test import compare
from muster.suites.compare.values import Comparison, ComparisonVerdict, EpochOutcome

Outcomes = dict[tuple[str, int], EpochOutcome]

GOOD = EpochOutcome(status=Status.PASSED, score=1.0)
BAD = EpochOutcome(status=Status.FAILED, score=0.0)
NO_RESULT = [Status.ERROR, Status.TIMED_OUT, Status.UNJUDGED, Status.SKIPPED]


def outcomes(*passed: bool | EpochOutcome, epoch: int = 1) -> Outcomes:
    return {
        (f"case-{number:03}", epoch): one if isinstance(one, EpochOutcome) else GOOD if one else BAD
        for number, one in enumerate(passed)
    }


def verdict(a: Outcomes, b: Outcomes) -> ComparisonVerdict:
    return compare(a, b, resamples=400).verdict


def test_identical_runs_are_the_same_from_five_pairs_on() -> None:
    assert verdict(outcomes(*[True] * 5), outcomes(*[True] * 5)) is ComparisonVerdict.SAME
    assert verdict(outcomes(*[True, False] * 10), outcomes(*[True, False] * 10)) is ComparisonVerdict.SAME
    assert verdict(outcomes(*[True] * 4), outcomes(*[True] * 4)) is ComparisonVerdict.UNSURE


def test_a_clear_drop_is_worse_and_a_clear_rise_better() -> None:
    before, after = outcomes(*[True] * 20), outcomes(*[True] * 10, *[False] * 10)
    worse = compare(before, after)
    assert (worse.verdict, worse.b, worse.c, worse.pairs) == (ComparisonVerdict.WORSE, 10, 0, 20)
    assert (worse.pass_before, worse.pass_after, worse.pass_difference) == (1.0, 0.5, -0.5)
    assert worse.pass_interval is not None
    assert worse.pass_interval.high < 0
    assert [change.reason for change in worse.regressions] == ["passed in A, failed in B"] * 10
    better = compare(after, before)
    assert (better.verdict, better.c, len(better.improvements)) == (ComparisonVerdict.BETTER, 10, 10)
    assert "p = 0.002" in better.why


def test_a_few_changes_are_not_enough_evidence() -> None:
    found = compare(outcomes(*[True] * 20), outcomes(*[True] * 18, False, False))
    assert (found.verdict, found.b) == (ComparisonVerdict.UNSURE, 2)


def test_nothing_in_common_is_not_enough_evidence() -> None:
    for a, b in (({}, {}), ({}, outcomes(True)), ({("x", 1): EpochOutcome(status=Status.SKIPPED)}, outcomes(True))):
        assert verdict(a, b) is ComparisonVerdict.UNSURE


@pytest.mark.parametrize("n", [1, 3, 50])
@pytest.mark.parametrize("status", NO_RESULT)
def test_a_run_without_any_result_is_worse(n: int, status: Status) -> None:
    found = compare(outcomes(*[True] * n), outcomes(*[EpochOutcome(status=status)] * n))
    assert (found.verdict, found.no_result, len(found.regressions)) == (ComparisonVerdict.WORSE, n, n)
    assert verdict(outcomes(*[False] * n), outcomes(*[EpochOutcome(status=status)] * n)) is ComparisonVerdict.WORSE
    assert verdict(outcomes(*[True] * n), {}) is ComparisonVerdict.WORSE


@pytest.mark.parametrize("lost", [None, *[EpochOutcome(status=status) for status in NO_RESULT]])
def test_a_case_that_was_lost_forbids_better_and_same(lost: EpochOutcome | None) -> None:
    before = outcomes(True, *[False] * 30, *[True] * 30)
    after = outcomes(True, *[True] * 60)
    assert verdict(before, after) is ComparisonVerdict.BETTER
    del after["case-000", 1]
    after |= {("case-000", 1): lost} if lost else {}
    found = compare(before, after)
    assert found.verdict is ComparisonVerdict.UNSURE
    assert [change.case for change in found.regressions] == ["case-000"]
    assert "B" in found.regressions[0].reason
    same = outcomes(*[True] * 100)
    assert verdict(same, {key: one for key, one in same.items() if key[0] != "case-007"}) is ComparisonVerdict.UNSURE


def test_many_lost_cases_are_worse() -> None:
    before = outcomes(*[True] * 20)
    assert verdict(before, dict(list(before.items())[:10])) is ComparisonVerdict.WORSE


def test_what_only_b_has_is_new_and_is_not_counted() -> None:
    before = outcomes(*[True] * 10)
    found = compare(before, before | {("zebra", 1): BAD, ("zoo", 1): EpochOutcome(status=Status.SKIPPED)})
    assert (found.verdict, found.pairs, found.new) == (ComparisonVerdict.SAME, 10, (("zebra", 1),))


def test_what_only_b_has_and_did_not_pass_is_told_beside_the_verdict() -> None:
    before = outcomes(*[True] * 60)
    more = {(f"new-{number}", 1): BAD if number % 2 else EpochOutcome(status=Status.ERROR) for number in range(20)}
    found = compare(before, before | more | {("new-good", 1): GOOD})
    assert (found.verdict, found.new_failed) == (ComparisonVerdict.SAME, 20)
    assert found.why.endswith("; of 21 cases that only B has, 20 did not pass")
    assert "only B has" not in compare(before, before | {("new-good", 1): GOOD}).why
    assert compare({}, {("new", 1): BAD}).why.endswith("; of 1 case that only B has, 1 did not pass")


def test_a_good_verdict_tells_what_has_no_result_and_that_nothing_passed() -> None:
    error = EpochOutcome(status=Status.ERROR)
    one_error = outcomes(*[True] * 60, error)
    found = compare(one_error, one_error, drop=0.2)
    assert (found.verdict, found.noticing) == (ComparisonVerdict.SAME, None)
    assert found.why.endswith("; no result in A or in B: 1 case")
    nothing = outcomes(*[False] * 50)
    found = compare(nothing, nothing, drop=0.2)
    assert found.verdict is ComparisonVerdict.SAME
    assert "nothing passed in A or in B: a drop of 20 points is not possible, since fewer pass" in found.why


def test_a_drop_of_the_pass_rate_that_is_not_chance_is_worse_below_the_threshold_too() -> None:
    before, after = outcomes(*[True] * 100), outcomes(*[True] * 70, *[False] * 30)
    assert compare(before, after, threshold=0.5).verdict is ComparisonVerdict.WORSE


def test_a_baseline_without_results_makes_nobody_better() -> None:
    errors = outcomes(*[EpochOutcome(status=Status.ERROR)] * 20)
    assert verdict(errors, outcomes(*[True] * 20)) is ComparisonVerdict.UNSURE
    half = outcomes(*[EpochOutcome(status=Status.ERROR)] * 20, *[True] * 20)
    found = compare(half, outcomes(*[True] * 40))
    assert found.verdict is ComparisonVerdict.UNSURE
    assert "no result in A" in found.why
    assert found.improvements[0].reason == "no result in A: error"


def test_epochs_that_b_was_never_asked_for_are_left_out() -> None:
    three = {(case, epoch): GOOD for case in "abcdefgh" for epoch in (1, 2, 3)}
    one = {key: outcome for key, outcome in three.items() if key[1] == 1}
    found = compare(three, one)
    assert (found.verdict, found.pairs, found.left_out) == (ComparisonVerdict.SAME, 8, 16)
    missing = dict(three)
    del missing["c", 2]
    assert compare(three, missing).regressions[0].reason == "missing in B"


def test_epochs_of_one_case_are_one_witness() -> None:
    """Twenty epochs of one case that broke are no twenty cases."""
    before = {(case, epoch): GOOD for case in ("a", "b", "c") for epoch in range(1, 21)}
    after = before | {("a", epoch): BAD for epoch in range(1, 21)}
    found = compare(before, after)
    assert (found.verdict, found.b, found.cases, len(found.regressions)) == (ComparisonVerdict.UNSURE, 1, 3, 20)


def points(*scores: float) -> Outcomes:
    return outcomes(*[EpochOutcome(status=Status.PASSED if one >= 0.5 else Status.FAILED, score=one) for one in scores])


def test_a_sure_change_of_scores_that_is_small_is_the_same() -> None:
    found = compare(points(*[0.90] * 40), points(*[0.87] * 40))
    assert found.verdict is ComparisonVerdict.SAME
    assert found.score_difference == pytest.approx(-0.03)
    assert found.score_p < 0.01


def test_a_sure_change_of_scores_that_is_large_counts_without_any_change_of_sides() -> None:
    found = compare(points(*[0.90] * 40), points(*[0.70] * 40))
    assert (found.verdict, found.b, found.c) == (ComparisonVerdict.WORSE, 0, 0)
    assert "score" in found.why


def test_pass_rate_and_score_that_disagree_are_not_enough_evidence() -> None:
    before = points(*[0.49] * 30, *[1.0] * 30)
    after = points(*[0.51] * 30, *[0.6] * 30)
    found = compare(before, after)
    assert found.pass_difference is not None
    assert found.score_difference is not None
    assert found.pass_difference > 0 > found.score_difference
    assert found.verdict is ComparisonVerdict.UNSURE


def test_a_comparison_can_be_written_as_json_and_is_the_same_for_the_same_seed() -> None:
    before, after = outcomes(*[True] * 20), outcomes(*[True] * 14, *[False] * 6)
    found = compare(before, after, seed=3)
    assert found == compare(before, after, seed=3)
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(found)), Comparison) == found
