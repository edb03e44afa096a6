"""Compares two runs of a suite, and says so when the evidence is not enough.

Pass and fail are tested by McNemar's exact test, scores by drawing the signs of paired differences anew; intervals are
paired bootstraps. All of them go by case: epochs of one case are no independent witnesses. The two tests share `alpha`
(Holm), so that with nothing changed a verdict of better or worse comes no more often than that.

With a margin another question is asked: is B worse by more than that? It is not if the one-sided limits of both
differences lie above minus the margin; each is taken at all of alpha, since both must.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import fsum

from muster.statistics.intervals import RESAMPLES, Interval, bootstrap_mean
from muster.statistics.paired_tests import lower_limit, mcnemar_exact, randomization_test
from muster.statistics.sample_size import (
    MOST_CASES,
    MOST_EPOCHS,
    Needed,
    Spread,
    needed_for_change,
    needed_for_margin,
    spread_of,
)
from muster.suites.compare.values import Change, Comparison, ComparisonVerdict, EpochOutcome, PairChange, counted
from muster.suites.verdict import NOT_RUN, Status

Outcomes = Mapping[tuple[str, int], EpochOutcome]

NO_RESULT = frozenset({Status.ERROR, Status.TIMED_OUT, Status.UNJUDGED, Status.SKIPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One epoch of a case in both runs; what has no result did not pass and scores 0."""

    case: str
    epoch: int
    before: EpochOutcome
    after: EpochOutcome | None

    @property
    def hollow(self) -> bool:
        """Return whether there is no result in A."""
        return self.before.status in NO_RESULT

    @property
    def lost(self) -> bool:
        """Return whether there is no result in B."""
        return self.after is None or self.after.status in NO_RESULT

    @property
    def passes(self) -> tuple[bool, bool]:
        """Return whether it passed in A, and in B."""
        return _passed(self.before), _passed(self.after)

    @property
    def change(self) -> PairChange:
        """Whether B is worse or better than A here; only passing counts."""
        before, after = self.passes
        if before == after:
            return PairChange.SAME
        return PairChange.WORSE if before else PairChange.BETTER

    @property
    def reason(self) -> str:
        """How it ended in A and in B, or where a result is missing."""
        if self.after is None:
            return "missing in B"
        if self.lost:
            return f"no result in B: {_word(self.after.status)}"
        if self.hollow:
            return f"no result in A: {_word(self.before.status)}"
        return f"{_word(self.before.status)} in A, {_word(self.after.status)} in B"

    @property
    def scores(self) -> tuple[float, float]:
        """The scores in A and in B."""
        return _score(self.before), _score(self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """All pairs, and what cannot be paired."""

    pairs: tuple[Pair, ...]
    new: tuple[tuple[str, int], ...]
    left_out: int


def pair_up(a: Outcomes, b: Outcomes) -> Pairing:
    """Pair two runs. What A skipped is no part of the comparison; what only A has is lost in B.

    When B was run with fewer epochs, those that it has of no case at all are left out rather than lost.
    """
    epochs = max((epoch for _, epoch in b), default=None)
    asked = {key: outcome for key, outcome in a.items() if outcome.status not in NOT_RUN}
    kept = {key: outcome for key, outcome in asked.items() if epochs is None or key[1] <= epochs}
    pairs = (
        Pair(case=case, epoch=epoch, before=kept[case, epoch], after=b.get((case, epoch)))
        for case, epoch in sorted(kept)
    )
    new = sorted(key for key, outcome in b.items() if key not in asked and outcome.status not in NOT_RUN)
    return Pairing(pairs=tuple(pairs), new=tuple(new), left_out=len(asked) - len(kept))


def change_of(pair: Pair) -> Change:
    """Describe a pair whose two sides differ."""
    after = pair.after
    return Change(
        case=pair.case,
        epoch=pair.epoch,
        before=pair.before.status,
        after=None if after is None else after.status,
        before_score=pair.before.score,
        after_score=None if after is None else after.score,
        reason=pair.reason,
    )


def _word(status: Status) -> str:
    return status.value.replace("_", " ")


def _passed(outcome: EpochOutcome | None) -> bool:
    return outcome is not None and outcome.status is Status.PASSED


def _score(outcome: EpochOutcome | None) -> float:
    if outcome is None or outcome.status in NO_RESULT:
        return 0.0
    return float(outcome.status is Status.PASSED) if outcome.score is None else outcome.score


THRESHOLD = 0.05
ALPHA = 0.05
_LEAST_P = 0.001  # below it the exact number says nothing more
FEWEST = 5  # pairs that can show that two runs are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    threshold: float
    alpha: float
    margin: float | None
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
    regressed: int  # pairs that passed in A only
    improved: int  # in B only
    pass_p: float
    score_p: float
    spreads: tuple[Spread, Spread]  # of pass rate and score
    limits: tuple[float, float] | None  # the least that the differences of pass rate and score are; None: no margin

    @property
    def pass_difference(self) -> float:
        return self.passes[1] - self.passes[0]

    @property
    def score_difference(self) -> float:
        return self.scores[1] - self.scores[0]

    @property
    def repeated(self) -> bool:
        return self.pairs > self.cases


def compare(
    a: Outcomes,
    b: Outcomes,
    *,
    threshold: float = THRESHOLD,
    alpha: float = ALPHA,
    margin: float | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Return whether B is better or worse than A, the same or not worse by a margin, or undecided."""
    terms = _Terms(threshold=threshold, alpha=alpha, margin=margin, resamples=resamples, seed=seed)
    pairing = pair_up(a, b)
    if not pairing.pairs:
        why = "A and B have no case in common that was run in A"
        return Comparison(
            verdict=ComparisonVerdict.UNSURE, why=why, threshold=threshold, alpha=alpha, margin=margin, new=pairing.new
        )
    evidence = _weigh(pairing.pairs, terms)
    verdict, why, needed = _decide(pairing.pairs, evidence, terms)
    return _comparison(verdict, why, needed, evidence, pairing, terms)


def _weigh(pairs: Sequence[Pair], terms: _Terms) -> _Evidence:
    by_case = [list(group) for _, group in groupby(pairs, key=lambda pair: pair.case)]
    nets = [sum(after - before for before, after in (pair.passes for pair in case)) for case in by_case]
    passes = [_means([pair.passes for pair in case]) for case in by_case]
    scores = [_means([pair.scores for pair in case]) for case in by_case]
    passed = [after - before for before, after in passes]
    moved = [after - before for before, after in scores]
    worse, better = sum(net < 0 for net in nets), sum(net > 0 for net in nets)
    return _Evidence(
        cases=len(by_case),
        pairs=len(pairs),
        b=worse,
        c=better,
        passes=_means(passes),
        scores=_means(scores),
        pass_interval=_interval(passed, terms),
        score_interval=_interval(moved, terms),
        regressed=sum(pair.passes == (True, False) for pair in pairs),
        improved=sum(pair.passes == (False, True) for pair in pairs),
        pass_p=mcnemar_exact(worse, better),
        score_p=randomization_test(moved, resamples=terms.resamples, seed=terms.seed),
        spreads=(
            spread_of([[after - before for before, after in (pair.passes for pair in case)] for case in by_case]),
            spread_of([[after - before for before, after in (pair.scores for pair in case)] for case in by_case]),
        ),
        limits=None if terms.margin is None else (_limit(passed, terms), _limit(moved, terms)),
    )


def _means(sides: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return fsum(before for before, _ in sides) / len(sides), fsum(after for _, after in sides) / len(sides)


def _interval(differences: Sequence[float], terms: _Terms) -> Interval | None:
    return bootstrap_mean(differences, confidence=1 - terms.alpha, resamples=terms.resamples, seed=terms.seed)


def _limit(differences: Sequence[float], terms: _Terms) -> float:
    return lower_limit(differences, alpha=terms.alpha, resamples=terms.resamples, seed=terms.seed)


def _decide(pairs: Sequence[Pair], evidence: _Evidence, terms: _Terms) -> tuple[ComparisonVerdict, str, Needed | None]:
    """Take the verdict of the numbers, unless too little stands behind it."""
    if all(pair.lost for pair in pairs):
        return ComparisonVerdict.WORSE, "B has no result for any case", None
    verdict, why = _verdict(evidence, terms)
    if verdict is ComparisonVerdict.UNSURE:
        needed = _needed(evidence, terms)
        return verdict, why + (f"; {_more(needed)}" if needed else ""), needed
    if verdict is ComparisonVerdict.WORSE:
        return verdict, why, None
    lost = sum(pair.lost and pair.passes[0] for pair in pairs)
    if lost:
        told = f"{counted(lost, repeated=evidence.repeated)} that passed in A have no result in B"
        return ComparisonVerdict.UNSURE, f"{told}, so it is not called {verdict.value}", None
    solid = [pair for pair in pairs if not pair.hollow]
    if len(solid) < len(pairs) and not (solid and _verdict(_weigh(solid, terms), terms)[0] is verdict):
        why = f"without the cases that had no result in A, the evidence that B is {verdict.value} is too weak"
        return ComparisonVerdict.UNSURE, why, None
    return verdict, why, None


def _verdict(evidence: _Evidence, terms: _Terms) -> tuple[ComparisonVerdict, str]:
    """Take the verdict of the tests; with a margin it is only good if the limits lie within it."""
    verdict, why = _by_numbers(evidence, terms)
    if terms.margin is None or evidence.limits is None:
        return verdict, why
    least = min(evidence.limits)
    sure = f"{100 * (1 - terms.alpha):.4g} % sure"
    if least > -terms.margin:
        if verdict is ComparisonVerdict.BETTER:
            return verdict, why
        return (
            ComparisonVerdict.NOT_WORSE,
            f"worse by {max(0.0, -least):.3f} at most ({sure}), and the margin is {terms.margin:g}",
        )
    if verdict is ComparisonVerdict.WORSE:
        return verdict, why
    return (
        ComparisonVerdict.UNSURE,
        f"B may be worse by {-least:.3f} ({sure}), which is more than the margin of {terms.margin:g}",
    )


def _needed(evidence: _Evidence, terms: _Terms) -> Needed | None:
    """Return what would decide, unless pass rate and score contradict each other."""
    if evidence.pass_difference * evidence.score_difference < 0 and terms.margin is None:
        return None
    if terms.margin is not None:
        return needed_for_margin(evidence.spreads, terms.margin, terms.alpha)
    found = needed_for_change(evidence.spreads, terms.threshold, terms.alpha)
    if found.more_cases is None or evidence.cases + found.more_cases >= FEWEST:
        return found
    return replace(found, more_cases=FEWEST - evidence.cases)


def _more(needed: Needed) -> str:
    """Return how many more cases or epochs would decide."""
    parts = [] if needed.more_cases is None else [f"about {needed.more_cases:,} more cases"]
    parts += [] if needed.more_epochs is None else [f"about {needed.more_epochs:,} more epochs of each case"]
    if not parts:
        return f"even {MOST_CASES:,} cases would not decide a difference like this one"
    return f"{' or '.join(parts)} would probably decide{_epochs(needed)}"


def _epochs(needed: Needed) -> str:
    """Return why no number of epochs is named, if none is."""
    if not needed.epochs_known:
        return " (with --epochs 2 it also says how many epochs would)"
    if needed.more_epochs is not None:
        return ""
    if needed.epochs_decide:
        return f"; with the same cases it would take more than {MOST_EPOCHS} epochs"
    return "; more epochs of the same cases alone would not, however many"


def _by_numbers(evidence: _Evidence, terms: _Terms) -> tuple[ComparisonVerdict, str]:
    by_passing, by_score = _significant(evidence, terms)
    if by_score and not by_passing and abs(evidence.score_difference) < terms.threshold:
        by_score = False  # sure, and too small to matter
        if not (evidence.b or evidence.c) and evidence.pairs >= FEWEST:
            return ComparisonVerdict.SAME, f"scores differ by less than {terms.threshold:g}, and no case changed sides"
    if by_passing or by_score:
        return _direction(evidence, by_passing)
    if _alike(evidence, terms.threshold):
        return ComparisonVerdict.SAME, f"pass rate and score differ by less than {terms.threshold:g}"
    if evidence.pairs < FEWEST:
        few = "is" if evidence.pairs == 1 else "are"
        return ComparisonVerdict.UNSURE, f"{_all(evidence)} {few} too few to tell; it takes {FEWEST} at least"
    once = ", each case counted once" if evidence.repeated else ""
    told = f"{evidence.regressed:,} regressed and {evidence.improved:,} improved"
    return (
        ComparisonVerdict.UNSURE,
        f"of {_all(evidence)} {told}, which may be chance (p = {evidence.pass_p:.3g}{once})",
    )


def _all(evidence: _Evidence) -> str:
    return counted(evidence.pairs, repeated=evidence.repeated)


def _significant(evidence: _Evidence, terms: _Terms) -> tuple[bool, bool]:
    """Return which of the two tests is significant: that with the lower p at half of alpha, the other at alpha."""
    first = min(evidence.pass_p, evidence.score_p) <= terms.alpha / 2
    by_passing = first and evidence.pass_p <= terms.alpha
    by_score = first and evidence.score_p <= terms.alpha
    interval = evidence.score_interval
    return by_passing, by_score and interval is not None and not interval.holds(0)


def _direction(evidence: _Evidence, by_passing: bool) -> tuple[ComparisonVerdict, str]:
    """Follow the tests; when pass rate and score point in different directions the result is undecided."""
    passing, scoring = evidence.pass_difference, evidence.score_difference
    if passing * scoring < 0 or (by_passing and (evidence.c - evidence.b) * passing < 0):
        return ComparisonVerdict.UNSURE, "pass rate and score moved in different directions"
    verdict = ComparisonVerdict.BETTER if passing + scoring > 0 else ComparisonVerdict.WORSE
    what = f"pass rate {100 * passing:+.1f} points" if by_passing else f"score {scoring:+.3f}"
    p = evidence.pass_p if by_passing else evidence.score_p
    return verdict, f"{what}, which is hardly chance ({f'p = {p:.2g}' if p >= _LEAST_P else f'p < {_LEAST_P}'})"


def _alike(evidence: _Evidence, threshold: float) -> bool:
    intervals = (evidence.pass_interval, evidence.score_interval)
    return evidence.pairs >= FEWEST and all(one is not None and one.within(threshold) for one in intervals)


def _comparison(
    verdict: ComparisonVerdict, why: str, needed: Needed | None, evidence: _Evidence, pairing: Pairing, terms: _Terms
) -> Comparison:
    pass_at_least, score_at_least = evidence.limits or (None, None)
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
        regressions=tuple(change_of(pair) for pair in pairing.pairs if pair.change is PairChange.WORSE),
        improvements=tuple(change_of(pair) for pair in pairing.pairs if pair.change is PairChange.BETTER),
        no_result=sum(pair.lost for pair in pairing.pairs),
        new=pairing.new,
        left_out=pairing.left_out,
        compared=sum(not (pair.lost or pair.hollow) for pair in pairing.pairs),
        margin=terms.margin,
        pass_at_least=pass_at_least,
        score_at_least=score_at_least,
        needed=needed,
    )
