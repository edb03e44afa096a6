"""Compares two runs of a suite, and says so when the evidence is not enough.

Pass and fail are tested by McNemar's exact test, scores by drawing the signs of paired differences anew; intervals are
paired bootstraps. All of them go by case: epochs of one case are no independent witnesses. The two tests share `alpha`
(Holm), so that with nothing changed a verdict of better or worse comes no more often than that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import fsum

from muster.checks.bootstrap import RESAMPLES, bootstrap_mean
from muster.checks.comparison import Comparison, Verdict
from muster.checks.interval import Interval
from muster.checks.mcnemar import mcnemar_exact
from muster.checks.pairing import Outcomes, Pair, Pairing, change_of, pair_up
from muster.checks.randomization import randomization_test

THRESHOLD = 0.05
ALPHA = 0.05
FEWEST = 5  # pairs that can show that two runs are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    threshold: float
    alpha: float
    resamples: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """The numbers of a set of pairs; a list holds one number for each case."""

    cases: int
    pairs: int
    b: int
    c: int
    passes: tuple[float, float]  # rates in A and B
    scores: tuple[float, float]
    pass_interval: Interval | None
    score_interval: Interval | None
    pass_p: float
    score_p: float

    @property
    def pass_difference(self) -> float:
        return self.passes[1] - self.passes[0]

    @property
    def score_difference(self) -> float:
        return self.scores[1] - self.scores[0]


def compare(
    a: Outcomes,
    b: Outcomes,
    *,
    threshold: float = THRESHOLD,
    alpha: float = ALPHA,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Say whether B is better or worse than A, or the same, or that nobody can tell."""
    terms = _Terms(threshold=threshold, alpha=alpha, resamples=resamples, seed=seed)
    pairing = pair_up(a, b)
    if not pairing.pairs:
        why = "A and B have no case in common that was run in A"
        return Comparison(verdict=Verdict.UNSURE, why=why, threshold=threshold, alpha=alpha, new=pairing.new)
    evidence = _weigh(pairing.pairs, terms)
    verdict, why = _decide(pairing.pairs, evidence, terms)
    return _comparison(verdict, why, evidence, pairing, terms)


def _weigh(pairs: Sequence[Pair], terms: _Terms) -> _Evidence:
    by_case = [list(group) for _, group in groupby(pairs, key=lambda pair: pair.case)]
    nets = [sum(after - before for before, after in (pair.passes for pair in case)) for case in by_case]
    passes = [_means([pair.passes for pair in case]) for case in by_case]
    scores = [_means([pair.scores for pair in case]) for case in by_case]
    moved = [after - before for before, after in scores]
    worse, better = sum(net < 0 for net in nets), sum(net > 0 for net in nets)
    return _Evidence(
        cases=len(by_case),
        pairs=len(pairs),
        b=worse,
        c=better,
        passes=_means(passes),
        scores=_means(scores),
        pass_interval=_interval([after - before for before, after in passes], terms),
        score_interval=_interval(moved, terms),
        pass_p=mcnemar_exact(worse, better),
        score_p=randomization_test(moved, resamples=terms.resamples, seed=terms.seed),
    )


def _means(sides: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return fsum(before for before, _ in sides) / len(sides), fsum(after for _, after in sides) / len(sides)


def _interval(differences: Sequence[float], terms: _Terms) -> Interval | None:
    return bootstrap_mean(differences, confidence=1 - terms.alpha, resamples=terms.resamples, seed=terms.seed)


def _decide(pairs: Sequence[Pair], evidence: _Evidence, terms: _Terms) -> tuple[Verdict, str]:
    """Take the verdict of the numbers, unless too little stands behind it."""
    if all(pair.lost for pair in pairs):
        return Verdict.WORSE, "B has no result for any case"
    verdict, why = _by_numbers(evidence, terms)
    if verdict not in (Verdict.BETTER, Verdict.SAME):
        return verdict, why
    lost = sum(pair.lost and pair.passes[0] for pair in pairs)
    if lost:
        return Verdict.UNSURE, f"{lost} that passed in A have no result in B, so it is not called {verdict.value}"
    solid = [pair for pair in pairs if not pair.hollow]
    if len(solid) < len(pairs) and not (solid and _by_numbers(_weigh(solid, terms), terms)[0] is verdict):
        return Verdict.UNSURE, f"without the cases that had no result in A, too little shows that B is {verdict.value}"
    return verdict, why


def _by_numbers(evidence: _Evidence, terms: _Terms) -> tuple[Verdict, str]:
    by_passing, by_score = _significant(evidence, terms)
    if by_score and not by_passing and abs(evidence.score_difference) < terms.threshold:
        by_score = False  # sure, and too small to matter
        if not (evidence.b or evidence.c) and evidence.pairs >= FEWEST:
            return Verdict.SAME, f"scores differ by less than {terms.threshold:g}, and no case changed sides"
    if by_passing or by_score:
        return _direction(evidence, by_passing)
    if _alike(evidence, terms.threshold):
        return Verdict.SAME, f"pass rate and score differ by less than {terms.threshold:g}"
    if evidence.pairs < FEWEST:
        return Verdict.UNSURE, f"{_cases(evidence.cases)} are too few to tell; it takes {FEWEST} at least"
    told = f"{evidence.b} regressed and {evidence.c} improved, which may be chance (p = {evidence.pass_p:.3g})"
    return Verdict.UNSURE, f"of {_cases(evidence.cases)} {told}"


def _cases(number: int) -> str:
    return f"{number} case" if number == 1 else f"{number} cases"


def _significant(evidence: _Evidence, terms: _Terms) -> tuple[bool, bool]:
    """Say which of the two tests sees a difference: the surer one at half of alpha, the other then at all of it."""
    first = min(evidence.pass_p, evidence.score_p) <= terms.alpha / 2
    by_passing = first and evidence.pass_p <= terms.alpha
    by_score = first and evidence.score_p <= terms.alpha
    interval = evidence.score_interval
    return by_passing, by_score and interval is not None and not interval.holds(0)


def _direction(evidence: _Evidence, by_passing: bool) -> tuple[Verdict, str]:
    """Go where the tests point; when pass rate and score point to different sides nobody can tell."""
    passing, scoring = evidence.pass_difference, evidence.score_difference
    if passing * scoring < 0 or (by_passing and (evidence.c - evidence.b) * passing < 0):
        return Verdict.UNSURE, "pass rate and score moved in different directions"
    verdict = Verdict.BETTER if passing + scoring > 0 else Verdict.WORSE
    what = f"pass rate {passing:+.3f}" if by_passing else f"score {scoring:+.3f}"
    p = evidence.pass_p if by_passing else evidence.score_p
    return verdict, f"{what}, which is hardly chance (p = {p:.2g})"


def _alike(evidence: _Evidence, threshold: float) -> bool:
    intervals = (evidence.pass_interval, evidence.score_interval)
    return evidence.pairs >= FEWEST and all(one is not None and one.within(threshold) for one in intervals)


def _comparison(verdict: Verdict, why: str, evidence: _Evidence, pairing: Pairing, terms: _Terms) -> Comparison:
    changed = [(pair, pair.passes) for pair in pairing.pairs]
    return Comparison(
        verdict=verdict,
        why=why,
        threshold=terms.threshold,
        alpha=terms.alpha,
        cases=evidence.cases,
        pairs=evidence.pairs,
        b=evidence.b,
        c=evidence.c,
        pass_p=evidence.pass_p,
        pass_before=evidence.passes[0],
        pass_after=evidence.passes[1],
        pass_difference=evidence.pass_difference,
        pass_interval=evidence.pass_interval,
        score_p=evidence.score_p,
        score_before=evidence.scores[0],
        score_after=evidence.scores[1],
        score_difference=evidence.score_difference,
        score_interval=evidence.score_interval,
        regressions=tuple(change_of(pair) for pair, passes in changed if passes == (True, False)),
        improvements=tuple(change_of(pair) for pair, passes in changed if passes == (False, True)),
        no_result=sum(pair.lost for pair in pairing.pairs),
        new=pairing.new,
        left_out=pairing.left_out,
    )
