"""The units of a suite run: every case with everyone who is tested on it, in every epoch, in a fixed order."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from functools import partial

from muster.domain.canonical import Json
from muster.domain.case import Case
from muster.domain.errors import BadArgument, NotFound
from muster.domain.suite import PAGE, Snapshot, Subject, case_key, cases_key
from muster.domain.verdict import CaseResult
from muster.engine.context import Context
from muster.formats.packing import cases_of
from muster.formats.suite_spec import SuiteSpec
from muster.workloads.suite_pages import newest_page

STEPS_OF_PROGRESS = 100  # into how many pages the results of a small run are divided, so that its progress is seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One case, one subject, one epoch."""

    case: Case
    subject: Subject
    epoch: int
    system: str
    key: str  # below which everything stands that is done for it
    known: CaseResult | None = None  # what an earlier driver of this run found out


class Units:
    """Gives the units of a run, with what is known of each."""

    def __init__(self, spec: SuiteSpec, snapshot: Snapshot) -> None:
        self._spec, self._snapshot = spec, snapshot
        self._subjects = spec.subjects(snapshot)
        self._prompts = {prompt.name: prompt.text for prompt in snapshot.prompts}
        self._beside = {suite.file: suite.prompt or "" for suite in snapshot.suites}
        self.total = snapshot.asked * spec.epochs
        self.page_size = max(1, min(PAGE, self.total // STEPS_OF_PROGRESS))

    def of(self, case: Case) -> Iterator[Unit]:
        """Give the units of one case; a case with agents of its own is asked of those instead."""
        subjects = self._spec.tested_on(case, self._snapshot) if case.agents or case.flaw else self._subjects
        for subject in subjects or _nobody(case):
            system = self._prompts[subject.prompt] if subject.prompt else self._beside.get(case.file, "")
            label = subject.label
            for epoch in range(1, self._spec.epochs + 1):
                key = case_key(case.id, label, epoch)
                yield Unit(case=case, subject=subject, epoch=epoch, system=system, key=key)

    async def all(self, ctx: Context) -> AsyncIterator[Unit]:
        """Give every unit: the cases in order, for each the subjects, for each the epochs."""
        number = 0
        known: tuple[CaseResult, ...] = ()
        for page in range(self._snapshot.pages):
            for unit in await self._units(ctx, page):
                place = number % self.page_size
                if place == 0:
                    known = await newest_page(ctx, self._spec.tag, number // self.page_size)
                yield replace(unit, known=known[place]) if place < len(known) else unit
                number += 1

    async def _units(self, ctx: Context, page: int) -> Iterator[Unit]:
        # A step and no mere look: an heir takes the page over, since its reports need it.
        cases = cases_of(await ctx.step(cases_key(page), partial(_gone, page)))
        return (unit for case in cases for unit in self.of(case))


def _gone(page: int) -> Json:
    raise NotFound(f"page {page} of the cases that were read in is gone", suggestions=("start a new run",))


def _nobody(case: Case) -> tuple[Subject, ...]:
    raise BadArgument(
        f"nobody is named whom case {case.id} ({case.file}:{case.line}) is asked of",
        suggestions=("name an agent: --agent anthropic/MODEL", "or try it without a key: --agent sim/echo"),
    )
