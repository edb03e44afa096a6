"""`muster report`: what became of a suite run, in the format that somebody needs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muster.cli.frame import command, with_muster
from muster.cli.manner import Manner
from muster.cli.speech import answer

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.cli.report_files import Wanted
    from muster.reports.suite.summary import SuiteReport
    from muster.reports.suite_run import SuiteRun


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "report")(report)


def report(
    manner: Manner,
    run: Annotated[str, typer.Argument(metavar="RUN|FILE", help="A run, or a file that `muster runs export` wrote.")],
    format_: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="terminal, json, junit, sarif, markdown or html."),
    ] = "terminal",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; - is standard output.")
    ] = "-",
) -> None:
    """Report a suite run from the store: for people, for CI, for a pull request. Not a gate: it exits 0."""
    import asyncio

    from muster.cli.report_files import STDOUT, Wanted, wanted_format
    from muster.reports.suite.writing import require_file

    wanted = Wanted(format=wanted_format(format_), path=None if output == STDOUT else Path(output))
    if wanted.path is not None:
        require_file(wanted.path)
    if Path(run).is_file():
        asyncio.run(_of_file(manner, Path(run), wanted))
        return

    async def work(muster: "Muster") -> None:
        from muster.reports.suite_run import open_suite_run

        found = await muster.find(run)
        await _give(manner, await open_suite_run(muster.store, found), wanted, found.id)

    with_muster(manner, work)


async def _of_file(manner: Manner, file: Path, wanted: "Wanted") -> None:
    """Report the run of a file; the user's own store is not opened."""
    from muster.app.borrowed import borrow
    from muster.reports.suite_run import open_suite_run

    async with borrow(file) as (store, run):
        await _give(manner, await open_suite_run(store, run), wanted, str(file))


async def _give(manner: Manner, suite: "SuiteRun", wanted: "Wanted", reference: str) -> None:
    from muster.cli.report_files import write_reports
    from muster.reports.suite.summary import summarize

    found = await summarize(suite)
    if manner.json and wanted.path is None:
        answer(manner, await _as_data(suite, found, wanted.format), lambda console: None)
        return
    await write_reports(suite, found, [wanted], reference)
    if wanted.path is not None:
        data = {"run": suite.run.id, "format": wanted.format, "ok": found.ok, "file": str(wanted.path)}
        text = f"run {suite.run.id}: {wanted.format} report written to {wanted.path}"
        answer(manner, data, lambda console: console.print(text, soft_wrap=True))


async def _as_data(suite: "SuiteRun", found: "SuiteReport", format_: str) -> dict[str, Any]:
    """Give the report inside the envelope: as data where it is data, else as text."""
    import io
    import json

    from muster.cli.report_files import TERMINAL
    from muster.reports.suite.writing import write_report

    out = io.StringIO()
    name = "json" if format_ == TERMINAL else format_
    await write_report(suite, found, name, out)
    text = out.getvalue()
    return {"run": suite.run.id, "format": name, "ok": found.ok, "report": json.loads(text) if name == "json" else text}
