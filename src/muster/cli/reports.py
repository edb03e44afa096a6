"""The reports of a run that are wanted: their formats, and the files that they are written to."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console

from muster.app.base.outputs import require_output
from muster.app.runs.reports import AnyReport, write_file
from muster.cli.formats import TERMINAL
from muster.cli.terminal.output import PIPE_WIDTH, CommonOptions, console, discard, note
from muster.domain.errors import BadArgument
from muster.text.words import choice_error

MARKDOWN = "markdown"
STDOUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedReport:
    """One report that is wanted; without a path it goes to standard output."""

    format: str
    path: Path | None = None


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
