"""What a suite run came to, in parts: its summary, pages of its cases, one case in full. `Muster.suites.results`."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from muster.app.base.backend import Backend
from muster.app.runs.options import require_limit
from muster.domain.run import Run
from muster.suites.journal import Subject
from muster.suites.reports.paging import EVERY_ROW, CasePage, RowFilter, find_row, page_of_rows
from muster.suites.reports.rows import CaseRow
from muster.suites.reports.run import Spoken, SuiteRun, open_suite_run
from muster.suites.reports.summary import SuiteReport, summarize


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSummary:
    """The figures of a suite run without its cases, and which agent and prompt each subject is."""

    suite: SuiteRun
    report: SuiteReport

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """Who each subject of the report is, in their order."""
        return tuple(self._subject(line.label) for line in self.report.subjects)

    def _subject(self, label: str) -> Subject:
        known = next((one for one in self.suite.subjects if one.label == label), None)
        if known is not None:
            return known
        # An agent that only some cases name.
        prompts = (one.name for one in self.suite.snapshot.prompts if label.endswith(f"+{one.name}"))
        prompt = next(prompts, "")
        return Subject(agent=label.removesuffix(f"+{prompt}") if prompt else label, prompt=prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCase:
    """One case under one subject, with the last answer of each epoch."""

    run: Run
    row: CaseRow
    answers: Mapping[int, str]  # by epoch


class SuiteResults:
    """The results of suite runs, read only as far as they are asked for."""

    def __init__(self, backend: Backend, find: Callable[[str], Awaitable[Run]]) -> None:
        self._store, self._find = backend.store, find

    async def summary(self, reference: str) -> SuiteSummary:
        """Return the figures of a suite run."""
        suite = await self._open(reference)
        return SuiteSummary(suite=suite, report=await summarize(suite))

    async def subjects(self, reference: str) -> tuple[Subject, ...]:
        """Return who was tested in a suite run."""
        return await (await self._open(reference)).all_subjects()

    async def cases(
        self, reference: str, wanted: RowFilter = EVERY_ROW, *, after: str | None = None, limit: int = 100
    ) -> CasePage:
        """Return a page of the cases of a suite run, each under each subject; `after` is `next` of the page before."""
        require_limit(limit)
        return await page_of_rows(await self._open(reference), wanted, after=after, limit=limit)

    async def case(self, reference: str, case: str, subject: str | None = None) -> WholeCase:
        """Return one case of a suite run with everything that was found and said."""
        suite = await self._open(reference)
        row = await find_row(suite, case, subject)
        spoken = Spoken(suite)
        answers = {result.epoch: await spoken.answer(result) for result in row.results}
        return WholeCase(run=suite.run, row=row, answers=answers)

    async def _open(self, reference: str) -> SuiteRun:
        return await open_suite_run(self._store, await self._find(reference))
