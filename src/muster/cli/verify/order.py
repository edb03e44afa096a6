"""A verification as it was ordered: surveyed before anything is stored, driven, and concluded whatever it comes to."""

import io
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.app import Muster
from muster.app.costs import Quoting
from muster.app.reports import VerifyReport
from muster.app.runs.handle import RunHandle
from muster.app.runs.options import require_name
from muster.app.verify.verifications import Fixed, LeftBehind, Prepared
from muster.app.views.verify import fixed_view, left_behind_view
from muster.cli.drive import FreshEvents, ProgressSource, drive
from muster.cli.options import RunTerms
from muster.cli.outcome import (
    VERIFY_FORMATS,
    Reportable,
    RunOutcome,
    WantedReport,
    drive_and_conclude,
    wanted_reports,
    write_reports,
)
from muster.cli.terminal.output import CommonOptions, note, warn
from muster.cli.terminal.progress import ProgressState, display, run_sight
from muster.cli.verify.options import VerifyArguments, VerifyDispatchOptions
from muster.cli.verify.table import tell_left_behind, tell_report
from muster.cli.verify.words import first_words, tell_nothing
from muster.domain.batch import Batch
from muster.domain.entry import Event
from muster.domain.errors import BadArgument, BadFile
from muster.domain.money import Microdollars, show_usd
from muster.domain.run import Run, RunState
from muster.settings import parse_budget
from muster.text.words import count

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOrder:
    """What is to be verified, by whom, and on which terms."""

    asked: VerifyArguments
    sent: VerifyDispatchOptions
    terms: RunTerms
    reports: tuple[WantedReport, ...] = ()
    fix: bool = False

    @staticmethod
    def of(
        asked: VerifyArguments,
        sent: VerifyDispatchOptions,
        terms: RunTerms,
        common: CommonOptions,
        *,
        fix: bool = False,
    ) -> "VerifyOrder":
        """Check what was said before anything is opened."""
        require_name(terms.name)
        parse_budget(terms.budget)
        if fix and (asked.staged or sent.sending.detach):
            other = "--staged" if asked.staged else "--detach"
            raise BadArgument(
                f"--fix changes files when all is known, which does not go with {other}",
                suggestions=(f"leave one of them out: --fix or {other}",),
            )
        reports = wanted_reports(terms.reports, VERIFY_FORMATS, common)
        return VerifyOrder(asked=asked, sent=sent, terms=terms, reports=reports, fix=fix)


def preparing(
    muster: Muster, asked: VerifyArguments, sent: VerifyDispatchOptions
) -> AbstractAsyncContextManager[Prepared]:
    """Choose the files and the agents."""
    selection = asked.selection(muster.settings.verify.pending)
    return muster.verify.prepare(Path.cwd(), selection, asked.choice(live=sent.live, cache=sent.cache))


async def carry_out(muster: Muster, order: VerifyOrder, common: CommonOptions) -> int:
    """Verify as it was ordered; returns the exit code."""
    begun = await _begin(muster, order, common)
    if isinstance(begun, Prepared):
        selection = order.asked.selection(muster.settings.verify.pending)
        return tell_nothing(common, selection, begun, allowed=order.asked.allow_empty)

    async def again(spent: Microdollars) -> RunHandle | None:
        left = replace(order, terms=replace(order.terms, budget=_rest(order.terms.budget, spent)))
        after = await _begin(muster, left, common)
        return None if isinstance(after, Prepared) else after

    ending = FixingEnding(again) if order.fix else VerifyEnding()
    return await drive_and_conclude(muster, begun, ending, order.reports, common)


def _rest(budget: str | None, spent: Microdollars) -> str | None:
    """Return what is left of a budget; when nothing is, it is so small that nothing can be asked."""
    cap = parse_budget(budget)
    return None if cap is None else f"{max(cap - spent, 1) / 1_000_000:.6f}"


async def _begin(muster: Muster, order: VerifyOrder, common: CommonOptions) -> RunHandle | Prepared:
    """Start a verification; returns what was prepared instead when there is nothing to verify."""
    async with preparing(muster, order.asked, order.sent) as prepared:
        if prepared.is_empty:
            return prepared
        options = order.terms.options(muster, order.sent.sending.dispatch)
        planned = muster.verify.plan(prepared.spec, options.dispatch, Quoting.FIRST)
        order.sent.require_batches(planned.parts)
        note(common, first_words(planned, prepared))
        return await muster.verify.start(prepared, options, detach=order.sent.sending.detach)


class VerifyEnding:
    """Ends verifications."""

    def sights(self, muster: Muster) -> ProgressSource:
        """Look at a run while it is driven."""
        return VerifyProgress(muster)

    def require_places(self, muster: Muster) -> None:
        """Refuse, before anything is spent, when the reports of waves or the log cannot be written."""
        muster.verify.require_folders()

    async def outcome(
        self, muster: Muster, run: Run, wanted: tuple[WantedReport, ...], common: CommonOptions
    ) -> RunOutcome:
        """Write what a run leaves behind, and sum it up; raises NotFound for one that had not begun."""
        concluded = await muster.verify.conclude(run)
        report, left = concluded.report.summary, concluded.left
        found = Reportable(report=concluded.report, reference=run.id)
        for path in await write_reports(found, wanted):
            note(common, f"wrote {path}")
        return RunOutcome(
            ok=report.ok,
            verdict=report.verdict,
            data=await _data(found, report, left) if common.json else {},
            closer=f"muster report {run.id} --format markdown",
            tell=lambda out: _tell(out, report, left, run.id),
        )


async def _data(found: Reportable, report: VerifyReport, left: LeftBehind) -> dict[str, Any]:
    """Return the JSON report as data, with where everything lies."""
    out = io.StringIO()
    await found.write("json", out)
    return {"verified": len(report.files) - len(report.unseen), **json.loads(out.getvalue()), **left_behind_view(left)}


def _tell(console: "Console", report: VerifyReport, left: LeftBehind, reference: str) -> None:
    tell_report(console, report, reference, Path.cwd())
    tell_left_behind(console, left, Path.cwd())


class VerifyProgress:
    """Looks at a verification."""

    def __init__(self, muster: Muster) -> None:
        self._events = FreshEvents(muster)
        self._waves: list[int] = []
        self._begun: dict[int, int] = {}  # calls by wave
        self._words = ""

    async def look(self, run: Run, on_wire: int, batches: Sequence[Batch] = ()) -> ProgressState:
        """Return what is to be seen."""
        async for event in self._events.of(run):
            self._take(event)
        usual = run_sight(run, on_wire, batches)
        return ProgressState(
            title=usual.title,
            words=", ".join(part for part in (self._words, usual.words) if part),
            done=usual.done,
            total=max(usual.total or 0, sum(self._begun.values())),
            waits=usual.waits,
            since=usual.since,
        )

    def _take(self, event: Event) -> None:
        data = event.data
        if event.kind == "waves.started":
            self._waves = list(data["waves"])
        elif event.kind == "wave.started":
            self._begun[int(data["wave"])] = int(data["calls"])
            agents = len(data["agents"])
            self._words = f"{self._named(data['wave'])}, {'1 agent' if agents == 1 else f'{agents} agents'}"
        elif event.kind == "wave.ended":
            self._words = f"{self._named(data['wave'])} {'passed' if data['passed'] else 'did not pass'}"

    def _named(self, wave: int) -> str:
        """Name a wave; by how many there are only where that is what the numbers say."""
        number = len(self._waves)
        return f"wave {wave} of {number}" if self._waves == list(range(1, number + 1)) else f"wave {wave}"


Again = Callable[[Microdollars], Awaitable["RunHandle | None"]]  # with what was spent before


class FixingEnding(VerifyEnding):
    """Ends a verification that did not pass by mending what it found, and by verifying that; once."""

    def __init__(self, again: Again) -> None:
        self._again = again

    async def outcome(
        self, muster: Muster, run: Run, wanted: tuple[WantedReport, ...], common: CommonOptions
    ) -> RunOutcome:
        """Return what the last of the two verifications came to; a changed file that it did not see is no success."""
        first = await super().outcome(muster, run, (), common)
        if first.ok or run.state is not RunState.COMPLETED:
            return await super().outcome(muster, run, wanted, common)
        fixed = await muster.verify.fix(run)
        note(common, _words(first, run, fixed))
        last = await self._verified_again(muster, run, common) if fixed.changed else run
        found = await super().outcome(muster, last, wanted, common)
        missed = [] if last is run else await muster.verify.unverified(last, fixed)
        if missed:
            verdict = f"Changed and not verified any more: {', '.join(missed)}."
            warn(verdict)
            found = replace(found, ok=False, verdict=verdict)
        return replace(found, data={**found.data, "fix": fixed_view(run, fixed)}) if common.json else found

    async def _verified_again(self, muster: Muster, run: Run, common: CommonOptions) -> Run:
        """Verify what was changed; where that cannot be done, the first verification is what counts."""
        try:
            handle = await self._again(run.total.settled)
        except (BadArgument, BadFile) as error:
            warn(f"what was changed cannot be verified: {error.message}")
            return run
        if handle is None:
            warn("what was changed leaves nothing to verify")
            return run
        return await drive(muster, handle, display(common), self.sights(muster))


def _words(first: RunOutcome, run: Run, fixed: Fixed) -> str:
    if not fixed.changed:
        lines = ["nothing was changed: no finding proposes a change that can be made"]
    else:
        lines = [f"{first.verdict} This cost {show_usd(run.spent.settled)}."]
        lines.append(f"changed {count(len(fixed.changed), 'file')}: {', '.join(fixed.changed)}")
        lines.append("what was changed is verified once more; look at it with: git diff")
    return "\n".join([*lines, *(f"not changed: {one}" for one in fixed.left)])
