"""`muster report`: what became of a suite run or a verification, in the format that somebody needs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import command, with_muster
from muster.cli.line import Argument, Group, Option
from muster.cli.manner import Manner
from muster.cli.speech import answer

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.cli.report_files import Reportable, Wanted
    from muster.domain.run import Run


def register(app: Group) -> None:
    """Add the command."""
    command(app, "report")(report)


def report(
    manner: Manner,
    run: Annotated[
        str, Argument(metavar="RUN|FILE", help="A run or an exported file; `last`: the last suite or verification.")
    ],
    format_: Annotated[
        str,
        Option("--format", metavar="FORMAT", help="terminal, json, junit, sarif, markdown or html."),
    ] = "terminal",
    output: Annotated[
        str, Option("--output", "-o", metavar="FILE", help="Where to write it; - is standard output.")
    ] = "-",
) -> None:
    """Report a suite run or a verification from the store: for people, for CI, for a pull request.

    Not a gate: it exits 0.
    """
    import asyncio

    from muster.cli.endings import ENDINGS
    from muster.cli.report_files import STDOUT, Wanted, wanted_format
    from muster.reports.writing import require_writable

    formats = list(dict.fromkeys(name for ending in ENDINGS.values() for name in ending.formats))
    wanted = Wanted(format=wanted_format(format_, formats), path=None if output == STDOUT else Path(output))
    if wanted.path is not None:
        require_writable(wanted.path)
    if Path(run).is_file():
        asyncio.run(_of_file(manner, Path(run), wanted))
        return

    async def work(muster: "Muster") -> None:
        found = await (_newest(muster) if run == "last" else muster.find(run))
        await _give(manner, await _opened(muster.store, found, found.id), wanted)

    with_muster(manner, work)


async def _newest(muster: "Muster") -> "Run":
    """Return the newest run that has a report."""
    from muster.cli.endings import ENDINGS
    from muster.domain.errors import NotFound

    found = await muster.newest(ENDINGS.keys())
    if found is None:
        ways = ("muster run PATH --agent A", "muster verify PATH", "muster runs list")
        raise NotFound("this store has no suite run and no verification yet", suggestions=ways)
    return found


async def _of_file(manner: Manner, file: Path, wanted: "Wanted") -> None:
    """Report the run of a file; the user's own store is not opened."""
    from muster.app.borrowed import borrow

    async with borrow(file) as (store, run):
        await _give(manner, await _opened(store, run, str(file)), wanted)


async def _opened(store: Any, run: "Run", reference: str) -> "Reportable":
    """Sum up a run as those of its workload are; one that has no reports is refused by those of suites."""
    from muster.cli.endings import ENDINGS

    return await ENDINGS.get(run.workload, ENDINGS["suite"]).reports(store, run, reference)


async def _give(manner: Manner, found: "Reportable", wanted: "Wanted") -> None:
    from muster.cli.report_files import wanted_format, write_reports

    wanted_format(wanted.format, found.formats)
    if manner.json and wanted.path is None:
        answer(manner, await _as_data(found, wanted.format), lambda console: None)
        return
    await write_reports(found, [wanted])
    if wanted.path is not None:
        data = {"run": found.run, "format": wanted.format, "ok": found.ok, "file": str(wanted.path)}
        text = f"run {found.run}: {wanted.format} report written to {wanted.path}"
        answer(manner, data, lambda console: console.print(text, soft_wrap=True))


async def _as_data(found: "Reportable", format_: str) -> dict[str, Any]:
    """Give the report inside the envelope: as data where it is data, else as text."""
    import io
    import json

    from muster.cli.report_files import TERMINAL

    out = io.StringIO()
    name = "json" if format_ == TERMINAL else format_
    await found.write(name, out)
    text = out.getvalue()
    return {"run": found.run, "format": name, "ok": found.ok, "report": json.loads(text) if name == "json" else text}
