"""`muster runs`: what is stored; the commands that go on with runs and move them stand beside it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.drive import PartingWords, parting
from muster.cli.frame import command, group, with_muster
from muster.cli.line import Argument, Group, Option
from muster.cli.options import patient
from muster.cli.runs import resume, start
from muster.cli.suites import run
from muster.cli.terminal.output import OutputOptions, answer, note, print_json, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from muster.app import Muster, Patience
    from muster.app.run_details import CallDetails, RunDetails
    from muster.cli.terminal.progress import Display, ProgressState
    from muster.domain.batch import Batch
    from muster.domain.ids import RunId
    from muster.domain.run import Run, RunState


def register_cancel(app: Group) -> None:
    """Add the command."""
    command(app, "cancel")(cancel)


@patient
def cancel(
    manner: OutputOptions,
    patience: "Patience",
    run: Annotated[str, Argument(metavar="RUN", help="An id, the beginning of one, a name, or `last`.")],
) -> None:
    """Cancel a run and its batches; its replies stay and can be reused."""
    from muster.app.views.runs import whole_run_view
    from muster.cli.terminal.progress import display

    async def work(muster: "Muster") -> "tuple[str, dict[str, Any]]":
        canceled = await _cancel(muster, run, display(manner, stays=False), said)
        left = await muster.runs.batches_under_way(canceled.id)
        view = whole_run_view(canceled, await muster.runs.batches_of(canceled.id))
        return "\n".join(_words(canceled, left)), view

    with parting() as said:
        text, data = with_muster(manner, work, patience=patience)
    answer(manner, data, lambda console: console.print(text, soft_wrap=True))


async def _cancel(muster: "Muster", reference: str, display: "Display", said: PartingWords) -> "Run":
    from muster.cli.batches.words import some_batches

    run = await muster.runs.find(reference)
    batches = await muster.runs.batches_under_way(run.id)
    if run.is_driven or not batches:
        return await muster.runs.cancel(run.id)
    said.words = f"run {run.id} is canceled; the provider goes on to stop {some_batches(len(batches))}"
    said.ways = tuple(f"muster batch fetch {batch.id}" for batch in batches)
    with display:
        display.tell(f"waiting until the provider has stopped {some_batches(len(batches))} of run {run.id}")
        return await _with_batches(muster, run, batches, display)


async def _with_batches(muster: "Muster", run: "Run", batches: "Sequence[Batch]", display: "Display") -> "Run":
    """Cancel a run that only waits for batches, and wait with it."""
    from muster.cli.terminal.progress import run_sight, shown
    from muster.domain.batch import UNDER_WAY

    async def look() -> "ProgressState":
        fresh = [await muster.batches.get(batch.id) for batch in batches]
        left = [batch for batch in fresh if batch.state in UNDER_WAY]
        return run_sight(await muster.runs.get(run.id), 0, left)

    return await shown(muster.runs.cancel(run.id), look, display)


def _words(run: "Run", left: "Sequence[Batch]") -> list[str]:
    from muster.cli.batches.words import batch_name, standing
    from muster.cli.runs.words import summary

    if run.ended_at is None:
        return [f"run {run.id} was asked to stop; its driver, {run.lease.driver}, has not answered yet"]
    return [summary(run), *(f"{batch_name(batch)} is still {standing(batch)}" for batch in left)]


RunArgument = Annotated[str, Argument(metavar="RUN", help="An id, the beginning of one, a name, or `last`.")]


def register_transfer(app: Group) -> None:
    """Add the commands."""
    command(app, "export")(export)
    command(app, "import")(import_)


def export(
    manner: OutputOptions,
    run: RunArgument,
    output: Annotated[Path, Option("--output", "-o", metavar="FILE", help="Ends in .gz: compressed.")],
) -> None:
    """Write a run with everything in it to a file."""

    async def work(muster: "Muster") -> "tuple[Run, int]":
        return await muster.runs.export(run, output)

    found, entries = with_muster(manner, work)
    text = f"run {found.id}: {entries} entries written to {output}"
    data = {"id": found.id, "file": str(output), "entries": entries}
    answer(manner, data, lambda console: console.print(text, soft_wrap=True))


def import_(
    manner: OutputOptions, file: Annotated[Path, Argument(metavar="FILE", help="A file that export wrote.")]
) -> None:
    """Store a run from a file; it keeps its id."""

    async def work(muster: "Muster") -> "tuple[Run, dict[str, Any]]":
        from muster.app.views.runs import whole_run_view

        run = await muster.runs.import_(file)
        return run, whole_run_view(run, await muster.runs.batches_of(run.id))

    run, data = with_muster(manner, work, create=True)
    from muster.cli.runs.words import summary

    answer(manner, data, lambda console: console.print(f"imported: {summary(run)}", soft_wrap=True))


FIRST = 200


app = group("Everything about runs: see them, go on with them, move them.")


@command(app, "list")
def list_runs(
    manner: OutputOptions,
    limit: Annotated[int, Option("--limit", metavar="N", min=1, help="How many.")] = 20,
    state: Annotated[
        str | None,
        Option("--state", metavar="STATE", help="Only queued, running, waiting, interrupted, completed, …"),
    ] = None,
) -> None:
    """List the newest runs."""
    states = _states(state)

    async def work(muster: "Muster") -> "tuple[list[Run], list[dict[str, Any]]]":
        from muster.app.views.runs import whole_run_view

        found = list(await muster.runs.list(states, limit))
        views = [whole_run_view(run, await muster.runs.batches_of(run.id)) for run in found] if manner.json else []
        return found, [_without_result(view) for view in views]

    runs, data = with_muster(manner, work)

    def tell(console: "Console") -> None:
        import time

        from muster.cli.runs.display import runs_table

        if runs:
            console.print(runs_table(runs, time.time(), console.width))
        else:
            none_yet = "there are no runs yet, here or above; try: muster ask sim/echo hello"
            note(manner, "there are no such runs" if state else none_yet)

    answer(manner, data, tell)


def _without_result(data: dict[str, Any]) -> dict[str, Any]:
    """Leave out what can be large."""
    return {name: value for name, value in data.items() if name != "result"}


def _states(name: str | None) -> "tuple[RunState, ...]":
    from muster.domain.errors import BadArgument
    from muster.domain.run import RunState

    if name is None:
        return ()
    try:
        return (RunState(name),)
    except ValueError:
        raise BadArgument(f"{name!r} is not a state", suggestions=(f"one of {', '.join(RunState)}",)) from None


@command(app, "show")
def show(
    manner: OutputOptions,
    run: RunArgument,
    calls: Annotated[bool, Option("--calls", help=f"Its first {FIRST} calls too.")] = False,
    events: Annotated[bool, Option("--events", help=f"Its last {FIRST} events too.")] = False,
    call: Annotated[str | None, Option("--call", metavar="KEY", help="This one call in full instead.")] = None,
) -> None:
    """Show one run: money, calls, errors, and how to go on."""
    from muster.app.views.runs import call_view, details_view
    from muster.cli.runs.display import print_call, print_details

    async def look_at_call(muster: "Muster") -> "CallDetails":
        return await muster.runs.call(run, call or "")

    async def look_at_run(muster: "Muster") -> "RunDetails":
        return await muster.runs.details(run, calls=FIRST if calls else 0, events=FIRST if events else 0)

    if call is not None:
        found = with_muster(manner, look_at_call)
        answer(manner, call_view(found), lambda console: print_call(console, found))
    else:
        details = with_muster(manner, look_at_run)
        answer(manner, details_view(details), lambda console: print_details(console, details))


@command(app, "watch")
def watch(manner: OutputOptions, run: RunArgument) -> int:
    """Follow a run until it is over or stands still; exits as the run's own command does."""
    from muster.app.views.runs import event_view
    from muster.cli.outcomes import exit_code_of_run
    from muster.cli.runs.words import event_line, summary

    async def work(muster: "Muster") -> "tuple[Run, int]":
        found = await muster.runs.find(run)
        async for event in muster.runs.watch(found).events():
            if manner.json:
                print_json(event_view(event))
            else:
                from muster.cli.terminal.output import clean

                say(clean(event_line(event)))
        over = await muster.runs.get(found.id)
        return over, await exit_code_of_run(muster, over)

    over, code = with_muster(manner, work)
    if not manner.json:
        note(manner, summary(over))
    return code


@command(app, "delete")
def delete(
    manner: OutputOptions, runs: Annotated[list[str], Argument(metavar="RUN…", help="Runs that nobody drives.")]
) -> None:
    """Forget runs with everything in them."""

    async def work(muster: "Muster") -> "list[RunId]":
        return list(await muster.runs.delete(runs))

    deleted = with_muster(manner, work)
    answer(manner, {"deleted": deleted}, lambda console: console.print("\n".join(f"deleted {run}" for run in deleted)))


start.register(app)
register_cancel(app)
resume.register(app)
run.register_rejudge(app)
register_transfer(app)
