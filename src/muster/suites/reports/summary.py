"""The summary of a suite run, made in one pass over the store: figures, what did not pass, what is missing."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from math import log

from muster.domain.case import Status
from muster.domain.errors import state_verb
from muster.domain.money import Microdollars, show_usd
from muster.domain.run import AT_WORK, TERMINAL, RunState
from muster.suites.reports.answered import is_unfinished
from muster.suites.reports.facts import RunFacts, run_facts
from muster.suites.reports.rows import CaseRow, CaseRows, listed, reasons
from muster.suites.reports.run import SuiteRun
from muster.suites.statistics import Rank, SubjectStats, SubjectTally, rank
from muster.suites.values.verdict import NOT_RUN, CaseResult
from muster.text import typed
from muster.text.words import count

NOT_PASSED = frozenset({Status.FAILED, Status.ERROR, Status.TIMED_OUT, Status.FLAKY, Status.UNJUDGED})
LISTED = 50  # rows of which all are listed; of longer runs only what did not pass
KEPT = 1000  # rows that did not pass, or wait, are kept in the summary, for the reports that show a few

# What makes results less sure than they look: what is counted, and what is said of it.
_NOUNS = {"broken": "check", "failures": "judge sample", "misquoted": "judge quotation", "unjudged": "rubric item"}
_ODD = {
    "broken": "could not be run",
    "failures": "failed",
    "misquoted": "not found in the answer",
    "unjudged": "without a judgement",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLine:
    """A case as short as a list needs it."""

    case: str
    suite: str
    subject: str
    status: Status
    why: str
    file: str
    line: int
    score: float | None
    threshold: float | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectLine:
    """One subject with its figures; `rank` is None where there is no other to compare it with."""

    label: str
    rank: int | None
    told_apart: bool  # from the one above it, by intervals that do not overlap
    stats: SubjectStats
    counts: Mapping[Status, int]  # of its cases
    score_bins: tuple[int, ...]
    second_bins: tuple[int, ...]
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFigures:
    """What is added up over all cases of a run."""

    subjects: tuple[SubjectLine, ...]  # the best first
    counts: Mapping[Status, int]  # of cases under subjects
    cases: int
    expected: int  # results there would be at the end: cases, subjects, epochs
    missing: int  # of them without a result
    answered: int  # of these, how many have an answer that is not judged yet, or a part of a conversation
    answered_cost: Microdollars
    stray: int  # results that belong to no case of the run
    troubles: tuple[CaseLine, ...]  # what did not pass
    waits: tuple[CaseLine, ...]  # what waits for a batch
    lines: tuple[CaseLine, ...]  # everything, of a run that is short enough for that
    warnings: tuple[str, ...]
    judges: tuple[str, ...] = ()  # who said something that counts
    unfinished: int = 0  # of `answered`, conversations in which turns are missing


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteReport(SuiteFigures):
    """Everything that reports say of a run, apart from the single cases."""

    run: RunFacts

    @property
    def rows(self) -> int:
        """How many rows there are: cases under subjects."""
        return sum(self.counts.values())

    @property
    def not_passed(self) -> int:
        """How many rows ended badly; what was skipped or never done is not among them."""
        return sum(number for status, number in self.counts.items() if status in NOT_PASSED)

    @property
    def waiting(self) -> int:
        """How many rows wait for a batch, or for a run that is at work to come to them."""
        return self.counts.get(Status.WAITING, 0)

    @property
    def pending(self) -> bool:
        """Return whether cases of a run that can go on have no result yet, and nothing else speaks against it."""
        return bool(self.waiting) and not (self.not_passed or self.stray or self.run.state in TERMINAL)

    @property
    def begun(self) -> int:
        """How many rows have a result: neither skipped nor waiting."""
        return sum(number for status, number in self.counts.items() if status not in NOT_RUN)

    @property
    def run_flaws(self) -> tuple[str, ...]:
        """What is wrong with the run as a whole: it is not completed, exceeded a budget, or nothing was run."""
        found = []
        if self.run.state is not RunState.COMPLETED:
            why = f": {self.run.error}" if self.run.error else ""
            state = state_verb(self.run.state)
            if self.waiting and self.run.state not in AT_WORK:
                state += f" for batches, and {count(self.waiting, 'case')} with it"
            found.append(f"The run {state}{why}.")
        elif self.run.error:
            found.append(f"Budget exceeded: {self.run.error}.")
        if self.waiting and self.run.state is RunState.COMPLETED:
            found.append(f"{count(self.waiting, 'case')} of a completed run wait for a batch.")
        if self.missing:
            still = "still to come" if self.waiting else "missing"
            found.append(f"{self.missing:,} of {self.expected:,} results are {still}.")
        if self.stray:
            found.append(f"{count(self.stray, 'result')} in the store belong to no case of the run.")
        if self.answered:
            found.append(self._answered_words)
        elif not self.begun and not self.waiting:
            found.append("No case was run.")
        return tuple(found)

    @property
    def _answered_words(self) -> str:
        whole = self.answered - self.unfinished
        parts = [f"{count(whole, 'answer')} not judged yet"] if whole else []
        parts += [f"{count(self.unfinished, 'conversation')} not finished"] if self.unfinished else []
        told = f"{', '.join(parts)}, for {show_usd(self.answered_cost)}"
        then = "go on" if self.unfinished else "judge them"
        return f"{told}." if self.run.state in AT_WORK else f"{told}; resume the run to {then}."

    @property
    def ok(self) -> bool:
        """Return whether the run is a success: something was run, all of it was, and all of it passed."""
        return not self.not_passed and not self.run_flaws

    @property
    def verdict(self) -> str:
        """The verdict in a sentence or two."""
        skipped = self.counts.get(Status.SKIPPED, 0)
        over = f" over {len(self.subjects)} subjects" if len(self.subjects) > 1 else ""
        cases, rest = count(self.begun, "case") + over, f" ({skipped:,} skipped)" if skipped else ""
        if self.ok:
            return f"{'The only case' if self.begun == 1 else f'All {cases}'} passed{rest}."
        bad = {status: number for status, number in self.counts.items() if status in NOT_PASSED}
        parts = [f"{self.not_passed:,} of {cases} did not pass: {listed(bad)}{rest}."] if self.not_passed else []
        return " ".join([*parts, *self.run_flaws])


async def summarize(suite: SuiteRun) -> SuiteReport:
    """Return the summary of a run; figures of one that has ended are kept in the store, and made once."""
    figures = await (_kept_figures(suite) if suite.run.state in TERMINAL else _gather(suite))
    facts = await run_facts(suite)
    if facts.judge not in figures.judges:
        facts = replace(facts, judge=None)  # it was named, and no case wanted it
    parts = {field.name: getattr(figures, field.name) for field in fields(SuiteFigures)}
    parts["warnings"] = (*figures.warnings, *_money_warnings(facts))
    return SuiteReport(run=facts, **parts)


FIGURES = 3  # the version of how figures are made and kept: those of another one are made anew


async def _kept_figures(suite: SuiteRun) -> SuiteFigures:
    """Return the figures that are kept of a run as it stands, or make them, to be kept."""
    table, run = suite.store.records, suite.run.id
    made_from = f"{FIGURES} {await table.figures_version(run)}"
    kept = await table.find_figures(run, made_from)
    with suppress(typed.ValidationError):  # of another version of this program
        if kept is not None:
            return typed.convert(kept, SuiteFigures)
    figures = await _gather(suite)
    table.keep_figures(run, made_from, figures)  # not waited for: who looks needs no store to write to
    return figures


async def _gather(suite: SuiteRun) -> SuiteFigures:
    """Read a run once from its first case to its last."""
    gathering, rows = _Gathering(), CaseRows(suite)
    async for row in rows:
        gathering.add(row)
    return SuiteFigures(
        subjects=gathering.subjects(),
        counts=dict(gathering.counts),
        cases=suite.snapshot.cases,
        expected=gathering.expected,
        missing=gathering.missing,
        answered=gathering.answered,
        answered_cost=Microdollars(gathering.answered_cost),
        stray=rows.stray,
        troubles=tuple(gathering.troubles),
        waits=tuple(gathering.waits),
        lines=tuple(gathering.lines),
        warnings=gathering.warnings(),
        judges=tuple(sorted(gathering.judges)),
        unfinished=gathering.unfinished,
    )


class _Gathering:
    """What is added up while rows pass by."""

    def __init__(self) -> None:
        self.counts: Counter[Status] = Counter()
        self.expected = self.missing = self.answered = self.unfinished = self.answered_cost = 0
        self.troubles: list[CaseLine] = []
        self.waits: list[CaseLine] = []
        self.lines: list[CaseLine] = []
        self._of: defaultdict[str, _OfSubject] = defaultdict(_OfSubject)
        self._rows = 0
        self._odd: Counter[str] = Counter()
        self._councils: Counter[str] = Counter()  # what is to be known of their decisions
        self.judges: set[str] = set()  # who said something that counts

    def add(self, row: CaseRow) -> None:
        """Add one row."""
        self.counts[row.status] += 1
        self.expected += len(row.results) + row.missing
        self.missing += row.missing
        self.answered += len(row.answered)
        self.unfinished += sum(map(is_unfinished, row.answered))
        self.answered_cost += sum(result.cost for result in row.answered)
        self._of[row.subject].add(row)
        for result in row.results:
            self._add_oddities(result)
            for said in result.judgements:
                if said.items or said.passed is not None:
                    self.judges.add(said.by)
        self._rows += 1
        kept = self.troubles if row.status in NOT_PASSED else self.waits if row.status is Status.WAITING else None
        line = _line(row) if kept is not None or self._rows <= LISTED else None
        if line is not None and kept is not None and len(kept) < KEPT:
            kept.append(line)
        self.lines = [*self.lines, line] if line is not None and self._rows <= LISTED else []

    def _add_oddities(self, result: CaseResult) -> None:
        """Count what makes a result less sure than it looks."""
        for check in result.checks:
            self._odd["broken"] += check.broken
        for item in result.items:
            self._odd["unjudged"] += item.score is None
            self._odd["misquoted"] += item.quoted is False
        for judgement in result.judgements:
            self._odd["failures"] += len(judgement.failures)
            self._councils.update(filter(None, (judgement.votes, judgement.tie)))

    def subjects(self) -> tuple[SubjectLine, ...]:
        """Return the subjects, the best first."""
        # Of one that was never come to nothing is added up, not even its name.
        ranked = rank([replace(mine.tally.stats(), subject=label) for label, mine in self._of.items()])
        return tuple(self._of[found.stats.subject].line(found, alone=len(ranked) < 2) for found in ranked)

    def warnings(self) -> tuple[str, ...]:
        """Return what a reader must know about the figures."""
        odd = [f"{count(number, _NOUNS[odd])} {_ODD[odd]}." for odd, number in sorted((+self._odd).items())]
        decided = [
            f"{count(number, 'judgement')} of a council: {how}." for how, number in sorted(self._councils.items())
        ]
        return (*odd, *decided)


class _OfSubject:
    """The same for one subject."""

    def __init__(self) -> None:
        self.tally = SubjectTally()
        self._counts: Counter[Status] = Counter()
        self._histogram = Histogram()
        self._model = ""

    def add(self, row: CaseRow) -> None:
        """Add one row."""
        self._counts[row.status] += 1
        if row.score is not None:
            self._histogram.add_score(row.score)
        for result in row.answered:
            self.tally.spend(result)
        for result in row.results:
            self.tally.add(result)
            self._model = result.model or self._model
            if result.seconds > 0:
                self._histogram.add_seconds(result.seconds)

    def line(self, found: Rank, *, alone: bool) -> SubjectLine:
        """Return what came together."""
        return SubjectLine(
            label=found.stats.subject,
            rank=None if alone else found.place,
            told_apart=found.told_apart,
            stats=found.stats,
            counts=dict(self._counts),
            score_bins=tuple(self._histogram.scores),
            second_bins=tuple(self._histogram.seconds),
            model=self._model,
        )


def _line(row: CaseRow) -> CaseLine:
    telling = row.telling
    return CaseLine(
        case=row.case.id,
        suite=row.case.suite,
        subject=row.subject,
        status=row.status,
        why=row.why,
        file=row.case.file,
        line=row.case.line,
        score=row.score,
        threshold=row.threshold,
        reasons=() if telling is None else reasons(telling),
    )


def _money_warnings(facts: RunFacts) -> tuple[str, ...]:
    if not facts.spent.uncertain:
        return ()
    return (f"{show_usd(facts.spent.uncertain)} more may have been charged: the outcome of some calls is unknown.",)


BINS = 20
MIN_SECONDS, MAX_SECONDS = 0.001, 1000.0  # the axis of times is logarithmic
_SECONDS_AXIS = log(MAX_SECONDS / MIN_SECONDS)
TICKS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


class Histogram:
    """Counts scores and times as they come."""

    __slots__ = ("scores", "seconds")

    def __init__(self) -> None:
        self.scores = [0] * BINS
        self.seconds = [0] * BINS

    def add_score(self, score: float) -> None:
        """Count a score between 0 and 1."""
        self.scores[_bin(score)] += 1

    def add_seconds(self, seconds: float) -> None:
        """Count a time; what is off the axis stands at its end."""
        place = log(max(seconds, MIN_SECONDS) / MIN_SECONDS) / _SECONDS_AXIS
        self.seconds[_bin(place)] += 1


def _bin(place: float) -> int:
    return min(BINS - 1, max(0, int(place * BINS)))
