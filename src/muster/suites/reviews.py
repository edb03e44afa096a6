"""How far people agree with the verdicts of a run."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from muster.domain.case import Status
from muster.domain.review import Opinion, Review
from muster.statistics.repeats import Agreement, cohen_kappa
from muster.suites.values.case import Evaluator
from muster.suites.values.verdict import CaseResult

__all__ = ["Agreement", "Reviewed", "ReviewedRun", "agreement_of"]

_PASSES = {Status.PASSED: True, Status.FAILED: False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """A review with the verdict that it is about; None: the run does not have that result (any more)."""

    review: Review
    result: CaseResult | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedRun:
    """All reviews of a run, and how far they agree with its verdicts."""

    reviews: tuple[Reviewed, ...]
    judge: Agreement  # with verdicts that a judge had a part in
    all: Agreement  # with every verdict that was passed or failed
    borderline: int  # left out: one can say either
    without_verdict: int  # left out: nobody had said passed or failed


async def agreement_of(reviews: Sequence[Review], results: AsyncIterator[CaseResult]) -> ReviewedRun:
    """Compare what people say with what was said before: who says wrong, says the opposite."""
    wanted = {(review.case, review.subject, review.epoch) for review in reviews}
    found = {key: result async for result in results if (key := (result.case, result.subject, result.epoch)) in wanted}
    reviewed = tuple(
        Reviewed(review=review, result=found.get((review.case, review.subject, review.epoch))) for review in reviews
    )
    left_out = Counter(_left_out(one) for one in reviewed)
    return ReviewedRun(
        reviews=reviewed,
        judge=cohen_kappa(pair for one in reviewed if _is_judged(one) and (pair := _pair(one)) is not None),
        all=cohen_kappa(pair for one in reviewed if (pair := _pair(one)) is not None),
        borderline=left_out["borderline"],
        without_verdict=left_out["without verdict"],
    )


def _pair(one: Reviewed) -> tuple[bool, bool] | None:
    """Return what the verdict says, and what the person says."""
    passes = None if one.result is None else _PASSES.get(one.result.status)
    if passes is None or one.review.opinion is Opinion.BORDERLINE:
        return None
    return passes, passes == (one.review.opinion is Opinion.RIGHT)


def _left_out(one: Reviewed) -> str:
    if _pair(one) is not None:
        return ""
    return "borderline" if one.review.opinion is Opinion.BORDERLINE else "without verdict"


def _is_judged(one: Reviewed) -> bool:
    result = one.result
    heard = result is not None and any(not judgement.failed for judgement in result.judgements)
    return heard and result is not None and Evaluator.JUDGE in result.evaluators
