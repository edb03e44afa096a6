"""`muster runs`: what is stored; the commands that go on with runs and move them stand beside it."""

from typing import TYPE_CHECKING, Annotated, Any

from muster.cli import canceling, going_on, moving, rejudge, starting
from muster.cli.frame import command, group, with_muster
from muster.cli.line import Argument, Option
from muster.cli.manner import Manner
from muster.cli.speech import answer, note, print_json, say

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app import Muster
    from muster.app.run_details import CallDetails, RunDetails
    from muster.domain.ids import RunId
    from muster.domain.run import Run, RunState

FIRST = 200

RunArgument = Annotated[str, Argument(metavar="RUN", help="An id, the beginning of one, a name, or `last`.")]

app = group("Everything about runs: see them, go on with them, move them.")


@command(app, "list")
def list_runs(
    manner: Manner,
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

        from muster.cli.tables import runs_table

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
    manner: Manner,
    run: RunArgument,
    calls: Annotated[bool, Option("--calls", help=f"Its first {FIRST} calls too.")] = False,
    events: Annotated[bool, Option("--events", help=f"Its last {FIRST} events too.")] = False,
    call: Annotated[str | None, Option("--call", metavar="KEY", help="This one call in full instead.")] = None,
) -> None:
    """Show one run: money, calls, errors, and how to go on."""
    from muster.app.views.runs import call_view, details_view
    from muster.cli.call_sheet import print_call
    from muster.cli.closeup import print_details

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
def watch(manner: Manner, run: RunArgument) -> int:
    """Follow a run until it is over or stands still; exits as the run's own command does."""
    from muster.app.views.runs import event_view
    from muster.cli.exit_codes import exit_code_of_run
    from muster.cli.portrait import event_line, summary

    async def work(muster: "Muster") -> "tuple[Run, int]":
        found = await muster.runs.find(run)
        async for event in muster.runs.watch(found).events():
            if manner.json:
                print_json(event_view(event))
            else:
                from muster.cli.clean import clean

                say(clean(event_line(event)))
        over = await muster.runs.get(found.id)
        return over, await exit_code_of_run(muster, over)

    over, code = with_muster(manner, work)
    if not manner.json:
        note(manner, summary(over))
    return code


@command(app, "delete")
def delete(
    manner: Manner, runs: Annotated[list[str], Argument(metavar="RUN…", help="Runs that nobody drives.")]
) -> None:
    """Forget runs with everything in them."""

    async def work(muster: "Muster") -> "list[RunId]":
        return list(await muster.runs.delete(runs))

    deleted = with_muster(manner, work)
    answer(manner, {"deleted": deleted}, lambda console: console.print("\n".join(f"deleted {run}" for run in deleted)))


starting.register(app)
canceling.register(app)
going_on.register(app)
rejudge.register(app)
moving.register(app)
