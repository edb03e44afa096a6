"""One judgement out of several samples: means, how far they agree, and what it cost. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum

from muster.checks.opinions import weighted_mean
from muster.checks.thresholds import reaches
from muster.domain.case import RubricItem
from muster.domain.money import NOTHING, Microdollars
from muster.domain.verdict import ItemScore, Judgement
from muster.judges.question import VERSION
from muster.judges.reading import Verdict

BY = "judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one sample came to: verdicts in the order of the rubric, or why there are none."""

    verdicts: tuple[Verdict, ...] = ()
    failure: str = ""
    model: str = ""
    cost: Microdollars = NOTHING
    keys: tuple[str, ...] = ()


def combine(judge: str, rubric: tuple[RubricItem, ...], samples: Sequence[Sample], threshold: float) -> Judgement:
    """Give the judgement of all samples; it counts only when more than half of them are good."""
    good = [sample for sample in samples if sample.verdicts]
    enough = 2 * len(good) > len(samples)
    return Judgement(
        by=judge,
        version=VERSION,
        model=next((sample.model for sample in good or samples if sample.model), ""),
        items=_items(rubric, good) if enough else (),
        samples=len(samples),
        failures=tuple(
            f"sample {number}: {sample.failure}" for number, sample in enumerate(samples, 1) if not sample.verdicts
        ),
        agreement=_agreement(rubric, good, threshold) if enough else None,
        cost=Microdollars(sum(sample.cost for sample in samples)),
        keys=tuple(key for sample in samples for key in sample.keys),
    )


def _items(rubric: tuple[RubricItem, ...], good: Sequence[Sample]) -> tuple[ItemScore, ...]:
    return tuple(_item(item, [sample.verdicts[place] for sample in good]) for place, item in enumerate(rubric))


def _item(item: RubricItem, verdicts: Sequence[Verdict]) -> ItemScore:
    mean = fsum(verdict.score for verdict in verdicts) / len(verdicts)
    nearest = min(verdicts, key=lambda verdict: abs(verdict.score - mean))
    return ItemScore(
        id=item.id,
        weight=item.weight,
        critical=item.critical,
        score=mean,
        by=BY,
        rationale=nearest.rationale,
        evidence=nearest.evidence,
        quoted=nearest.quoted,
        samples=tuple(verdict.score for verdict in verdicts),
    )


def _agreement(rubric: tuple[RubricItem, ...], good: Sequence[Sample], threshold: float) -> float | None:
    """Give the share of pairs of samples that agree on whether the answer passes."""
    passing = [_passes(rubric, sample, threshold) for sample in good]
    pairs = [one == other for one, other in combinations(passing, 2)]
    return sum(pairs) / len(pairs) if pairs else None


def _passes(rubric: tuple[RubricItem, ...], sample: Sample, threshold: float) -> bool:
    items = _items(rubric, [sample])
    score = weighted_mean(items)
    return score is not None and reaches(score, threshold)
