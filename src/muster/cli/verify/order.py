"""A verification as it was ordered: surveyed before anything is stored, driven, and concluded whatever it comes to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.app import Muster
from muster.app.kinds import VERIFICATION
from muster.app.pool.task_queries import Task
from muster.app.runs.options import RunOptions
from muster.app.verify.request import (
    ConcludedVerification,
    Repair,
    StartedVerification,
    VerifyRequest,
    ordered_choice,
    ordered_dispatch,
)
from muster.app.verify.values import FileSelection, VerifyReport
from muster.app.views.verify import concluded_view
from muster.cli.drive import FreshEvents, ProgressSource, SignalHandler, drive
from muster.cli.formats import formats_of
from muster.cli.options import batch_option
from muster.cli.outcome import RunOutcome, drive_and_conclude
from muster.cli.reports import WantedReport, wanted_reports, write_wanted
from muster.cli.terminal.display import display
from muster.cli.terminal.output import CommonOptions, note, warn
from muster.cli.terminal.progress import ProgressState, run_progress
from muster.cli.verify.options import VerifyCommandArguments
from muster.cli.verify.table import tell_left_behind, tell_report, tell_work
from muster.cli.verify.words import first_words, tell_nothing
from muster.domain.batch import Batch
from muster.domain.entry import Event
from muster.domain.errors import BadArgument, ConflictingArguments
from muster.domain.money import show_usd
from muster.domain.run import Run
from muster.domain.run_order import require_name
from muster.text.words import count
from muster.verify.order import VerificationOrder, require_consistent

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOrder:
    """What is to be verified, by whom, and on which terms."""

    order: VerificationOrder
    detach: bool = False
    reports: tuple[WantedReport, ...] = ()
    fix: bool = False
    batch_option: str = ""  # that was given, and has no use without batches

    @staticmethod
    def of(arguments: VerifyCommandArguments, common: CommonOptions) -> "VerifyOrder":
        """Check what was said before anything is opened."""
        require_name(arguments.order.name)
        require_sending(arguments.order, detach=arguments.detach)
        return VerifyOrder(
            order=arguments.order,
            detach=arguments.detach,
            reports=wanted_reports(arguments.reports or (), formats_of(VERIFICATION), common),
            fix=arguments.fix,
            batch_option=batch_option(arguments.patience),
        )


def require_sending(order: VerificationOrder, *, detach: bool) -> None:
    """Raise ConflictingArguments, before a store is opened, for what contradicts that every call is live."""
    require_consistent(order)
    if detach and order.live:
        raise ConflictingArguments("detach", "live")


def request_of(muster: Muster, order: VerificationOrder, options: RunOptions, *, detach: bool) -> VerifyRequest:
    """Return what the options of the command ask for in the folder of this process."""
    changed = order.changed is not None
    return VerifyRequest(
        folder=Path.cwd(),
        selection=FileSelection(
            paths=() if changed else order.paths,
            changed=changed,
            ref=_commit(order) if changed else None,
            staged=order.staged,
            pending=muster.settings.verify.pending if order.pending else None,
        ),
        choice=ordered_choice(order),
        options=options,
        detach=detach,
    )


def _commit(order: VerificationOrder) -> str | None:
    """Return the commit to compare with; with --changed a word is one, unless it is a file."""
    words = [*([order.changed] if order.changed else []), *order.paths]
    if files := [path for path in order.paths if Path(path).exists()]:
        raise BadArgument(
            f"{files[0]} and --changed cannot be used together",
            suggestions=("muster verify PATH…", "or muster verify --changed [COMMIT]"),
        )
    if len(words) > 1:
        raise BadArgument(
            "with --changed there is at most one word, the commit to compare with",
            suggestions=("muster verify --changed main", "or name files and leave --changed out"),
        )
    return words[0] if words else None


async def carry_out(muster: Muster, order: VerifyOrder, common: CommonOptions) -> int:
    """Verify as it was ordered; returns the exit code."""
    options = muster.runs.ordered(order.order, ordered_dispatch(order.order))
    wanted = request_of(muster, order.order, options, detach=order.detach)
    request = replace(wanted, batch_option=order.batch_option)
    started = await (muster.repairs if order.fix else muster.verify).begin(request)
    if started.handle is None:
        return tell_nothing(common, request.selection, started.prepared, allowed=order.order.allow_empty)
    note(common, first_words(started))
    by_agent = muster.repairs.agent_of(await started.handle.run())
    ending = RepairEnding(request) if order.fix and not by_agent else VERIFICATIONS
    return await drive_and_conclude(muster, started.handle, ending, order.reports, common)


class VerifyEnding:
    """Ends verifications."""

    kind = VERIFICATION
    shows_content = False

    def tell_report(self, console: "Console", report: VerifyReport, reference: str) -> None:
        """Write a report of a run for a terminal, with files named from this folder."""
        tell_report(console, report, reference, Path.cwd())

    def progress_source(self, muster: Muster) -> ProgressSource:
        """Look at a run while it is driven."""
        return VerifyProgress(muster)

    async def outcome(
        self, muster: Muster, run: Run, wanted: tuple[WantedReport, ...], common: CommonOptions
    ) -> RunOutcome:
        """Write what a run leaves behind, and sum it up; raises NotFound for one that had not begun.

        Where an agent is to repair what was found, the verification of its work is what counts.
        """
        first = await muster.verify.conclude(run)
        if not first.can_be_repaired or not muster.repairs.agent_of(run):
            return await self.outcome_of(first, wanted, common)
        SignalHandler(muster, warn).install()
        repair = await muster.repairs.repair(first, lambda task: note(common, _task_words(first, task)))
        last = await self.concluded(muster, repair, common)
        if last.needs_part:
            last = replace(last, repair=await self._after_part(muster, first, repair, last.report.run, common))
        await muster.repairs.tidy(repair.again)
        return await self.told(last, wanted, common)

    async def concluded(self, muster: Muster, repair: Repair, common: CommonOptions) -> ConcludedVerification:
        """Return what the verification of what was changed came to; without one, the first is what counts."""
        run = None if repair.again is None else await self._driven(muster, repair.again, common)
        return await muster.verify.conclude(run or repair.before, repair)

    async def _after_part(
        self, muster: Muster, first: ConcludedVerification, repair: Repair, whole: Run, common: CommonOptions
    ) -> Repair:
        """Return a repair that passed as a whole, after the changes to files with findings alone were verified."""
        started = await muster.repairs.verify_part(first, repair, whole)
        run = None if started is None else await self._driven(muster, started, common)
        await muster.repairs.tidy(started)
        return muster.repairs.concluded(repair, None if run is None else await muster.verify.conclude(run))

    async def told(
        self, last: ConcludedVerification, wanted: tuple[WantedReport, ...], common: CommonOptions
    ) -> RunOutcome:
        """Return what is told of the verification of a repair."""
        if last.repair is not None and last.repair.obstacle:
            warn(last.repair.obstacle)
        if last.unverified:
            warn(last.verdict)
        return await self.outcome_of(last, wanted, common)

    async def _driven(self, muster: Muster, started: StartedVerification, common: CommonOptions) -> Run | None:
        """Drive a verification of what was changed to its end; None when there was nothing to verify."""
        if started.handle is None:
            return None
        note(common, first_words(started))
        return await drive(
            muster, started.handle, display(common), self.progress_source(muster), notes=not common.quiet
        )

    async def outcome_of(
        self, found: ConcludedVerification, wanted: tuple[WantedReport, ...], common: CommonOptions
    ) -> RunOutcome:
        """Write the reports that are wanted, and return what is told of a verification."""
        run, report = found.report.run, found.report.summary
        await write_wanted(found.report, wanted, common, self.tell_report)

        def tell(console: "Console") -> None:
            self.tell_report(console, report, run.id)
            tell_left_behind(console, found.left, Path.cwd())
            if found.repair is not None and found.repair.work is not None:
                tell_work(console, found.repair.work, accepted=found.ok)

        return RunOutcome(
            ok=found.ok,
            verdict=found.verdict,
            data=await concluded_view(found) if common.json else {},
            closer=f"muster report {run.id} --format markdown",
            tell=tell,
        )


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
        usual = run_progress(run, on_wire, batches)
        return ProgressState(
            title=usual.title,
            words=", ".join(part for part in (self._words, usual.words) if part),
            done=usual.done,
            total=max(usual.total or 0, sum(self._begun.values())),
            waits=usual.waits,
            since=usual.since,
        )

    def _take(self, event: Event) -> None:
        data: Mapping[str, Any] = event.data
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


class RepairEnding(VerifyEnding):
    """Ends a verification that did not pass by making the changes that it proposes, and by verifying them; once."""

    def __init__(self, request: VerifyRequest) -> None:
        self._request = request

    async def outcome(
        self, muster: Muster, run: Run, wanted: tuple[WantedReport, ...], common: CommonOptions
    ) -> RunOutcome:
        """Return what the last of the two verifications came to."""
        first = await muster.verify.conclude(run)
        if not first.can_be_repaired:
            return await self.outcome_of(first, wanted, common)
        repair = await muster.verify.repair(run, self._request)
        note(common, _words(first, repair))
        return await self.told(await self.concluded(muster, repair, common), wanted, common)


def _task_words(first: ConcludedVerification, task: Task) -> str:
    cost = show_usd(first.report.run.spent.settled)
    given = f"{task.spec.agent} repairs the findings as task {task.id}, in a separate worktree"
    return f"{first.verdict} This cost {cost}.\n{given}"


def _words(first: ConcludedVerification, repair: Repair) -> str:
    fixed = repair.fixed
    if not fixed.changed:
        lines = ["nothing was changed: no finding proposes a change that can be made"]
    else:
        lines = [f"{first.verdict} This cost {show_usd(repair.before.spent.settled)}."]
        lines.append(f"changed {count(len(fixed.changed), 'file')}: {', '.join(fixed.changed)}")
        lines.append("what was changed is verified once more; look at it with: git diff")
    return "\n".join([*lines, *(f"not changed: {one}" for one in fixed.left)])


VERIFICATIONS = VerifyEnding()
