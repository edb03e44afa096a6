"""What each evaluator makes of one answer: a score, whether it is enough, and why not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import fsum

from muster.suites.checks.output import check_output, similarity
from muster.suites.values.case import Case, Evaluator, RubricItem
from muster.suites.values.rules import ScoringRules
from muster.suites.values.verdict import CheckResult, ItemScore, Judgement, Observation
from muster.text.scores import reaches

AUTO_CHECK = "auto_check"
_SHOWN = 5  # items, or failures, that are named in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorOpinion:
    """What one evaluator says; `passed` is None when it cannot say."""

    passed: bool | None
    score: float | None = None
    why: str = ""
    items: tuple[ItemScore, ...] = ()


_CONTENT = EvaluatorOpinion(passed=True, score=1.0)  # made once: most cases come to this


def check_rubric(case: Case, observation: Observation, rules: ScoringRules) -> tuple[tuple[ItemScore, ...], str]:
    """Score the rubric items that have a check of their own; say which of these checks is broken."""
    broken = ""
    items = []
    for item in case.rubric:
        if item.auto_check is None:
            items.append(ItemScore(id=item.id, weight=item.weight, critical=item.critical))
            continue
        result = check_output(item.auto_check, observation, rules)
        items.append(_checked(item, result))
        if result.broken:
            broken = broken or f"the check of {item.id} could not be run: {result.why}"
    return tuple(items), broken


def by_rules(items: tuple[ItemScore, ...], checks: Sequence[CheckResult], threshold: float) -> EvaluatorOpinion:
    """Return the weighted mean of the checked items; without such items the checks alone decide."""
    if not items and checks and reaches(1.0, threshold):
        return _CONTENT
    score = weighted_mean(items)
    if score is None and not checks:
        why = "the case has no output check, no tool check and no rubric item with an auto_check"
        return EvaluatorOpinion(passed=None, why=f"{why}; let a judge decide, or add a check", items=items)
    return _against(threshold, 1.0 if score is None else score, items)


def by_golden(case: Case, observation: Observation, items: tuple[ItemScore, ...]) -> EvaluatorOpinion:
    """Compare the last answer with the golden text, whose own threshold decides."""
    golden = case.golden
    if golden is None:
        return EvaluatorOpinion(passed=None, why="the case has no golden text to compare with", items=items)
    if not observation.answers:
        return EvaluatorOpinion(
            passed=False, score=0.0, why="there is no answer to compare with the golden text", items=items
        )
    score = similarity(observation.text, golden)
    if reaches(score, golden.threshold):
        return EvaluatorOpinion(passed=True, score=score, items=items)
    why = f"the similarity to {golden.path} is {score:.3f}, below {golden.threshold:g}"
    return EvaluatorOpinion(passed=False, score=score, why=why, items=items)


def by_process(
    case: Case, judgement: Judgement | None, items: tuple[ItemScore, ...], threshold: float
) -> EvaluatorOpinion:
    """Return the weighted mean of what a command scored; what it says outright must be true as well."""
    if judgement is None or judgement.failed:
        return EvaluatorOpinion(passed=None, why=_why_failed(judgement, Evaluator.PROCESS), items=items)
    given = _given(case, judgement)
    every = _joined(given, items)
    score = weighted_mean(given)
    if judgement.passed is False:
        return EvaluatorOpinion(
            passed=False, score=score or 0.0, why=f"{judgement.by} reports that it did not pass", items=every
        )
    if score is None and judgement.passed is None:
        why = f"{judgement.by} scored no item of the rubric"
        return EvaluatorOpinion(passed=None, why=why, items=every)
    return _against(threshold, 1.0 if score is None else score, every)


def by_judge(
    case: Case, judgement: Judgement | None, items: tuple[ItemScore, ...], threshold: float
) -> EvaluatorOpinion:
    """Return the weighted mean of what a judge scored, which must be everything that has no check of its own."""
    if judgement is None or judgement.failed:
        return EvaluatorOpinion(passed=None, why=_why_failed(judgement, Evaluator.JUDGE), items=items)
    every = _joined(_given(case, judgement), items)
    missing = [item.id for item in every if item.score is None]
    score = weighted_mean(every)
    if missing or score is None:
        named = ", ".join(missing[:_SHOWN]) or "anything"
        return EvaluatorOpinion(passed=None, why=f"{judgement.by} gave no score for {named}", items=every)
    return _against(threshold, score, every)


def weighted_mean(items: Iterable[ItemScore]) -> float | None:
    """Return the mean of the scores there are, by weight; weights that sum to nothing weigh the same."""
    scored = [(item.weight, item.score) for item in items if item.score is not None]
    if not scored:
        return None
    total = fsum(weight for weight, _ in scored)
    if total <= 0:
        return fsum(score for _, score in scored) / len(scored)
    return fsum(weight * score for weight, score in scored) / total


def _checked(item: RubricItem, result: CheckResult) -> ItemScore:
    return ItemScore(
        id=item.id,
        weight=item.weight,
        critical=item.critical,
        score=None if result.broken else float(result.passed),
        by=AUTO_CHECK,
        rationale=result.why,
    )


def _given(case: Case, judgement: Judgement) -> tuple[ItemScore, ...]:
    """Return the scores of a judgement, weighed as the rubric says; of two for one item the lower counts."""
    rubric = {item.id: item for item in case.rubric}
    found: dict[str, ItemScore] = {}
    for given in judgement.items:
        if rubric and given.id not in rubric:
            continue
        item = _weighed(given, rubric.get(given.id))
        before = found.get(item.id)
        if before is None or item.score is None or (before.score is not None and item.score < before.score):
            found[item.id] = item
    return tuple(found.values())


def _weighed(given: ItemScore, item: RubricItem | None) -> ItemScore:
    # A score that is none, or lies outside of the scale, is as good as not given.
    score = given.score if given.score is not None and 0 <= given.score <= 1 else None
    if item is None:
        return replace(given, score=score)
    return replace(given, score=score, weight=item.weight, critical=item.critical)


def _joined(given: tuple[ItemScore, ...], items: tuple[ItemScore, ...]) -> tuple[ItemScore, ...]:
    """Put what was given in the order of the rubric; what was not given stays as its own check left it."""
    by_id = {item.id: item for item in given}
    known = {item.id for item in items}
    return (*(by_id.get(item.id, item) for item in items), *(item for item in given if item.id not in known))


def _against(threshold: float, score: float, items: tuple[ItemScore, ...]) -> EvaluatorOpinion:
    if reaches(score, threshold):
        return EvaluatorOpinion(passed=True, score=score, items=items)
    low = [f"{item.id} {item.score:.2f}" for item in items if item.score is not None and item.score < 1]
    named = f": {', '.join(low[:_SHOWN])}" if low else ""
    return EvaluatorOpinion(
        passed=False, score=score, why=f"scored {score:.2f}, below the threshold {threshold:g}{named}", items=items
    )


def _why_failed(judgement: Judgement | None, evaluator: Evaluator) -> str:
    if judgement is None:
        return f"the {evaluator.value} evaluator was not asked"
    failures = "; ".join(judgement.failures[:_SHOWN]) or "it returned no usable result"
    return f"{judgement.by or evaluator.value} could not judge it: {failures}"
