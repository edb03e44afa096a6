"""Reports that were asked for by name: read from what a person wrote, then written to files or standard output."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from muster.app.reports import FORMATS, SUITE, VERIFICATION, RunReport, SuiteReport, require_writable, write_file
from muster.cli.manner import Manner
from muster.cli.speech import PIPE_WIDTH, console
from muster.domain.errors import BadArgument

if TYPE_CHECKING:
    from rich.console import Console

TERMINAL = "terminal"
STDOUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One report that is wanted; without a path it goes to standard output."""

    format: str
    path: Path | None = None


SUITE_FORMATS = (TERMINAL, *FORMATS[SUITE])
VERIFY_FORMATS = (TERMINAL, *FORMATS[VERIFICATION])
ALL_FORMATS = tuple(dict.fromkeys((*SUITE_FORMATS, *VERIFY_FORMATS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reportable:
    """A run that was summed up, and the reference under which a person knows it: an id, or a file."""

    report: RunReport
    reference: str

    @property
    def formats(self) -> tuple[str, ...]:
        """Return the names of the formats in which it can be written."""
        return (TERMINAL, *self.report.formats)

    async def write(self, name: str, out: TextIO) -> None:
        """Write it in one of its formats."""
        if name != TERMINAL:
            await self.report.write(name, out)
        elif isinstance(self.report.summary, SuiteReport):
            from muster.cli.suite_table import tell_report

            tell_report(console_for(out), self.report.summary, self.reference)
        else:
            from muster.cli.verify_table import tell_report as tell_verification

            tell_verification(console_for(out), self.report.summary, self.reference, Path.cwd())


def wanted_format(name: str, formats: Sequence[str]) -> str:
    """Read the name of a format."""
    if name not in formats:
        raise BadArgument(f"there is no report format {name!r}", suggestions=(f"one of {', '.join(formats)}",))
    return name


def wanted_report(given: str, formats: Sequence[str]) -> Wanted:
    """Read FORMAT=FILE; raises BadArgument before anything is spent, not when the report is to be written."""
    name, equals, file = given.partition("=")
    if not equals or not file:
        raise BadArgument(
            f"{given!r} does not say which report goes where", suggestions=("write it like junit=report.xml or json=-",)
        )
    wanted = Wanted(format=wanted_format(name, formats), path=None if file == STDOUT else Path(file))
    if wanted.path is not None:
        require_writable(wanted.path)
    return wanted


def wanted_reports(given: Sequence[str], formats: Sequence[str], manner: Manner) -> tuple[Wanted, ...]:
    """Read every FORMAT=FILE; only one report can go to standard output, and none beside an envelope."""
    wanted = tuple(wanted_report(one, formats) for one in given)
    printed = [one for one in wanted if one.path is None]
    if len(printed) > 1 or (printed and manner.json):
        raise BadArgument(
            "standard output holds one report, and none beside --json",
            suggestions=("write it to a file: json=out.json",),
        )
    return wanted


async def write_reports(found: Reportable, wanted: Sequence[Wanted]) -> tuple[Path, ...]:
    """Write some reports of one run; gives the files that were written."""
    for one in wanted:
        if one.path is None:
            await found.write(one.format, sys.stdout)
        else:
            await _write_to(found, one.format, one.path)
    return tuple(one.path for one in wanted if one.path is not None)


async def _write_to(found: Reportable, name: str, path: Path) -> None:
    async def write(out: TextIO) -> None:
        await found.write(name, out)

    await write_file(path, write)


def console_for(out: TextIO) -> "Console":
    """Make a console on an open file; colours only on a terminal."""
    if out is sys.stdout:
        return console()
    from rich.console import Console

    return Console(file=out, width=PIPE_WIDTH, highlight=False, markup=False, emoji=False)
