"""The end of a run: reports are written whatever it came to; the exit code says whether all is well."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TextIO, TypeVar

from rich.console import Console

from muster.app import Muster
from muster.app.base.outputs import require_output
from muster.app.kinds import KINDS
from muster.app.runs.details import RunBatches
from muster.app.runs.handle import RunHandle
from muster.app.runs.questions import OpenQuestion
from muster.app.runs.reports import AnyReport, RunReport, RunSummary, write_file
from muster.app.views.errors import not_passed
from muster.app.views.runs import left_run_view, ways_on
from muster.cli.drive import ProgressSource, drive
from muster.cli.people import MOST_TOLD, question_words
from muster.cli.terminal.batches import batch_name, calls, trouble_lines
from muster.cli.terminal.display import display
from muster.cli.terminal.output import PIPE_WIDTH, CommonOptions, answer, clean, console, discard, fail, fail_with, note
from muster.domain.errors import BadArgument, LeftWaiting, MusterError, NotFound
from muster.domain.kind import WorkKind
from muster.domain.run import Run
from muster.text.views import Document, View
from muster.text.words import choice_error, count

TERMINAL, MARKDOWN = "terminal", "markdown"
STDOUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedReport:
    """One report that is wanted; without a path it goes to standard output."""

    format: str
    path: Path | None = None


def formats_of(kind: WorkKind) -> tuple[str, ...]:
    """Return the formats in which runs of a kind can be reported."""
    return (TERMINAL, *(() if kind.report is None else kind.report.formats))


ALL_FORMATS = tuple(dict.fromkeys(name for known in KINDS for name in formats_of(known.kind)))


Teller = Callable[[Console, Any, str], None]  # a summary, and the reference under which a person knows the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Reportable:
    """A run that was summed up, and the reference under which a person knows it: an id, or a file."""

    report: AnyReport
    reference: str
    tell: Teller | None = None  # what a terminal shows; where there is none, Markdown

    @property
    def formats(self) -> tuple[str, ...]:
        """Return the names of the formats in which it can be written."""
        return (TERMINAL, *self.report.formats)

    async def write(self, name: str, out: TextIO) -> None:
        """Write it in one of its formats."""
        if name != TERMINAL:
            await self.report.write(name, out)
        elif self.tell is None:
            await self.report.write(MARKDOWN, out)
        else:
            self.tell(console_for(out), self.report.summary, self.reference)


def wanted_format(name: str, formats: Sequence[str], argument: str = "format") -> str:
    """Read the name of a format."""
    if name not in formats:
        raise BadArgument(choice_error(formats, name), argument=argument)
    return name


def wanted_report(given: str, formats: Sequence[str], inputs: Sequence[str | None] = ()) -> WantedReport:
    """Read FORMAT=FILE; raises BadArgument before anything is spent, not when the report is to be written."""
    name, equals, file = given.partition("=")
    if not equals or not file:
        raise BadArgument(
            f"--report must be FORMAT=FILE, not {given!r}", suggestions=("write it like junit=report.xml or json=-",)
        )
    format_name = wanted_format(name, formats, "the format of --report")
    wanted = WantedReport(format=format_name, path=None if file == STDOUT else Path(file))
    if wanted.path is not None:
        require_output(wanted.path, wanted.format, inputs)
    return wanted


def wanted_reports(
    given: Sequence[str], formats: Sequence[str], common: CommonOptions, inputs: Sequence[str | None] = ()
) -> tuple[WantedReport, ...]:
    """Read every FORMAT=FILE; only one report can go to standard output, and none beside an envelope."""
    wanted = tuple(wanted_report(one, formats, inputs) for one in given)
    printed = [one for one in wanted if one.path is None]
    if len(printed) > 1 or (printed and common.json):
        raise BadArgument(
            "only one report can go to standard output, and none with --json",
            suggestions=("write it to a file: json=out.json",),
        )
    return wanted


async def write_wanted(
    report: AnyReport, wanted: Sequence[WantedReport], common: CommonOptions, tell: Teller | None = None
) -> None:
    """Write the reports that are wanted of a run that has ended, and say which files they are."""
    await write_reports(Reportable(report=report, reference=report.run.id, tell=tell), wanted)
    for one in wanted:
        if one.path is not None:
            note(common, f"wrote {one.path}")


async def write_reports(found: Reportable, wanted: Sequence[WantedReport]) -> None:
    """Write some reports of one run."""
    for one in wanted:
        if one.path is None:
            await _print_report(found, one.format)
        else:
            await _write_to(found, one.format, one.path)


async def _print_report(found: Reportable, name: str) -> None:
    """Write a report to standard output; a reader that closes its pipe early does not change the exit code."""
    try:
        await found.write(name, sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)


async def _write_to(found: Reportable, name: str, path: Path) -> None:
    async def write(out: TextIO) -> None:
        await found.write(name, out)

    await write_file(path, write)


def console_for(out: TextIO) -> Console:
    """Make a console on an open file; colours only on a terminal."""
    if out is sys.stdout:
        return console()
    return Console(file=out, width=PIPE_WIDTH, highlight=False, markup=False, emoji=False)


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
        """Whether what is seen while a run is driven says more than its events."""

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
    lines = [clean(question_words(question)) for question in questions[:MOST_TOLD]]
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
