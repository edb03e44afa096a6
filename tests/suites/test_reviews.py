"""How far people agree with the verdicts of a run."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.domain.case import Status
from muster.domain.ids import RunId
from muster.domain.review import Opinion, Review
from muster.suites.reviews import agreement_of
from muster.suites.values.case import Evaluator
from muster.suites.values.verdict import CaseResult, ItemScore, Judgement
from tests.suites.reports.suite_store import a_result

JUDGEMENT = Judgement(by="sim/judge", items=(ItemScore(id="kind", score=1.0),))


def judged(case: str, status: Status, **rest: Any) -> CaseResult:
    return a_result(case, status, evaluators=(Evaluator.JUDGE,), judgements=(JUDGEMENT,), **rest)


def said(case: str, opinion: Opinion, by: str = "") -> Review:
    return Review(run=RunId("run1"), case=case, subject="sim/echo", epoch=1, opinion=opinion, at=0.0, by=by)


async def given(*results: CaseResult) -> AsyncIterator[CaseResult]:
    for result in results:
        yield result


async def test_right_is_the_same_verdict_and_wrong_the_opposite() -> None:
    results = [judged(f"pass{n}", Status.PASSED) for n in range(4)] + [
        judged(f"fail{n}", Status.FAILED) for n in range(4)
    ]
    reviews = [said(result.case, Opinion.RIGHT) for result in results[:7]] + [said("fail3", Opinion.WRONG)]
    found = await agreement_of(reviews, given(*results))
    # judge: 4 pass, 4 fail; people: 5 pass, 3 fail; the same in 7 of 8: kappa = (7/8 - 1/2) / (1 - 1/2)
    assert (found.judge.n, found.judge.raw) == (8, 0.875)
    assert found.judge.kappa == pytest.approx(0.75)


async def test_borderline_and_what_has_no_verdict_are_left_out_and_counted() -> None:
    results = [judged("a", Status.PASSED), judged("b", Status.PASSED), judged("c", Status.ERROR)]
    reviews = [
        said("a", Opinion.RIGHT),
        said("b", Opinion.BORDERLINE),
        said("c", Opinion.WRONG),
        said("gone", Opinion.RIGHT),
    ]
    found = await agreement_of(reviews, given(*results))
    assert (found.all.n, found.borderline, found.without_verdict) == (1, 1, 2)
    assert [one.result is not None for one in found.reviews] == [True, True, True, False]


async def test_verdicts_of_checks_say_nothing_about_the_judge() -> None:
    failed = Judgement(by="sim/judge", failures=("no",))
    results = [
        judged("a", Status.PASSED),
        a_result("b", Status.PASSED),
        a_result("c", Status.FAILED, evaluators=(Evaluator.JUDGE,), judgements=(failed,)),
    ]
    found = await agreement_of([said(name, Opinion.RIGHT) for name in "abc"], given(*results))
    assert (found.judge.n, found.all.n) == (1, 3)


async def test_several_people_count_each_for_themselves() -> None:
    reviews = [said("a", Opinion.RIGHT, "ada"), said("a", Opinion.WRONG, "bob")]
    found = await agreement_of(reviews, given(judged("a", Status.PASSED), judged("a", Status.FAILED, epoch=2)))
    assert (found.judge.n, found.judge.raw) == (2, 0.5)


async def test_nothing_said_is_no_agreement() -> None:
    found = await agreement_of([], given(judged("a", Status.PASSED)))
    assert (found.all.n, found.all.raw, found.all.kappa) == (0, None, None)
