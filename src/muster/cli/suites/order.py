"""A suite run as it was ordered: surveyed before anything is stored, driven, and concluded whatever it comes to."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.app import Muster, Patience
from muster.app.costs import Quoting
from muster.app.runs.options import RunOptions, require_name
from muster.app.suites.plan import SuitePlan
from muster.app.suites.suites import AnswerSource, SuiteChoice
from muster.app.suites.values import NOTHING, SuiteSpec, read_spec, report_json
from muster.cli.drive import FreshEvents, ProgressSource
from muster.cli.options import DispatchOptions, RunTerms, refuse_useless
from muster.cli.outcome import (
    SUITE_FORMATS,
    RunOutcome,
    WantedReport,
    drive_and_conclude,
    wanted_reports,
    write_wanted,
)
from muster.cli.runs.words import new_run_words
from muster.cli.suites.table import tell_report
from muster.cli.terminal.output import CommonOptions, note, warn
from muster.cli.terminal.progress import ProgressState, facts, run_progress
from muster.domain.batch import Batch
from muster.domain.entry import Event
from muster.domain.run import Run
from muster.settings import parse_budget


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOrder:
    """How a suite is to be run, apart from what it is about."""

    terms: RunTerms
    sending: DispatchOptions
    patience: Patience
    reports: tuple[WantedReport, ...] = ()

    @staticmethod
    def of(
        terms: RunTerms,
        sending: DispatchOptions,
        patience: Patience,
        common: CommonOptions,
        inputs: Sequence[str | None] = (),
    ) -> "SuiteOrder":
        """Check what was said before anything is opened."""
        require_name(terms.name)
        parse_budget(terms.budget)
        reports = wanted_reports(terms.reports, SUITE_FORMATS, common, inputs)
        return SuiteOrder(terms=terms, sending=sending, patience=patience, reports=reports)

    def options(self, muster: Muster) -> RunOptions:
        """Return the options of the run."""
        return self.terms.options(muster, self.sending.dispatch)

    def require_use(self, spec: SuiteSpec) -> None:
        """Refuse options about batches in a run that has none, neither of its agents nor of its judge."""
        refuse_useless(self.patience, batch=self.sending.batch or spec.judge_dispatch == "batch")


async def carry_out(
    muster: Muster, chosen: SuiteChoice, source: AnswerSource, order: SuiteOrder, common: CommonOptions
) -> int:
    """Run suites as they were chosen; returns the exit code."""
    spec = await muster.suites.spec(chosen, source)
    order.require_use(spec)
    options = order.options(muster)
    found = muster.suites.plan(spec, options.dispatch, Quoting.FIRST if source.asks else Quoting.NONE, keep=True)
    known = source.run is not None or chosen.only_failed is not None
    anew = f"; this is {new_run_words(options.budget)}" if known and source.asks else ""
    tell_warnings(found, spec)
    note(common, _first_words(found) + _source_words(source) + anew)
    handle = await muster.suites.start(spec, options, origin=source.origin, detach=order.sending.detach, plan=found)
    return await drive_and_conclude(muster, handle, SuiteEnding(), order.reports, common)


async def judge_again(
    muster: Muster, reference: str, said: Mapping[str, Any], order: SuiteOrder, common: CommonOptions
) -> int:
    """Judge the answers of a run anew; returns the exit code."""
    before = await muster.suites.find(reference)
    order.require_use(read_spec(before.spec))
    options = order.options(muster)
    handle = await muster.suites.rejudge(before, said, options, detach=order.sending.detach)
    judged = f"the answers of run {before.id} are judged by {said['judge']}; no agent is called again"
    note(common, f"{judged}; this is {new_run_words(options.budget)}")
    return await drive_and_conclude(muster, handle, SuiteEnding(), order.reports, common)


def _source_words(source: AnswerSource) -> str:
    """Return where known answers come from, in words."""
    if source.run is None and source.answers is None:
        return ""
    where = source.answers or f"run {source.run.id if source.run else ''}"
    if not source.replays:
        return f"; answers of {where} are reused"
    return f"; answers come from {where} and {'no agent or judge' if source.answers is None else 'no agent'} is called"


def tell_warnings(found: SuitePlan, spec: SuiteSpec) -> None:
    """Print what is wrong or doubtful in the cases, also when quiet: some of them are not asked."""
    if spec.threshold <= NOTHING:
        warn("warning: --threshold 0: a case that sets no threshold passes with any score")
    for flaw in found.warnings:
        warn(f"warning: {flaw}")
    if found.more_warnings:
        warn(f"warning: {found.more_warnings:,} more; muster validate PATH shows them")


def _first_words(found: SuitePlan) -> str:
    """Return what is about to happen, before anything is spent."""
    calls = sum(load.calls for load in found.agents.values())
    suites = "1 suite" if found.suites == 1 else f"{found.suites} suites"
    words = f"{'1 case' if found.cases == 1 else f'{found.cases:,} cases'} of {suites}"
    words += f", {'1 call' if calls == 1 else f'{calls:,} calls'}" if calls else ""
    return words + (f", {found.judge.calls:,} to the judge" if found.judge.calls else "")


class SuiteEnding:
    """Ends suite runs."""

    def progress_source(self, muster: Muster) -> ProgressSource:
        """Look at a run while it is driven."""
        return SuiteProgress(muster)

    async def outcome(
        self, muster: Muster, run: Run, wanted: tuple[WantedReport, ...], common: CommonOptions
    ) -> RunOutcome:
        """Write what a run leaves behind, and sum it up; raises NotFound for one that had not begun."""
        found = await muster.suites.whole_report(run)
        report = found.summary
        await write_wanted(found, wanted, common)
        return RunOutcome(
            ok=report.ok,
            verdict=report.verdict,
            data=report_json(report),
            closer=f"muster report {run.id} --format html -o report.html",
            tell=lambda out: tell_report(out, report, run.id),
            again=() if report.ok else _again(run),
        )


def _again(run: Run) -> tuple[str, ...]:
    """Return the commands that ask once more for what is missing, and for what did not pass."""
    given = run.spec.get("path", ())
    paths = " ".join(shlex.quote(path) for path in ([given] if isinstance(given, str) else given))
    return (
        f"muster run {paths} --reuse {run.id}",
        f"muster run {paths} --only-failed {run.id}",
    )


class SuiteProgress:
    """Looks at a suite run."""

    def __init__(self, muster: Muster) -> None:
        self._events = FreshEvents(muster)
        self._done = 0
        self._total: int | None = None
        self._cases = 0
        self._counts: Counter[str] = Counter()

    async def look(self, run: Run, on_wire: int, batches: Sequence[Batch] = ()) -> ProgressState:
        """Return what is to be seen."""
        async for event in self._events.of(run):
            self._take(event)
        usual = run_progress(run, on_wire, batches)
        if self._total is None:  # calls are another unit, so nothing is counted before the cases are
            return replace(usual, total=None, done=0)
        ended = ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in self._counts.items())
        return ProgressState(
            title=usual.title,
            words=", ".join(part for part in (ended, facts(run, on_wire, "call")) if part),
            done=self._done,
            total=self._total,
            unit=self._unit(run),
            waits=usual.waits,
            since=usual.since,
        )

    def _unit(self, run: Run) -> str:
        epochs = read_spec(run.spec).epochs
        subjects = self._cases * epochs < (self._total or 0)
        return " × ".join(["cases", *(["subjects"] if subjects else []), *(["epochs"] if epochs > 1 else [])])

    def _take(self, event: Event) -> None:
        if event.kind == "suite.started":
            self._cases, self._total = int(event.data["cases"]), int(event.data["units"])
        elif event.kind == "suite.cases":
            self._done, self._total = int(event.data["done"]), int(event.data["total"])
            self._counts = Counter(event.data.get("ended", event.data["counts"]))  # of the unit that is counted
