"""Rows of a report: one case under one subject, with all its epochs, read from the store one after the other."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Generic, TypeVar

from muster.domain.case import Status
from muster.domain.money import Microdollars
from muster.domain.run import AT_WORK
from muster.suites.journal import Subject
from muster.suites.reports.answered import AnsweredCases
from muster.suites.reports.run import SuiteRun
from muster.suites.statistics import settle
from muster.suites.values.case import Case, Evaluator
from muster.suites.values.verdict import (
    CaseResult,
    CheckResult,
    ItemScore,
    Judgement,
    MemberVerdict,
)
from muster.text.scores import reaches
from muster.text.words import one_line

STOPPED = "the run stopped before it came to this case"
WAITS = "the run waits for a batch"
NOT_YET = "the run has not come to this case yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """What a case came to under one subject; `missing` counts the epochs that have no result."""

    case: Case
    subject: str
    status: Status
    why: str
    results: tuple[CaseResult, ...]
    missing: int = 0
    answered: tuple[CaseResult, ...] = ()  # of the missing ones, those whose answers are there and not judged yet

    @property
    def score(self) -> float | None:
        """The mean score of the epochs that have one."""
        return _mean([result.score for result in self.results if result.score is not None])

    @property
    def threshold(self) -> float | None:
        """The score that was needed."""
        return self.results[-1].threshold if self.results else self.case.threshold

    @property
    def evaluators(self) -> tuple[Evaluator, ...]:
        """Who decided."""
        return self.results[-1].evaluators if self.results else ()

    @property
    def seconds(self) -> float | None:
        """How long an answer took, in the mean of the epochs."""
        return _mean([result.seconds for result in self.results if result.status is not Status.SKIPPED])

    @property
    def cost(self) -> Microdollars:
        """What all its epochs cost."""
        return Microdollars(sum(result.cost for result in (*self.results, *self.answered)))

    @property
    def judge_cost(self) -> Microdollars:
        """What judging all its epochs cost."""
        return Microdollars(sum(result.judge_cost for result in self.results))

    @property
    def telling(self) -> CaseResult | None:
        """The epoch to look at: the first that did not pass, else the last."""
        last = self.results[-1] if self.results else None
        return next((result for result in self.results if result.status is not Status.PASSED), last)


def _mean(values: list[float]) -> float | None:
    if len(values) < 2:  # most cases have one epoch, and runs have many cases
        return values[0] if values else None
    return fmean(values)


T = TypeVar("T")


class PagedValues(Generic[T]):
    """Values that are read page by page from any place on; a page without values is the end."""

    def __init__(self, load: Callable[[int], Awaitable[tuple[T, ...]]], page: int, index: int) -> None:
        self._load, self.page, self.index = load, page, index
        self._values: tuple[T, ...] | None = None

    async def peek(self) -> T | None:
        """Return the next value and stay there; None at the end."""
        if self._values is None:
            self._values = await self._load(self.page)
        while self._values and self.index >= len(self._values):
            self.page, self.index = self.page + 1, 0
            self._values = await self._load(self.page)
        return self._values[self.index] if self._values else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlace:
    """Where rows go on: pages and places of the next case and the next result, and how many rows of it are over."""

    case_page: int = 0
    case: int = 0
    result_page: int = 0
    result: int = 0
    rows: int = 0


FIRST_ROW = RowPlace()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseGroup:
    """One case under all its subjects, and where it stands."""

    place: RowPlace
    rows: tuple[CaseRow, ...]


class CaseRows:
    """Goes over the cases of a run with their results; afterwards `stray` counts results that belong to no case."""

    def __init__(self, suite: SuiteRun, begin: RowPlace = FIRST_ROW) -> None:
        self._suite = suite
        self._cases = PagedValues(suite.page_of_cases, begin.case_page, begin.case)
        self._results = PagedValues(suite.page_of_results, begin.result_page, begin.result)
        self._answered = AnsweredCases(suite)
        self.stray = 0

    async def __aiter__(self) -> AsyncIterator[CaseRow]:
        """Yield the rows in the order of the cases, then of the subjects."""
        async for group in self.groups():
            for row in group.rows:
                yield row

    async def groups(self, only: str | None = None) -> AsyncIterator[CaseGroup]:
        """Yield the rows of each case together; with the id of a case, those of this one."""
        usual = self._labels(self._suite.subjects)
        tested = self._suite.spec.tested_on
        while (case := await self._cases.peek()) is not None:
            place = self._place()
            self._cases.index += 1
            found = await self._take(case.id)
            if only not in (None, case.id):
                continue
            special = case.has_own_subjects or case.flaw
            subjects = self._labels(tested(case, self._suite.snapshot)) if special else usual
            self.stray += len([result for result in found if result.subject not in subjects])
            rows = tuple([await self._row(case, subject, found) for subject in subjects])
            yield CaseGroup(place=place, rows=rows)
        while await self._results.peek() is not None:
            self.stray += 1
            self._results.index += 1

    def _place(self) -> RowPlace:
        cases, results = self._cases, self._results
        return RowPlace(case_page=cases.page, case=cases.index, result_page=results.page, result=results.index)

    @staticmethod
    def _labels(subjects: tuple[Subject, ...]) -> tuple[str, ...]:
        return tuple(subject.label for subject in subjects)

    async def _take(self, case: str) -> list[CaseResult]:
        found, results = [], self._results
        while (result := await results.peek()) is not None and result.case == case:
            found.append(result)
            results.index += 1
        return found

    async def _row(self, case: Case, subject: str, found: list[CaseResult]) -> CaseRow:
        results = [result for result in found if result.subject == subject]
        answered: list[CaseResult] = []
        for epoch in range(len(results) + 1, self._suite.spec.epochs + 1):
            more = await self._answered.find(case, subject, epoch)
            if more is not None:
                (answered if more.status is Status.WAITING else results).append(more)
        return _row(case, subject, tuple(results), tuple(answered), self._suite)


def _row(
    case: Case, subject: str, results: tuple[CaseResult, ...], answered: tuple[CaseResult, ...], suite: SuiteRun
) -> CaseRow:
    missing = 0 if case.skip else max(0, suite.spec.epochs - len(results))
    open_words = WAITS if suite.waits else NOT_YET if suite.run.state in AT_WORK else ""
    status, why = _ending(case, results, missing, open_words)
    if answered and not results:
        why = f"{why}; {answered[0].why}" if suite.waits else answered[0].why
    return CaseRow(
        case=case, subject=subject, status=status, why=why, results=results, missing=missing, answered=answered
    )


def _ending(case: Case, results: tuple[CaseResult, ...], missing: int, open_words: str) -> tuple[Status, str]:
    """Settle a case over its epochs; one that was not done to its end never passes.

    `open_words` say why a run that goes on has no result yet; they are empty for one that does not.
    """
    if not results and (case.skip or not open_words):
        return Status.SKIPPED, case.skip or STOPPED
    if not results:
        return Status.WAITING, open_words
    status = settle([result.status for result in results])
    if missing and status in (Status.PASSED, Status.SKIPPED):
        epochs = f"{len(results)} of {len(results) + missing} epochs of this case"
        if open_words:
            return Status.WAITING, f"{epochs} are done" if open_words == NOT_YET else f"{open_words}; {epochs} are done"
        return Status.SKIPPED, f"the run stopped after {epochs}"
    return status, _why(results, status)


def _why(results: tuple[CaseResult, ...], status: Status) -> str:
    reasons = [result.why for result in results if result.status is not Status.PASSED and result.why]
    if status is not Status.FLAKY:
        return reasons[0] if reasons else ""
    passed = sum(result.status is Status.PASSED for result in results)
    first = f": {reasons[0]}" if reasons else ""
    return f"passed in {passed} of {len(results)} epochs{first}"


MAX_LINE = 600


def reasons(result: CaseResult) -> tuple[str, ...]:
    """Return the reasons of one epoch, one on each line."""
    return tuple(one_line(line, MAX_LINE) for line in _reasons(result))


def _reasons(result: CaseResult) -> Iterator[str]:
    if result.why:
        yield result.why
    if result.error is not None and (message := str(result.error.get("message", ""))) not in result.why:
        yield f"error: {message}"
    for check in result.checks:
        if not check.passed and (said := _check(check, told=bool(check.why) and check.why in result.why)):
            yield said
    for item in result.items:
        if item.score is None or not reaches(item.score, result.threshold):
            yield _item(item)
    for judgement in result.judgements:
        for failure in judgement.failures:
            yield f"judge {judgement.by or 'unnamed'}: {failure}"
        if judgement.members:
            yield f"council: {', '.join(council_words(judgement))}"


def council_words(judgement: Judgement) -> list[str]:
    """Return the verdict of each member of a council, how many evaluations decided, and whether a tie was decided."""
    return [*map(_member, judgement.members), *filter(None, (judgement.votes, judgement.tie))]


def _member(member: MemberVerdict) -> str:
    """Return the verdict of a member of a council."""
    score = f"no verdict ({member.flaw})" if member.score is None else f"{member.score:.2f}"
    return f"{member.member} {score}{' (won)' if member.won else ''}"


def _check(check: CheckResult, *, told: bool) -> str:
    """Return what a check found, or what it looked for when the rest is known already."""
    if told:
        return f"it looks for: {check.expected}" if check.expected else ""
    word = "could not be run" if check.broken else "failed"
    expected = f" (it looks for: {check.expected})" if check.expected else ""
    return f"check {check.name} {word}{expected}" + (f": {check.why}" if check.why else "")


def _item(item: ItemScore) -> str:
    found = "not judged" if item.score is None else f"{item.score:.2f}"
    critical = ", critical" if item.critical else ""
    said = f" – {item.rationale}" if item.rationale else ""
    return f"rubric {item.id} (weight {item.weight:g}{critical}): {found}{said}"


def kind(result: CaseResult | None, status: Status) -> str:
    """Name the kind of a failure, for tools that sort by it."""
    if status is not Status.FAILED or result is None:
        return str(status).replace("_", "-")
    broken = next((check.name for check in result.checks if not check.passed), None)
    if broken is not None:
        return f"check-{broken.replace('_', '-')}"
    return "score"


# The worst first: the order in which people want to see them.
ORDER = (
    Status.FAILED,
    Status.ERROR,
    Status.TIMED_OUT,
    Status.UNJUDGED,
    Status.FLAKY,
    Status.WAITING,
    Status.SKIPPED,
    Status.PASSED,
)
WORDS: Mapping[Status, str] = {status: str(status).replace("_", " ") for status in Status}


def listed(counts: Mapping[Status, int]) -> str:
    """Return how many cases ended in each status, the worst first."""
    return ", ".join(f"{counts[status]:,} {WORDS[status]}" for status in ORDER if counts.get(status))
