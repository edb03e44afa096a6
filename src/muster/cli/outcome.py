"""The end of a run: reports are written whatever it came to; the exit code says whether all is well."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from rich.console import Console

from muster.app import Muster
from muster.app.runs.details import RunBatches
from muster.app.runs.handle import RunHandle
from muster.app.runs.questions import OpenQuestion
from muster.app.runs.reports import RunReport, RunSummary
from muster.app.views.errors import not_passed
from muster.app.views.runs import left_run_view, ways_on
from muster.cli.drive import ProgressSource, drive
from muster.cli.people import MAX_TOLD, question_words
from muster.cli.reports import Teller, WantedReport, write_wanted
from muster.cli.terminal.batches import batch_name, calls, trouble_lines
from muster.cli.terminal.display import display
from muster.cli.terminal.output import CommonOptions, answer, clean, console, fail, fail_with, note
from muster.domain.errors import LeftWaiting, MusterError, NotFound
from muster.domain.kind import WorkKind
from muster.domain.run import Run
from muster.text.views import Document, View
from muster.text.words import count


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What a run came to, as it is told."""

    ok: bool
    verdict: str
    data: View | Document
    closer: str  # the command that shows more of it
    tell: Callable[[Console], None]
    again: tuple[str, ...] = ()  # the commands that run what did not pass once more


class RunEnding(Protocol):
    """How runs of one kind end."""

    @property
    def kind(self) -> WorkKind:
        """The kind of work."""

    @property
    def tell_report(self) -> Teller | None:
        """Return what writes a report of a run for a terminal; None where Markdown does."""

    @property
    def shows_content(self) -> bool:
        """Return whether what is seen while a run is driven says more than its events."""

    def progress_source(self, muster: Muster) -> ProgressSource:
        """Look at a run while it is driven."""

    async def outcome(
        self, muster: Muster, run: Run, wanted: tuple[WantedReport, ...], common: CommonOptions
    ) -> RunOutcome:
        """Write what a run leaves behind, and sum it up; raises NotFound for one that had not begun."""


R = TypeVar("R", bound=RunSummary)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedEnding(Generic[R]):
    """The ending of runs of which everything stands in their reports."""

    kind: WorkKind
    progress: Callable[[Muster], ProgressSource]
    report: Callable[[Muster, Run], Awaitable[RunReport[R]]]
    view: Callable[[R], View | Document]
    tell: Callable[[Console, R], None]
    closer: str  # the command that shows more of a run, without its id
    shows_content: bool = True
    tell_report: Teller | None = None

    def progress_source(self, muster: Muster) -> ProgressSource:
        """Look at a run while it is driven."""
        return self.progress(muster)

    async def outcome(
        self, muster: Muster, run: Run, wanted: tuple[WantedReport, ...], common: CommonOptions
    ) -> RunOutcome:
        """Write the reports that are wanted, and sum a run up."""
        found = await self.report(muster, run)
        await write_wanted(found, wanted, common, self.tell_report)
        summary = found.summary
        return RunOutcome(
            ok=summary.ok,
            verdict=summary.verdict,
            data=self.view(summary),
            closer=f"{self.closer} {run.id}",
            tell=lambda console: self.tell(console, summary),
        )


async def drive_and_conclude(
    muster: Muster, handle: RunHandle, ending: RunEnding, wanted: tuple[WantedReport, ...], common: CommonOptions
) -> int:
    """Drive a run to its end and report it; returns the exit code, and raises what stopped the run."""
    try:
        run = await drive(muster, handle, display(common), ending.progress_source(muster), notes=not common.quiet)
    except MusterError as error:
        found = await _what_is_there(muster, await handle.run(), ending, wanted, common)
        if found is None or not common.json:
            raise
        return fail(common, error, found.data)
    if run.is_detached:
        batches, workers = await muster.runs.batches_of(run.id), await muster.runs.workers()
        return leave(common, run, batches, workers, await muster.runs.questions(run.id))
    return await conclude(muster, run, ending, wanted, common)


def leave(
    common: CommonOptions, run: Run, found: RunBatches, workers: int, questions: Sequence[OpenQuestion] = ()
) -> int:
    """Print where the answers will come from, and how to go on."""
    batches = found.under_way or found.batches
    ways = ways_on(run, found)
    named = " and ".join(batch_name(batch) for batch in batches)
    lines = [clean(question_words(question)) for question in questions[:MAX_TOLD]]
    lines += [f"run {run.id} waits for {_awaited(run, found, named, len(questions))}"]
    lines += [clean(line) for line in trouble_lines(found.stalled)]
    lines += [f"continue with: {ways[0]}", *(f"look at it with: {way}" for way in ways[1:])]
    lines += ["a worker can continue it too"] if workers else []
    told = "\n".join(lines)
    answer(common, left_run_view(run, found, workers, questions), lambda out: out.print(told, soft_wrap=True))
    return 0


def _awaited(run: Run, found: RunBatches, named: str, questions: int) -> str:
    if named:
        return f"{calls(found.saving.parked)} in {named}"
    if questions:
        return count(questions, "answer")
    return "batches of its child runs" if run.ended_reason == LeftWaiting.code else "a signal"


async def conclude(
    muster: Muster,
    run: Run,
    ending: RunEnding,
    wanted: tuple[WantedReport, ...],
    common: CommonOptions,
    *,
    again: bool = False,
) -> int:
    """Report a run that is completed; returns its exit code. With `again` it tells how to run what did not pass."""
    found = await ending.outcome(muster, run, wanted, common)
    ways = found.again if again else ()
    over = run.overdraft
    if over is None:
        code = _tell(common, found, wanted, ways)
        if ways and not common.json:
            note(
                common,
                "it was not resumed; to send the calls without an answer, or to run all cases that did not pass again:"
                + "".join(f"\n  {way}" for way in ways),
            )
        return code
    if not common.json:
        _tell(common, found, wanted)
    return fail_with(common, over, 1, found.data)


async def _what_is_there(
    muster: Muster, run: Run, ending: RunEnding, wanted: tuple[WantedReport, ...], common: CommonOptions
) -> RunOutcome | None:
    """Report a run that stopped: what it has done by then is not lost."""
    try:
        found = await ending.outcome(muster, run, wanted, common)
    except NotFound:
        return None  # it had not begun
    if not common.json:
        found.tell(console(stderr=_is_printed(wanted)))
    return found


def _tell(
    common: CommonOptions, found: RunOutcome, wanted: tuple[WantedReport, ...], ways: tuple[str, ...] = ()
) -> int:
    """Print how it ended; standard output belongs to a report that goes there."""
    if common.json and not found.ok:
        return fail_with(common, not_passed(found.verdict, [*ways, found.closer]), 1, found.data)
    if common.json or not _is_printed(wanted):
        answer(common, found.data, found.tell)
    elif not common.quiet:
        found.tell(console(stderr=True))
    return 0 if found.ok else 1


def _is_printed(wanted: tuple[WantedReport, ...]) -> bool:
    return any(one.path is None for one in wanted)
