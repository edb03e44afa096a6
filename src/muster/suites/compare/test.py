"""Compares two runs of a suite, and says so when the result is inconclusive.

Pass and fail are tested by McNemar's exact test, scores by drawing the signs of paired differences anew; intervals are
paired bootstraps. All of them go by case: epochs of one case are no independent witnesses. With nothing changed a
verdict of better or worse comes no more often than `alpha` (`significance`). An inconclusive result comes with its
power: how often such runs would have noticed a drop (`notice`).

With a margin another question is asked: is B worse by more than that? It is not if the one-sided limits of both
differences lie above minus the margin; each is taken at all of alpha, since both must.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import fsum

from muster.domain.money import show_usd
from muster.statistics.intervals import RESAMPLES, Interval, bootstrap_mean
from muster.statistics.paired_tests import lower_limit, mcnemar_exact, randomization_test
from muster.statistics.sample_size import (
    MAX_CASES,
    MAX_EPOCHS,
    Needed,
    Spread,
    needed_for_change,
    needed_for_margin,
    spread_of,
)
from muster.suites.compare.notice import NoticeTerms, notice
from muster.suites.compare.pairing import Outcomes, Pair, Pairing, change_of, pair_up
from muster.suites.compare.significance import Numbers, contradictory, counting, significant
from muster.suites.compare.values import Comparison, ComparisonVerdict, Noticing, PairChange, counted, has

THRESHOLD = 0.05
ALPHA = 0.05
NOTICE = 0.20  # the drop of the pass rate that runs should be able to notice
_MIN_P = 0.001  # below it the exact number says nothing more
MIN_PAIRS = 5  # pairs that can show that two runs are the same


@dataclass(frozen=True, slots=True, kw_only=True)
class _Terms:
    threshold: float
    alpha: float
    margin: float | None
    drop: float | None
    resamples: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """The numbers of a set of pairs."""

    by_case: tuple[tuple[Pair, ...], ...]
    pairs: int
    numbers: Numbers
    passes: tuple[float, float]  # rates in A and B
    scores: tuple[float, float]
    pass_interval: Interval | None
    score_interval: Interval | None
    regressed: int  # pairs that passed in A only
    improved: int  # in B only
    spreads: tuple[Spread, Spread]  # of pass rate and score
    limits: tuple[float, float] | None  # the least that the differences of pass rate and score are; None: no margin

    @property
    def cases(self) -> int:
        return len(self.by_case)

    @property
    def repeated(self) -> bool:
        return self.pairs > self.cases

    @property
    def tests(self) -> int:
        """Return how many tests share alpha."""
        return 1 if self.numbers.one_number else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    """A verdict, and what is said of it."""

    verdict: ComparisonVerdict
    why: str
    contradictory: bool = False
    needed: Needed | None = None
    noticing: Noticing | None = None


def compare(
    a: Outcomes,
    b: Outcomes,
    *,
    threshold: float = THRESHOLD,
    alpha: float = ALPHA,
    margin: float | None = None,
    drop: float | None = None,
    left_out: str = "",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparison:
    """Return whether B is better or worse than A, the same or not worse by a margin, or undecided.

    If it is undecided and a drop is given, also how often runs like these would notice such a drop of the pass rate.
    `left_out` says why A lacks cases that B has, unless they are new: then nothing good is said of B.
    """
    terms = _Terms(threshold=threshold, alpha=alpha, margin=margin, drop=drop, resamples=resamples, seed=seed)
    pairing = pair_up(a, b)
    if not pairing.pairs:
        why = "A and B have no case in common that was run in A"
        return Comparison(
            verdict=ComparisonVerdict.UNSURE,
            why=_with_new(_unsure(why), pairing).why,
            threshold=threshold,
            alpha=alpha,
            margin=margin,
            new=pairing.new,
            new_failed=len(pairing.new_failed),
        )
    evidence = _weigh(pairing.pairs, terms)
    decision = _with_gaps(_decide(pairing.pairs, evidence, terms), pairing.pairs, evidence, terms)
    if left_out and pairing.new and decision.verdict not in (ComparisonVerdict.WORSE, ComparisonVerdict.UNSURE):
        missing = counted(len(pairing.new), repeated=any(epoch > 1 for _, epoch in pairing.new))
        told = f"{missing} of B {has(len(pairing.new))} no result in A, since {left_out}"
        decision = _unsure(f"{told}, so it is not called {decision.verdict}")
    return _comparison(_with_new(decision, pairing), evidence, pairing, terms)


def _with_gaps(found: _Decision, pairs: Sequence[Pair], evidence: _Evidence, terms: _Terms) -> _Decision:
    """Return a good verdict with what it does not rest on: pairs without a result, and passing if nothing passed."""
    if found.verdict in (ComparisonVerdict.WORSE, ComparisonVerdict.UNSURE):
        return found
    parts = [found.why]
    missing = sum(pair.lost or pair.hollow for pair in pairs)
    parts += [f"no result in A or in B: {counted(missing, repeated=evidence.repeated)}"] if missing else []
    noticing = None if any(map(any, (pair.passes for pair in pairs))) else _noticing(evidence, terms)
    if noticing is not None:
        parts.append(f"nothing passed in A or in B: {noticing.words}")
    return replace(found, why="; ".join(parts), noticing=noticing)


def _with_new(found: _Decision, pairing: Pairing) -> _Decision:
    """Return a decision with the cases that only B has and that did not pass: no comparison is about them."""
    failed = len(pairing.new_failed)
    if not failed:
        return found
    repeated = any(epoch > 1 for _, epoch in pairing.new)
    told = f"of {counted(len(pairing.new), repeated=repeated)} that only B has, {failed:,} did not pass"
    return replace(found, why=f"{found.why}; {told}")


def _weigh(pairs: Sequence[Pair], terms: _Terms) -> _Evidence:
    by_case = tuple(tuple(group) for _, group in groupby(pairs, key=lambda pair: pair.case))
    nets = [sum(after - before for before, after in (pair.passes for pair in case)) for case in by_case]
    passes = [_means([pair.passes for pair in case]) for case in by_case]
    scores = [_means([pair.scores for pair in case]) for case in by_case]
    passed = [after - before for before, after in passes]
    moved = [after - before for before, after in scores]
    worse, better = sum(net < 0 for net in nets), sum(net > 0 for net in nets)
    pass_rates, mean_scores = _means(passes), _means(scores)
    numbers = Numbers(
        worse=worse,
        better=better,
        pass_difference=pass_rates[1] - pass_rates[0],
        score_difference=mean_scores[1] - mean_scores[0],
        pass_p=mcnemar_exact(worse, better),
        score_p=randomization_test(moved, resamples=terms.resamples, seed=terms.seed),
        one_number=all(pair.one_number for pair in pairs),
        repeated=len(pairs) > len(by_case),
    )
    return _Evidence(
        by_case=by_case,
        pairs=len(pairs),
        numbers=numbers,
        passes=pass_rates,
        scores=mean_scores,
        pass_interval=_interval(passed, terms),
        score_interval=_interval(moved, terms),
        regressed=sum(pair.passes == (True, False) for pair in pairs),
        improved=sum(pair.passes == (False, True) for pair in pairs),
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


def _decide(pairs: Sequence[Pair], evidence: _Evidence, terms: _Terms) -> _Decision:
    """Take the verdict of the numbers, unless too little stands behind it."""
    if all(pair.lost for pair in pairs):
        return _Decision(verdict=ComparisonVerdict.WORSE, why="B has no result for any case")
    found = _verdict(evidence, terms)
    if found.verdict is ComparisonVerdict.UNSURE:
        return _with_power(found, pairs, evidence, terms)
    if found.verdict is ComparisonVerdict.WORSE:
        return found
    lost = sum(pair.lost and pair.passes[0] for pair in pairs)
    if lost:
        told = f"{counted(lost, repeated=evidence.repeated)} that passed in A {has(lost)} no result in B"
        return _unsure(f"{told}, so it is not called {found.verdict}")
    solid = [pair for pair in pairs if not pair.hollow]
    if len(solid) < len(pairs) and not (solid and _verdict(_weigh(solid, terms), terms).verdict is found.verdict):
        return _unsure(f"without the cases that had no result in A, the evidence that B is {found.verdict} is too weak")
    return found


def _unsure(why: str) -> _Decision:
    return _Decision(verdict=ComparisonVerdict.UNSURE, why=why)


def _with_power(found: _Decision, pairs: Sequence[Pair], evidence: _Evidence, terms: _Terms) -> _Decision:
    """Return an undecided result with its power, and with what would decide or be enough."""
    needed = None if found.contradictory else _needed(evidence, terms)
    noticing = _noticing(evidence, terms)
    missing = sum(pair.lost or pair.hollow for pair in pairs)
    parts = [found.why]
    parts += [f"no result in A or in B: {counted(missing, repeated=evidence.repeated)}"] if missing else []
    parts += [] if noticing is None else [f"with {_all(evidence)} {noticing.words}"]
    if noticing is not None and not noticing.enough and terms.margin is None:
        parts.append(_enough(noticing, evidence))
    elif needed is not None:
        parts.append(_more(needed))
    return replace(found, why="; ".join(filter(None, parts)), needed=needed, noticing=noticing)


def _noticing(evidence: _Evidence, terms: _Terms) -> Noticing | None:
    if terms.drop is None:
        return None
    wanted = NoticeTerms(drop=terms.drop, alpha=terms.alpha, threshold=terms.threshold)
    return notice(evidence.by_case, evidence.spreads[0], wanted)


def _enough(noticing: Noticing, evidence: _Evidence) -> str:
    """Return what would be enough to notice the drop, and what it would cost."""
    parts = []
    if noticing.more_cases is not None:
        parts.append(f"add about {noticing.more_cases:,} cases{_price(noticing.cases_cost)}")
    if noticing.more_epochs is not None:
        parts.append(f"about {noticing.more_epochs:,} epochs of each case{_price(noticing.epochs_cost)}")
    known = "" if evidence.repeated else " (with --epochs 2 it also says how many epochs would do)"
    return " or ".join(parts) + known if parts else ""


def _price(cost: int | None) -> str:
    return f" (about {show_usd(round(cost, -4) or cost)} in both runs)" if cost else ""


def _verdict(evidence: _Evidence, terms: _Terms) -> _Decision:
    """Take the verdict of the tests; with a margin it is only good if the limits lie within it."""
    found = _by_numbers(evidence, terms)
    if terms.margin is None or evidence.limits is None:
        return found
    least = min(evidence.limits)
    sure = f"{100 * (1 - terms.alpha):.4g} % sure"
    if least > -terms.margin:
        if found.verdict is ComparisonVerdict.BETTER:
            return found
        within = f"worse by {max(0.0, -least):.3f} at most ({sure}), and the margin is {terms.margin:g}"
        return _Decision(verdict=ComparisonVerdict.NOT_WORSE, why=within)
    if found.verdict is ComparisonVerdict.WORSE:
        return found
    return _unsure(f"B may be worse by {-least:.3f} ({sure}), which is more than the margin of {terms.margin:g}")


def _needed(evidence: _Evidence, terms: _Terms) -> Needed | None:
    """Return what would decide, unless pass rate and score contradict each other."""
    if terms.margin is not None:
        return needed_for_margin(evidence.spreads, terms.margin, terms.alpha, evidence.tests)
    if evidence.numbers.pass_difference * evidence.numbers.score_difference < 0:
        return None
    found = needed_for_change(evidence.spreads, terms.threshold, terms.alpha, evidence.tests)
    if found.more_cases is None or evidence.cases + found.more_cases >= MIN_PAIRS:
        return found
    return replace(found, more_cases=MIN_PAIRS - evidence.cases)


def _more(needed: Needed) -> str:
    """Return how many more cases or epochs would decide."""
    parts = [] if needed.more_cases is None else [f"about {needed.more_cases:,} more cases"]
    parts += [] if needed.more_epochs is None else [f"about {needed.more_epochs:,} more epochs of each case"]
    if not parts:
        return f"even {MAX_CASES:,} cases would not decide a difference like this one"
    return f"{' or '.join(parts)} would probably decide{_epochs(needed)}"


def _epochs(needed: Needed) -> str:
    """Return why no number of epochs is named, if none is."""
    if not needed.epochs_known:
        return " (with --epochs 2 it also says how many epochs would)"
    if needed.more_epochs is not None:
        return ""
    if needed.epochs_decide:
        return f"; with the same cases it would take more than {MAX_EPOCHS} epochs"
    return "; more epochs of the same cases alone would not, however many"


def _by_numbers(evidence: _Evidence, terms: _Terms) -> _Decision:
    numbers = evidence.numbers
    by_passing, by_score = counting(numbers, alpha=terms.alpha, threshold=terms.threshold)
    by_score = by_score and evidence.score_interval is not None and not evidence.score_interval.holds(0)
    if by_passing or by_score:
        return _direction(numbers, by_passing)
    if _alike(evidence, terms.threshold):
        why = f"pass rate and score differ by less than {terms.threshold:g}"
        return _Decision(verdict=ComparisonVerdict.SAME, why=why)
    if any(significant(numbers, terms.alpha)) and not (numbers.worse or numbers.better) and evidence.pairs >= MIN_PAIRS:
        why = f"scores differ by less than {terms.threshold:g}, and no case changed sides"
        return _Decision(verdict=ComparisonVerdict.SAME, why=why)
    if evidence.pairs < MIN_PAIRS:
        few = "is" if evidence.pairs == 1 else "are"
        return _unsure(f"{_all(evidence)} {few} too few to tell; it takes {MIN_PAIRS} at least")
    once = ", each case counted once" if evidence.repeated else ""
    told = f"{evidence.regressed:,} regressed and {evidence.improved:,} improved"
    return _unsure(f"of {_all(evidence)} {told}, which may be chance (p = {numbers.p_of_passing:.3g}{once})")


def _all(evidence: _Evidence) -> str:
    return counted(evidence.pairs, repeated=evidence.repeated)


def _direction(numbers: Numbers, by_passing: bool) -> _Decision:
    """Follow the tests; when pass rate and score point in different directions the result is undecided."""
    passing, scoring = numbers.pass_difference, numbers.score_difference
    if contradictory(numbers, by_passing=by_passing):
        return replace(_unsure("pass rate and score moved in different directions"), contradictory=True)
    verdict = ComparisonVerdict.BETTER if passing + scoring > 0 else ComparisonVerdict.WORSE
    what = f"pass rate {100 * passing:+.1f} points" if by_passing else f"score {scoring:+.3f}"
    p = numbers.p_of_passing if by_passing else numbers.score_p
    sure = f"p = {p:.2g}" if p >= _MIN_P else f"p < {_MIN_P}"
    return _Decision(verdict=verdict, why=f"{what}, which is hardly chance ({sure})")


def _alike(evidence: _Evidence, threshold: float) -> bool:
    intervals = (evidence.pass_interval, evidence.score_interval)
    return evidence.pairs >= MIN_PAIRS and all(one is not None and one.within(threshold) for one in intervals)


def _comparison(found: _Decision, evidence: _Evidence, pairing: Pairing, terms: _Terms) -> Comparison:
    pass_at_least, score_at_least = evidence.limits or (None, None)
    numbers = evidence.numbers
    return Comparison(
        verdict=found.verdict,
        why=found.why,
        threshold=terms.threshold,
        alpha=terms.alpha,
        cases=evidence.cases,
        pairs=evidence.pairs,
        b=numbers.worse,
        c=numbers.better,
        pass_p=numbers.pass_p,
        pass_before=evidence.passes[0],
        pass_after=evidence.passes[1],
        pass_difference=numbers.pass_difference,
        pass_interval=evidence.pass_interval,
        score_p=numbers.score_p,
        score_before=evidence.scores[0],
        score_after=evidence.scores[1],
        score_difference=numbers.score_difference,
        score_interval=evidence.score_interval,
        regressions=tuple(change_of(pair) for pair in pairing.pairs if pair.change is PairChange.WORSE),
        improvements=tuple(change_of(pair) for pair in pairing.pairs if pair.change is PairChange.BETTER),
        no_result=sum(pair.lost for pair in pairing.pairs),
        new=pairing.new,
        new_failed=len(pairing.new_failed),
        left_out=pairing.left_out,
        compared=sum(not (pair.lost or pair.hollow) for pair in pairing.pairs),
        margin=terms.margin,
        pass_at_least=pass_at_least,
        score_at_least=score_at_least,
        needed=found.needed,
        contradictory=found.contradictory,
        noticing=found.noticing,
    )
