"""Descriptive statistics of a suite run: pass rates, scores, costs, and the ranking of subjects.

Formulas and their references stand in `muster.statistics`: intervals, pass@k and pass^k, variance components.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any

from muster.domain.canonical import Json
from muster.domain.case import Status
from muster.domain.errors import BadArgument
from muster.domain.money import NOTHING, Microdollars
from muster.statistics.intervals import CONFIDENCE, RESAMPLES, Interval, bootstrap_mean, percentile_of_sorted, wilson
from muster.statistics.repeats import (
    CaseSums,
    ErrorSums,
    VarianceComponents,
    mean_pass_at_k,
    mean_pass_hat_k,
    variance_components,
)
from muster.suites.checks.opinions import weighted_mean
from muster.suites.values.verdict import NOT_RUN, CaseResult, ItemScore

__all__ = ["Interval", "Latency", "Rank", "Repeats", "SubjectStats", "SubjectTally", "VarianceComponents", "rank"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """What k epochs of a case would bring; the names of the fields are stored in evidence."""

    k: int
    one: float  # pass@k: at least one passes
    every: float  # pass^k: all pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds on the wire of one epoch of a case."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectStats:
    """Everything that is said of one subject; figures are None where there is nothing to take them from."""

    subject: str = ""
    cases: int = 0  # all, those that were skipped too
    run: int = 0  # cases without those
    results: int = 0  # epochs of all cases that were run
    epochs: int = 0  # of the case that has most
    statuses: Mapping[Status, int] = field(default_factory=dict)  # of cases, all epochs together
    pass_rate: float | None = None  # of the cases that were run; flaky, error and unjudged are no pass
    pass_interval: Interval | None = None  # Wilson's, over cases
    scored: int = 0  # cases that have a score
    mean_score: float | None = None  # over these cases, of the mean over their epochs
    score_interval: Interval | None = None  # bootstrap over cases
    repeats: tuple[Repeats, ...] = ()  # k from 1 to the number of epochs
    variance: VarianceComponents = field(default_factory=VarianceComponents)
    latency: Latency | None = None
    cost: Microdollars = NOTHING  # of the agent
    judge_cost: Microdollars = NOTHING
    cost_per_case: float | None = None  # microdollars, of the cases that were run
    judge_cost_per_case: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0  # of these
    # Of samples of a judge, or of members of a council, on passing: the mean over the answers that have several.
    agreement: float | None = None
    agreements: int = 0  # how many answers that are
    spread: float | None = None  # between the scores of members of a council, mean over the answers
    unjudged_items: int = 0  # rubric items that nobody judged, over all results


_BITS = {status: 1 << place for place, status in enumerate(Status)}


class _Columns:
    """What is kept of each case, one column a figure."""

    __slots__ = ("_all", "b", "epochs", "n", "nn", "passed", "score", "ss", "statuses", "y")

    def __init__(self) -> None:
        self.statuses = array("B")  # a bit for each that was seen
        self.epochs, self.passed = array("L"), array("L")
        self.score = array("d")  # sum over the epochs that have one
        # As in CaseSums: b epochs have a score, with n samples of it.
        self.b, self.n = array("L"), array("L")
        self.y, self.ss, self.nn = array("d"), array("d"), array("d")
        counts, sums = (self.epochs, self.passed, self.b, self.n), (self.score, self.y, self.ss, self.nn)
        self._all: tuple[array[Any], ...] = (self.statuses, *counts, *sums)

    def grow(self) -> None:
        """Make room for one case more."""
        for column in self._all:
            column.append(0)


class SubjectTally:
    """The growing figures of one subject."""

    def __init__(self) -> None:
        self._subject: str | None = None
        self._places: dict[str, int] = {}
        self._of = _Columns()
        self._seconds = array("d")
        self._agreements, self._spreads = array("d"), array("d")
        self._error_ss, self._error_df = 0.0, 0
        self._not_judged = self._cost = self._judge_cost = self._input = self._output = self._thinking = (
            self._unjudged
        ) = 0

    def add(self, result: CaseResult) -> None:
        """Add one epoch of one case."""
        if self._subject not in (None, result.subject):
            raise BadArgument(f"results of different subjects cannot be added up: {self._subject} and {result.subject}")
        self._subject = result.subject
        place = self._place(result.case)
        self._of.statuses[place] |= _BITS[result.status]
        self._add_money(result)
        if result.status in NOT_RUN:
            return
        self._of.epochs[place] += 1
        self._of.passed[place] += result.status is Status.PASSED
        self._seconds.append(result.seconds)
        self._unjudged += sum([item.score is None for item in result.items])
        if result.score is not None:
            self._of.score[place] += result.score
            self._of.b[place] += 1
            self._add_samples(place, _samples(result))
        self._agreements.extend([one.agreement for one in result.judgements if one.agreement is not None])
        self._spreads.extend([one.spread for one in result.judgements if one.members and one.spread is not None])

    def spend(self, result: CaseResult) -> None:
        """Add the money and tokens of an answer that is not judged yet; figures for a case leave it out."""
        self._subject = result.subject
        self._not_judged += result.cost
        self._input += result.input_tokens
        self._output += result.output_tokens
        self._thinking += result.thinking_tokens

    def stats(self, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES, seed: int = 0) -> SubjectStats:
        """Return the figures of all that was added so far."""
        of = self._of
        statuses = Counter(settle(_seen(bits)) for bits in of.statuses)
        run = len(of.statuses) - sum(statuses[status] for status in NOT_RUN)
        passed = statuses[Status.PASSED]
        means = [total / number for total, number in zip(of.score, of.b, strict=True) if number]
        return SubjectStats(
            subject=self._subject or "",
            cases=len(of.statuses),
            run=run,
            results=len(self._seconds),
            epochs=max(of.epochs, default=0),
            statuses=dict(statuses),
            pass_rate=passed / run if run else None,
            pass_interval=wilson(passed, run, confidence) if run else None,
            scored=len(means),
            mean_score=fsum(means) / len(means) if means else None,
            score_interval=bootstrap_mean(means, confidence=confidence, resamples=resamples, seed=seed),
            repeats=tuple(self._repeats()),
            variance=variance_components(list(self._sums()), ErrorSums(ss=self._error_ss, df=self._error_df)),
            latency=self._latency(),
            cost=Microdollars(self._cost + self._not_judged),
            judge_cost=Microdollars(self._judge_cost),
            cost_per_case=self._cost / run if run else None,
            judge_cost_per_case=self._judge_cost / run if run else None,
            input_tokens=self._input,
            output_tokens=self._output,
            thinking_tokens=self._thinking,
            agreement=fsum(self._agreements) / len(self._agreements) if self._agreements else None,
            agreements=len(self._agreements),
            spread=fsum(self._spreads) / len(self._spreads) if self._spreads else None,
            unjudged_items=self._unjudged,
        )

    def _place(self, case: str) -> int:
        place = self._places.get(case)
        if place is None:
            place = self._places[case] = len(self._places)
            self._of.grow()
        return place

    def _add_money(self, result: CaseResult) -> None:
        self._cost += result.cost
        self._judge_cost += result.judge_cost
        self._input += result.input_tokens
        self._output += result.output_tokens
        self._thinking += result.thinking_tokens

    def _add_samples(self, place: int, samples: list[float]) -> None:
        of, n = self._of, len(samples)
        y = sum(samples)
        mean = y / n
        of.n[place] += n
        of.y[place] += y
        of.ss[place] += n * mean * mean
        of.nn[place] += n * n
        self._error_ss += sum([(score - mean) ** 2 for score in samples])
        self._error_df += n - 1

    def _sums(self) -> Iterator[CaseSums]:
        of = self._of
        for b, n, y, ss, nn in zip(of.b, of.n, of.y, of.ss, of.nn, strict=True):
            if n:
                yield CaseSums(b=b, n=n, y=y, ss=ss, nn=nn)

    def _repeats(self) -> Iterator[Repeats]:
        """Return pass@k and pass^k for every k; cases with the same counts are counted once."""
        alike = Counter(zip(self._of.epochs, self._of.passed, strict=True))
        for k in range(1, max(self._of.epochs, default=0) + 1):
            at_k, hat_k = mean_pass_at_k(alike, k), mean_pass_hat_k(alike, k)
            if at_k is not None and hat_k is not None:
                yield Repeats(k=k, one=at_k, every=hat_k)

    def _latency(self) -> Latency | None:
        ordered = sorted(self._seconds)
        if not ordered:
            return None
        p50, p95, p99 = (percentile_of_sorted(ordered, q) for q in (50, 95, 99))
        return Latency(p50=p50, p95=p95, p99=p99)


def _seen(bits: int) -> list[Status]:
    return [status for status, bit in _BITS.items() if bits & bit]


def _samples(result: CaseResult) -> list[float]:
    """Return the scores that the samples of a judge would have brought alone, or else the one score there is.

    Where a check failed the score is 0 whatever the judge says.
    """
    several = {item.id: item for item in result.items if len(item.samples) > 1}
    if not several or not all(check.passed for check in result.checks):
        return [0.0 if result.score is None else result.score]
    items = [*several.values(), *(item for item in result.items if item.id not in several)]
    number = min(len(item.samples) for item in several.values())
    scores = (weighted_mean([_sampled(item, place) for item in items]) for place in range(number))
    return [score for score in scores if score is not None]


def _sampled(item: ItemScore, place: int) -> ItemScore:
    score = item.samples[place] if len(item.samples) > 1 else item.score
    return ItemScore(id=item.id, weight=item.weight, score=score)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One subject in its place."""

    place: int  # from 1
    stats: SubjectStats
    told_apart: bool  # from the one above, by intervals that do not overlap; the first is, from nobody


def rank(stats: Sequence[SubjectStats]) -> tuple[Rank, ...]:
    """Put subjects in order: by pass rate, then by score, then by cost."""
    ordered = sorted(stats, key=_order)
    return tuple(
        Rank(place=place, stats=one, told_apart=place == 1 or told_apart(ordered[place - 2], one))
        for place, one in enumerate(ordered, 1)
    )


def told_apart(better: SubjectStats, other: SubjectStats) -> bool:
    """Return whether the figure that decides between two lies in intervals that do not overlap."""
    if better.pass_rate != other.pass_rate:
        return _apart(better.pass_interval, other.pass_interval)
    if better.mean_score != other.mean_score:
        return _apart(better.score_interval, other.score_interval)
    return False


def _order(stats: SubjectStats) -> tuple[float, float, int, str]:
    rate = -1.0 if stats.pass_rate is None else stats.pass_rate
    score = -1.0 if stats.mean_score is None else stats.mean_score
    return -rate, -score, stats.cost, stats.subject


def _apart(one: Interval | None, other: Interval | None) -> bool:
    return one is not None and other is not None and not one.overlaps(other)


# From the worst on: what was not even tried properly stands before what was tried and failed.
WORST_FIRST = (Status.ERROR, Status.TIMED_OUT, Status.FAILED, Status.UNJUDGED, Status.WAITING, Status.SKIPPED)


def settle(statuses: Iterable[Status]) -> Status:
    """Return one status for all epochs: the one they share, flaky when only some passed, else the worst.

    Of no epoch at all nothing can be said: unjudged.
    """
    different = set(statuses)
    if len(different) == 1:
        return different.pop()
    if Status.PASSED in different or Status.FLAKY in different:
        return Status.FLAKY
    return next((status for status in WORST_FIRST if status in different), Status.UNJUDGED)


class SettledCases:
    """How cases under their subjects ended, each counted once, whatever its epochs: what a run says of itself."""

    def __init__(self, epochs: int) -> None:
        self._last_epoch, self._units = epochs, 0
        self._epochs: list[Status] = []  # of the case and subject that is being counted
        self._counts: Counter[Status] = Counter()

    def add(self, result: CaseResult) -> None:
        """Add one result; they come in the order of the units."""
        self._units += 1
        self._epochs.append(result.status)
        if result.epoch == self._last_epoch:
            self._counts[settle(self._epochs)] += 1
            self._epochs = []

    def told(self) -> dict[str, Json]:
        """Return how many ended how."""
        return {"counts": {str(status): self._counts[status] for status in Status if self._counts[status]}}

    def json(self) -> Mapping[str, Json]:
        """Return all that a run says at its end; nothing is good unless something passed and all did."""
        run = {status for status in self._counts if status is not Status.SKIPPED}
        cases = sum(self._counts.values())
        return {"ok": run == {Status.PASSED}, "units": self._units, "cases": cases, **self.told()}
