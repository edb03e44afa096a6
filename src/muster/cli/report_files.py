"""Reports that were asked for by name: read from what a person wrote, then written to files or standard output."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from muster.cli.speech import PIPE_WIDTH, console
from muster.domain.errors import BadArgument
from muster.reports.suite.summary import SuiteReport
from muster.reports.suite.writing import WRITERS, require_file, write_file, write_report
from muster.reports.suite_run import SuiteRun

TERMINAL = "terminal"
FORMATS = (TERMINAL, *WRITERS)
STDOUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One report that is wanted; without a path it goes to standard output."""

    format: str
    path: Path | None = None


def wanted_format(name: str) -> str:
    """Read the name of a format."""
    if name not in FORMATS:
        raise BadArgument(f"there is no report format {name!r}", suggestions=(f"one of {', '.join(FORMATS)}",))
    return name


def wanted_report(given: str) -> Wanted:
    """Read FORMAT=FILE; raises BadArgument before anything is spent, not when the report is to be written."""
    name, equals, file = given.partition("=")
    if not equals or not file:
        raise BadArgument(
            f"{given!r} does not say which report goes where", suggestions=("write it like junit=report.xml or json=-",)
        )
    path = None if file == STDOUT else Path(file)
    if path is not None:
        require_file(path)
    return Wanted(format=wanted_format(name), path=path)


async def write_reports(
    suite: SuiteRun, report: SuiteReport, wanted: Sequence[Wanted], reference: str
) -> tuple[Path, ...]:
    """Write some reports of one run; gives the files that were written."""
    for one in wanted:
        if one.path is None:
            await write_one(suite, report, one.format, sys.stdout, reference)
        else:
            await write_to(suite, report, one.format, one.path, reference)
    return tuple(one.path for one in wanted if one.path is not None)


async def write_to(suite: SuiteRun, report: SuiteReport, name: str, path: Path, reference: str) -> None:
    """Write one report to a file."""

    async def write(out: TextIO) -> None:
        await write_one(suite, report, name, out, reference)

    await write_file(path, write)


async def write_one(suite: SuiteRun, report: SuiteReport, name: str, out: TextIO, reference: str) -> None:
    """Write one report to an open file; colours only on a terminal."""
    if name != TERMINAL:
        await write_report(suite, report, name, out)
        return
    from rich.console import Console

    from muster.cli.suite_table import tell_report

    plain = Console(file=out, width=PIPE_WIDTH, highlight=False, markup=False, emoji=False)
    tell_report(console() if out is sys.stdout else plain, report, reference)
