"""What a case comes to: statuses and scores from checks, rubrics, golden texts, commands and judges."""

from typing import Any

import pytest

from muster.domain.call import Quality
from muster.domain.case import Status
from muster.domain.money import Microdollars
from muster.suites.checks.scoring import skipped
from muster.suites.values.case import Case, Evaluator, Golden
from muster.suites.values.verdict import CaseResult, ItemScore, Judgement
from tests.suites.checks.values import call, case, expect, item, output, said, scored

RULES, GOLDEN, PROCESS, JUDGE = Evaluator.RULES, Evaluator.GOLDEN, Evaluator.PROCESS, Evaluator.JUDGE

HELLO = (output("contains", "hello"),)
ODD_WEIGHTS = (item("a", 0.1, contains="a"), item("b", 0.2, contains="b"), item("c", 0.7, contains="c"))


def judgement(*scores: tuple[str, float | None], **given: Any) -> Judgement:
    items = tuple(ItemScore(id=id_, score=points, by="judge") for id_, points in scores)
    return Judgement(by="judge-model", items=items, **given)


def judged(tested: Case, said_by_judge: Judgement, *evaluators: Evaluator, answer: str = "hello") -> CaseResult:
    return scored(tested, said(answer), *(evaluators or (JUDGE,)), judgements={JUDGE: said_by_judge})


def commanded(tested: Case, said_by_command: Judgement) -> CaseResult:
    return scored(tested, said("hello"), PROCESS, judgements={PROCESS: said_by_command})


# Rules


def test_a_case_whose_checks_pass_scores_1() -> None:
    found = scored(case(output=HELLO), said("hello", seconds=1.5, cost=Microdollars(7), keys=("k",), model="m"))
    assert (found.status, found.score, found.why) == (Status.PASSED, 1.0, "")
    assert (found.seconds, found.cost, found.keys, found.model) == (1.5, 7, ("k",), "m")
    assert [check.name for check in found.checks] == ["contains"]


def test_a_failed_check_makes_the_score_0_whatever_the_rubric_says() -> None:
    found = scored(case(output=HELLO, rubric=(item("a", contains="bye"),)), said("bye"))
    assert (found.status, found.score) == (Status.FAILED, 0.0)
    assert found.why.startswith('contains "hello": it is not in the answer')


def test_tool_calls_count_as_checks() -> None:
    tested = case(tool_sequence=(expect("search"),))
    passed = scored(tested, said("done", tool_calls=(call("search"),)))
    assert (passed.status, passed.tools) == (Status.PASSED, ("search",))
    assert scored(tested, said("done")).status is Status.FAILED


def test_rubric_checks_are_weighed() -> None:
    tested = case(rubric=(item("a", 3, contains="a"), item("b", 1, contains="b")))
    assert scored(tested, said("a")).score == 0.75
    assert scored(tested, said("b")).score == 0.25
    assert scored(tested, said("a")).status is Status.PASSED
    failed = scored(tested, said("b"))
    assert failed.status is Status.FAILED
    assert "a 0.00" in failed.why


def test_weights_that_sum_to_nothing_weigh_the_same() -> None:
    tested = case(rubric=(item("a", 0, contains="a"), item("b", 0, contains="b")))
    assert scored(tested, said("a")).score == 0.5


def test_rounding_does_not_fail_a_case() -> None:
    assert scored(case(rubric=ODD_WEIGHTS, threshold=0.3), said("ab")).status is Status.PASSED
    assert scored(case(rubric=ODD_WEIGHTS, threshold=0.3001), said("ab")).status is Status.FAILED
    barely = judgement(("a", 1 - 0.9))  # a little less than 0.1
    assert judged(case(rubric=(item("a", critical=True),), threshold=0.1), barely).status is Status.PASSED


def test_an_item_without_a_check_is_unjudged_and_not_0() -> None:
    found = scored(case(rubric=(item("a", contains="hello"), item("style", 9))), said("hello"))
    assert (found.status, found.score) == (Status.PASSED, 1.0)
    assert [(one.id, one.score, one.by) for one in found.items] == [("a", 1.0, "auto_check"), ("style", None, "")]


def test_a_case_of_which_nothing_was_checked_is_unjudged() -> None:
    for tested in (case(), case(rubric=(item("style"),))):
        found = scored(tested, said("hello"))
        assert (found.status, found.score) == (Status.UNJUDGED, None)
        assert "no output check" in found.why


def test_a_case_without_an_evaluator_is_unjudged() -> None:
    found = scored(case(output=HELLO), said("hello"), *())
    assert found.status is Status.PASSED  # rules, where nothing is named
    empty = scored(case(), said("hello"), GOLDEN)
    assert (empty.status, empty.why) == (Status.UNJUDGED, "the case has no golden text to compare with")


def test_the_case_decides_its_threshold() -> None:
    rubric = (item("a", contains="a"), item("b", contains="b"))
    assert scored(case(rubric=rubric, threshold=0.5), said("a"), threshold=0.9).status is Status.PASSED
    assert scored(case(rubric=rubric), said("a"), threshold=0.9).status is Status.FAILED
    assert scored(case(rubric=rubric, threshold=0.5), said("a")).threshold == 0.5


def test_a_critical_item_below_the_threshold_fails_the_case() -> None:
    rubric = (item("a", 9, contains="a"), item("b", 1, contains="b", critical=True))
    found = scored(case(rubric=rubric), said("a"))
    assert (found.status, found.score) == (Status.FAILED, 0.9)
    assert "critical item b" in found.why


def test_a_critical_item_that_nobody_judged_lets_nothing_pass() -> None:
    rubric = (item("a", contains="a"), item("safe", critical=True))
    found = scored(case(rubric=rubric), said("a"))
    assert (found.status, found.score) == (Status.UNJUDGED, None)
    assert "safe" in found.why


# What came instead of an answer


def test_an_error_is_an_error_and_a_timeout_a_timeout() -> None:
    error = scored(case(output=HELLO), said(error={"code": "overloaded", "message": "full"}))
    assert (error.status, error.score, error.error) == (Status.ERROR, None, {"code": "overloaded", "message": "full"})
    assert "full" in error.why
    late = scored(case(output=HELLO, timeout=3.0), said(timed_out=True, error={"message": "late"}, seconds=3))
    assert (late.status, late.seconds) == (Status.TIMED_OUT, 3)
    assert "3 s" in late.why


@pytest.mark.parametrize(
    ("quality", "advice"),
    [
        (Quality.CUT, "max_tokens; raise it"),
        (Quality.REFUSED, "refused"),
        (Quality.EMPTY, "empty"),
        (Quality.UNFINISHED, "incomplete"),
    ],
)
def test_an_answer_that_is_not_good_fails_and_says_what_to_do(quality: Quality, advice: str) -> None:
    found = scored(case(output=HELLO), said("hello", quality=quality))
    assert (found.status, found.score, found.quality) == (Status.FAILED, 0.0, quality)
    assert advice in found.why
    accepted = scored(case(output=HELLO, accepts=(quality,)), said("hello", quality=quality))
    assert accepted.status is Status.PASSED


def test_a_bad_answer_to_a_case_without_checks_fails_too() -> None:
    assert scored(case(), said("hel", quality=Quality.CUT)).status is Status.FAILED


def test_a_broken_check_is_an_error_even_beside_a_failed_one() -> None:
    broken = output("regex", "(")
    for tested in (
        case(output=(output("contains", "x"), broken)),
        case(output=HELLO, rubric=(item("a"), item("b", contains=""))),
    ):
        found = scored(tested, said("hello"))
        assert (found.status, found.score) == (Status.ERROR, None)
        assert "could not be run" in found.why


def test_a_case_that_is_skipped_says_why() -> None:
    found = scored(case(skip="needs a key", output=HELLO), said("hello"))
    assert found == skipped(case(skip="needs a key"), "sim/echo", 1)
    assert (found.status, found.why, found.score) == (Status.SKIPPED, "needs a key", None)


# Golden texts

TEXT = Golden(path="golden/a.txt", text="a\nb\nc\nd", threshold=0.75)


def test_the_golden_threshold_decides_and_the_score_is_the_likeness() -> None:
    found = scored(case(golden=TEXT, threshold=0.99), said("a\nb\nc\nx"), GOLDEN)
    assert (found.status, found.score, found.golden, found.threshold) == (Status.PASSED, 0.75, 0.75, 0.75)
    far = scored(case(golden=TEXT, threshold=0.1), said("a\nb\nx\ny"), GOLDEN)
    assert (far.status, far.score) == (Status.FAILED, 0.5)
    assert "golden/a.txt" in far.why


def test_checks_apply_under_golden_too() -> None:
    found = scored(case(golden=TEXT, output=HELLO), said("a\nb\nc\nd"), GOLDEN)
    assert (found.status, found.score, found.golden) == (Status.FAILED, 0.0, 1.0)


# Judges


def test_a_judge_scores_by_the_weights_of_the_rubric() -> None:
    tested = case(rubric=(item("a", 3), item("b", 1)))
    found = judged(tested, judgement(("b", 0.0), ("a", 1.0), cost=Microdollars(5)))
    assert (found.status, found.score, found.judge_cost) == (Status.PASSED, 0.75, 5)
    assert [(one.id, one.weight, one.by) for one in found.items] == [("a", 3, "judge"), ("b", 1, "judge")]
    assert judged(tested, judgement(("a", 0.5), ("b", 0.5))).status is Status.FAILED


def test_a_judge_that_failed_leaves_the_case_unjudged() -> None:
    failed = Judgement(by="judge-model", failures=("no JSON",))
    found = judged(case(rubric=(item("a"),)), failed)
    assert (found.status, found.score, found.judgements) == (Status.UNJUDGED, None, (failed,))
    assert "no JSON" in found.why
    assert scored(case(rubric=(item("a"),)), said("hello"), JUDGE).status is Status.UNJUDGED


def test_a_failed_check_fails_the_case_also_when_the_judge_failed() -> None:
    found = judged(case(output=HELLO, rubric=(item("a"),)), Judgement(by="j", failures=("x",)), answer="bye")
    assert (found.status, found.score) == (Status.FAILED, 0.0)


@pytest.mark.parametrize("points", [None, float("nan"), 1.5, -0.1, float("inf")])
def test_a_score_that_is_missing_or_off_the_scale_is_no_score(points: float | None) -> None:
    found = judged(case(rubric=(item("a"), item("b"))), judgement(("a", 1.0), ("b", points)))
    assert (found.status, found.score) == (Status.UNJUDGED, None)
    assert "b" in found.why


def test_an_item_that_the_judge_left_to_its_check_is_scored_by_it() -> None:
    tested = case(rubric=(item("a"), item("b", contains="hello")))
    found = judged(tested, judgement(("a", 0.5)))
    assert (found.score, [one.by for one in found.items]) == (0.75, ["judge", "auto_check"])


def test_names_that_are_not_in_the_rubric_and_higher_second_scores_do_not_help() -> None:
    tested = case(rubric=(item("a"),))
    assert judged(tested, judgement(("a", 0.2), ("bonus", 1.0), ("a", 1.0))).score == 0.2
    assert judged(tested, judgement(("bonus", 1.0))).status is Status.UNJUDGED


def test_a_critical_item_of_a_judge_fails_the_case() -> None:
    tested = case(rubric=(item("a", 9), item("b", 1, critical=True)))
    assert judged(tested, judgement(("a", 1.0), ("b", 0.69))).status is Status.FAILED
    assert judged(tested, judgement(("a", 1.0), ("b", 0.7))).status is Status.PASSED


# Commands


def test_a_command_may_score_or_say_it_outright() -> None:
    tested = case(rubric=(item("a", 3), item("b", 1)))
    assert commanded(tested, judgement(("a", 1.0), ("b", 0.0))).score == 0.75
    assert commanded(tested, judgement(passed=True)).score == 1.0
    refused = commanded(tested, judgement(passed=False))
    assert (refused.status, refused.score) == (Status.FAILED, 0.0)
    both = commanded(tested, judgement(("a", 1.0), ("b", 1.0), passed=False))
    assert (both.status, both.score) == (Status.FAILED, 1.0)
    low = commanded(tested, judgement(("a", 0.1), ("b", 0.1), passed=True))
    assert low.status is Status.FAILED
    assert commanded(tested, Judgement(by="cmd", failures=("exit 1",))).status is Status.UNJUDGED


def test_a_command_names_its_own_items_where_there_is_no_rubric() -> None:
    assert commanded(case(), judgement(("speed", 0.8), ("care", 0.9))).score == pytest.approx(0.85)


# Several evaluators


def test_all_evaluators_must_be_content_and_the_lowest_score_counts() -> None:
    tested = case(output=HELLO, rubric=(item("a"),), golden=Golden(path="g", text="hello"))
    found = judged(tested, judgement(("a", 0.8)), RULES, GOLDEN, JUDGE)
    assert (found.status, found.score, found.golden) == (Status.PASSED, 0.8, 1.0)
    assert [(one.id, one.score) for one in found.items] == [("a", 0.8)]
    low = judged(tested, judgement(("a", 0.5)), RULES, GOLDEN, JUDGE)
    assert (low.status, low.score) == (Status.FAILED, 0.5)


def test_one_evaluator_that_fails_for_sure_outweighs_one_that_cannot_say() -> None:
    tested = case(rubric=(item("a"),), golden=TEXT)
    failed = Judgement(by="j", failures=("x",))
    assert judged(tested, failed, GOLDEN, JUDGE, answer="zzz").status is Status.FAILED
    assert judged(tested, failed, GOLDEN, JUDGE, answer=TEXT.text).status is Status.UNJUDGED
