"""Reports that were asked for by name: read from what a person wrote, then written to files or standard output."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from muster.cli.manner import Manner
from muster.cli.speech import PIPE_WIDTH, console
from muster.domain.errors import BadArgument
from muster.reports.writing import require_writable, write_file

if TYPE_CHECKING:
    from rich.console import Console

TERMINAL = "terminal"
STDOUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One report that is wanted; without a path it goes to standard output."""

    format: str
    path: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reportable:
    """A run that was summed up, and how it is written in each of its formats."""

    run: str
    ok: bool
    formats: tuple[str, ...]
    write: Callable[[str, TextIO], Awaitable[None]]  # the name of a format, and where to


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
