"""Adds up the results of one subject in any order, in little memory: some 200 bytes a case, 8 a result."""

from array import array
from collections import Counter
from collections.abc import Iterator
from math import fsum

from muster.checks.bootstrap import RESAMPLES, bootstrap_mean
from muster.checks.interval import CONFIDENCE
from muster.checks.opinions import weighted_mean
from muster.checks.percentile import percentile_of_sorted
from muster.checks.repeats import mean_pass_at_k, mean_pass_hat_k
from muster.checks.settling import settle
from muster.checks.subject_stats import Latency, Repeats, SubjectStats
from muster.checks.variance import CaseSums, JudgeSums, split_sums
from muster.checks.wilson import wilson
from muster.domain.errors import BadArgument
from muster.domain.money import Microdollars
from muster.domain.verdict import NOT_RUN, CaseResult, ItemScore, Status

_BITS = {status: 1 << place for place, status in enumerate(Status)}


class _Columns:
    """What is kept of each case, one column a figure."""

    __slots__ = ("crowd", "epochs", "passed", "samples", "score", "scored", "squares", "statuses", "total")

    def __init__(self) -> None:
        self.statuses = array("B")  # a bit for each that was seen
        self.epochs, self.passed, self.scored, self.samples = (array("L") for _ in range(4))
        self.score, self.total, self.squares, self.crowd = (array("d") for _ in range(4))

    def grow(self) -> None:
        """Make room for one case more."""
        for name in self.__slots__:
            getattr(self, name).append(0)


class Tally:
    """The growing figures of one subject."""

    def __init__(self) -> None:
        self._subject: str | None = None
        self._places: dict[str, int] = {}
        self._of = _Columns()
        self._seconds = array("d")
        self._agreements = array("d")
        self._judge_squares, self._judge_freedom = 0.0, 0
        self._cost = self._judge_cost = self._input = self._output = self._unjudged = 0

    def add(self, result: CaseResult) -> None:
        """Add one epoch of one case."""
        if self._subject not in (None, result.subject):
            raise BadArgument(f"results of {self._subject} and {result.subject} are not added up together")
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
            self._of.scored[place] += 1
            self._add_samples(place, _samples(result))
        self._agreements.extend([one.agreement for one in result.judgements if one.agreement is not None])

    def stats(self, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES, seed: int = 0) -> SubjectStats:
        """Give the figures of all that was added so far."""
        of = self._of
        statuses = Counter(settle(_seen(bits)) for bits in of.statuses)
        run = len(of.statuses) - sum(statuses[status] for status in NOT_RUN)
        passed = statuses[Status.PASSED]
        means = [total / number for total, number in zip(of.score, of.scored, strict=True) if number]
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
            variance=split_sums(
                list(self._sums()), JudgeSums(squares=self._judge_squares, freedom=self._judge_freedom)
            ),
            latency=self._latency(),
            cost=Microdollars(self._cost),
            judge_cost=Microdollars(self._judge_cost),
            cost_per_case=self._cost / run if run else None,
            judge_cost_per_case=self._judge_cost / run if run else None,
            input_tokens=self._input,
            output_tokens=self._output,
            agreement=fsum(self._agreements) / len(self._agreements) if self._agreements else None,
            agreements=len(self._agreements),
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

    def _add_samples(self, place: int, samples: list[float]) -> None:
        of, n = self._of, len(samples)
        total = sum(samples)
        mean = total / n
        of.samples[place] += n
        of.total[place] += total
        of.squares[place] += n * mean * mean
        of.crowd[place] += n * n
        self._judge_squares += sum([(score - mean) ** 2 for score in samples])
        self._judge_freedom += n - 1

    @property
    def _judge(self) -> JudgeSums:
        return JudgeSums(squares=self._judge_squares, freedom=self._judge_freedom)

    def _sums(self) -> Iterator[CaseSums]:
        of = self._of
        for place, samples in enumerate(of.samples):
            if samples:
                yield CaseSums(
                    epochs=of.scored[place],
                    samples=samples,
                    total=of.total[place],
                    squares=of.squares[place],
                    crowd=of.crowd[place],
                )

    def _repeats(self) -> Iterator[Repeats]:
        """Give pass@k and pass^k; cases with the same counts are counted once."""
        alike = Counter(zip(self._of.epochs, self._of.passed, strict=True))
        for k in range(1, max(self._of.epochs, default=0) + 1):
            one, every = mean_pass_at_k(alike, k), mean_pass_hat_k(alike, k)
            if one is not None and every is not None:
                yield Repeats(k=k, one=one, every=every)

    def _latency(self) -> Latency | None:
        ordered = sorted(self._seconds)
        if not ordered:
            return None
        p50, p95, p99 = (percentile_of_sorted(ordered, q) for q in (50, 95, 99))
        return Latency(p50=p50, p95=p95, p99=p99)


def _seen(bits: int) -> list[Status]:
    return [status for status, bit in _BITS.items() if bits & bit]


def _samples(result: CaseResult) -> list[float]:
    """Give the scores that the samples of a judge would have brought alone, or else the one score there is.

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
