"""A suite run as it was ordered: surveyed before anything is stored, driven, and concluded whatever it comes to."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from muster.app import Muster
from muster.app.base.costs import Quoting
from muster.app.kinds import SUITE
from muster.app.serving.orders import naming_agents
from muster.app.suites.plan import SuitePlan
from muster.app.suites.suites import AnswerSource
from muster.app.suites.values import NOTHING, SuiteSpec, read_spec, suite_report_view
from muster.cli.drive import FreshEvents, ProgressSource
from muster.cli.formats import formats_of
from muster.cli.options import refuse_useless
from muster.cli.outcome import RunOutcome, drive_and_conclude
from muster.cli.reports import WantedReport, wanted_reports, write_wanted
from muster.cli.suites.options import RejudgeArguments, RunArguments
from muster.cli.suites.table import tell_report
from muster.cli.terminal.output import CommonOptions, note, warn
from muster.cli.terminal.progress import ProgressState, facts, run_progress
from muster.cli.terminal.runs import new_run_words
from muster.domain.batch import Batch
from muster.domain.dispatch import Mode
from muster.domain.entry import Event
from muster.domain.order import shared_fields
from muster.domain.run import Run


def suite_reports(
    arguments: RunArguments | RejudgeArguments, common: CommonOptions, inputs: Sequence[str]
) -> tuple[WantedReport, ...]:
    """Return the reports that are wanted; raises for one that would be written over what is read."""
    return wanted_reports(arguments.reports or (), formats_of(SUITE), common, inputs)


def _require_use(arguments: RunArguments | RejudgeArguments, spec: SuiteSpec) -> None:
    """Refuse options about batches in a run that has none, neither of its agents nor of its judge."""
    batch = arguments.order.dispatch is Mode.BATCH or spec.judges_in_batches
    refuse_useless(arguments.patience, batch=batch)


async def carry_out(
    muster: Muster, arguments: RunArguments, wanted: tuple[WantedReport, ...], common: CommonOptions
) -> int:
    """Run suites as it was ordered; returns the exit code."""
    order = arguments.order
    with naming_agents(muster, order):
        source = await muster.suites.source(replay=order.replay, reuse=order.reuse)
        spec = await muster.suites.spec(order, source)
        _require_use(arguments, spec)
        options = muster.runs.ordered(order)
        found = muster.suites.plan(spec, options.dispatch, Quoting.FIRST if source.asks else Quoting.NONE, keep=True)
    known = source.run is not None or order.repeats
    anew = f"; this is {new_run_words(options.budget)}" if known and source.asks else ""
    tell_warnings(found, spec)
    note(common, _first_words(found) + _source_words(source) + anew)
    handle = await muster.suites.start(spec, options, origin=source.origin, detach=arguments.detach, plan=found)
    return await drive_and_conclude(muster, handle, SUITES, wanted, common)


async def judge_again(
    muster: Muster, arguments: RejudgeArguments, wanted: tuple[WantedReport, ...], common: CommonOptions
) -> int:
    """Judge the answers of a run anew; returns the exit code."""
    order = arguments.order
    before = await muster.suites.find(order.run)
    _require_use(arguments, read_spec(before.spec))
    options = muster.runs.ordered(order)
    changes = shared_fields(order, SuiteSpec)
    handle = await muster.suites.rejudge(before, changes, options, detach=arguments.detach)
    judged = f"the answers of run {before.id} are judged by {order.judge}; no agent is called again"
    note(common, f"{judged}; this is {new_run_words(options.budget)}")
    return await drive_and_conclude(muster, handle, SUITES, wanted, common)


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

    kind = SUITE
    shows_content = False
    tell_report = staticmethod(tell_report)

    def progress_source(self, muster: Muster) -> ProgressSource:
        """Look at a run while it is driven."""
        return SuiteProgress(muster)

    async def outcome(
        self, muster: Muster, run: Run, wanted: tuple[WantedReport, ...], common: CommonOptions
    ) -> RunOutcome:
        """Write what a run leaves behind, and sum it up; raises NotFound for one that had not begun."""
        found = await muster.suites.whole_report(run)
        report = found.summary
        await write_wanted(found, wanted, common, tell_report)
        return RunOutcome(
            ok=report.ok,
            verdict=report.verdict,
            data=suite_report_view(report),
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
        data: Mapping[str, Any] = event.data
        if event.kind == "suite.started":
            self._cases, self._total = int(data["cases"]), int(data["units"])
        elif event.kind == "suite.cases":
            self._done, self._total = int(data["done"]), int(data["total"])
            self._counts = Counter(data.get("ended", data["counts"]))  # of the unit that is counted


SUITES = SuiteEnding()
