"""Thresholds and weights with which a case passes whatever the answer is; they are valid, and told."""

from collections.abc import Iterator

from muster.domain.case import DEFAULT_THRESHOLD
from muster.formats.forms import CaseForm, CheckForm, EvaluatorForm, RubricForm
from muster.formats.tree import Place

DOMINANT = 0.9  # share of the weights; 0.7 and 0.3 are common, and meant
NOTHING = 1e-9  # a score reaches a threshold that is higher by this, so that such a share does not count

Finding = tuple[Place, str, str]  # where, its code, what

_CONFIG = "evaluator_config"


def lenient(form: CaseForm) -> Iterator[Finding]:
    """Return the thresholds and weights of a case that let a failing answer pass."""
    yield from lenient_thresholds(form)
    yield from _lenient_weights(form)


def lenient_thresholds(form: CaseForm) -> Iterator[Finding]:
    """Return the thresholds of a case that let a failing answer pass; these can be told of a part of a case too."""
    config = form.evaluator_config
    thresholds = (
        (("threshold",), form.threshold),
        ((_CONFIG, "effectiveness_threshold"), config.effectiveness_threshold),
    )
    for place, threshold in thresholds:
        if threshold is not None and threshold <= NOTHING:
            yield place, "zero-threshold", "with a threshold of 0 the case passes whatever it scores"
    yield from _lenient_golden(config, (_CONFIG,))
    for index, check in enumerate(form.expected.output):
        yield from _lenient_golden(check, ("expected", "output", index))
    for index, item in enumerate(form.expected.rubric):
        if item.auto_check is not None:
            yield from _lenient_golden(item.auto_check, ("expected", "rubric", index, "auto_check"))


def _lenient_golden(form: CheckForm | EvaluatorForm, place: Place) -> Iterator[Finding]:
    if form.golden_threshold is not None and form.golden_threshold <= NOTHING:
        message = "with a golden_threshold of 0 every answer is like enough"
        yield (*place, "golden_threshold"), "zero-threshold", message


def _lenient_weights(form: CaseForm) -> Iterator[Finding]:
    rubric = form.expected.rubric
    total = sum(item.weight for item in rubric)
    if total <= 0:  # which is refused
        return
    for index, item in enumerate(rubric):
        place: Place = ("expected", "rubric", index, "weight")
        if item.weight / total <= NOTHING and not item.critical:
            yield place, "weightless-item", f"{item.id} weighs nothing: the case passes also when it fails"
        if _dominates(item, rubric, _threshold(form)):
            what = f"{item.id} weighs so much that the case passes also when every other item fails"
            yield place, "dominant-item", what


def _threshold(form: CaseForm) -> float:
    own = form.evaluator_config.effectiveness_threshold if form.threshold is None else form.threshold
    return DEFAULT_THRESHOLD if own is None else own


def _dominates(item: RubricForm, rubric: list[RubricForm], threshold: float) -> bool:
    """Return whether an item alone reaches the threshold by far; a threshold of 0 is told by itself."""
    others = [other for other in rubric if other is not item]
    weight = sum(other.weight for other in others)
    if threshold <= NOTHING or weight <= 0 or any(other.critical for other in others):
        return False
    return item.weight / (item.weight + weight) >= max(threshold, DOMINANT) - NOTHING
