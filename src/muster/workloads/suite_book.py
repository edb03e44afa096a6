"""The book of a suite run: results are entered in order, kept page by page, counted, and told as they come."""

from collections import Counter

from muster.checks.settling import settle
from muster.domain.canonical import Json
from muster.domain.suite import results_key
from muster.domain.verdict import CaseResult, Status
from muster.engine.context import Context
from muster.formats.suite_spec import SuiteSpec
from muster.workloads.aside import Aside
from muster.workloads.suite_pages import keep_page
from muster.workloads.suite_units import Units


class Book:
    """Takes results in the order of the units; a page is written while the next one fills."""

    def __init__(self, ctx: Context, spec: SuiteSpec, units: Units) -> None:
        self._ctx, self._tag, self._units = ctx, spec.tag, units
        self._page: list[CaseResult] = []
        self._pages = 0
        self._entered = 0
        self._last_epoch = spec.epochs
        self._epochs: list[Status] = []  # of the case and subject that is being counted
        self._counts: Counter[Status] = Counter()  # of cases under subjects
        self._ended: Counter[Status] = Counter()  # of single epochs
        self._aside = Aside()

    async def enter(self, result: CaseResult) -> None:
        """Take one result."""
        self._page.append(result)
        if len(self._page) == self._units.page_size:
            await self._turn()

    async def close(self) -> Json:
        """Keep what is left, and say how the cases ended; nothing is good unless something passed and all did."""
        await self._turn()
        await self._aside.done()
        run = {status: count for status, count in self._counts.items() if status is not Status.SKIPPED}
        return {
            "ok": set(run) == {Status.PASSED},
            "units": self._entered,
            "cases": sum(self._counts.values()),
            **self._told(),
        }

    async def abandon(self) -> None:
        """Let go of a page that is being written, when the run stops: its calls are in the journal all the same."""
        await self._aside.abandon()

    async def _turn(self) -> None:
        """Begin a new page, as soon as the one before is written."""
        if self._page:
            page, self._page = tuple(self._page), []
            number, self._pages = self._pages, self._pages + 1
            await self._aside.do(self._write(number, page))

    async def _write(self, number: int, results: tuple[CaseResult, ...]) -> None:
        for result in await keep_page(self._ctx, self._tag, number, results):
            self._count(result)
        ended = {str(status): self._ended[status] for status in Status if self._ended[status]}
        done = {"done": self._entered, "total": self._units.total, "ended": ended}
        await self._ctx.emit(f"{results_key(self._tag, number)}/told", "suite.cases", done | self._told())

    def _count(self, result: CaseResult) -> None:
        """Count what stands in the journal, which is what reports will say too."""
        self._entered += 1
        self._ended[result.status] += 1
        self._epochs.append(result.status)
        if result.epoch == self._last_epoch:
            self._counts[settle(self._epochs)] += 1
            self._epochs = []

    def _told(self) -> dict[str, Json]:
        return {"counts": {str(status): self._counts[status] for status in Status if self._counts[status]}}
