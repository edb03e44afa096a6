"""`muster runs show | delete`: one run in full; and runs forgotten."""

from typing import Annotated

from muster.app import Muster
from muster.app.runs.details import CallDetails, RunDetails
from muster.app.views.calls import call_view
from muster.app.views.runs import deleted_view, details_view
from muster.cli.line import Argument, Option
from muster.cli.options import RunArgument
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer
from muster.domain.errors import BadArgument
from muster.domain.ids import RunId

FIRST = 200


def show(
    common: CommonOptions,
    run: RunArgument,
    calls: Annotated[bool, Option("--calls", help=f"Also show its first {FIRST} calls.")] = False,
    events: Annotated[bool, Option("--events", help=f"Also show its last {FIRST} events.")] = False,
    call: Annotated[str | None, Option("--call", metavar="KEY", help="Show this call in full.")] = None,
    show_thinking: Annotated[
        bool, Option("--show-thinking", help="Also show what its model says that it thought.")
    ] = False,
) -> None:
    """Show one run: cost, calls, errors, and how to continue."""
    from muster.cli.runs.display import print_call, print_details

    async def look_at_call(muster: Muster) -> CallDetails:
        return await muster.runs.call(run, call or "")

    async def look_at_run(muster: Muster) -> RunDetails:
        return await muster.runs.details(run, calls=FIRST if calls else 0, events=FIRST if events else 0)

    if show_thinking and call is None:
        raise BadArgument("--show-thinking requires --call", suggestions=("name the call: --call KEY",))
    if call is not None:
        found = with_muster(common, look_at_call)
        view = call_view(found, thinking=show_thinking)
        answer(common, view, lambda console: print_call(console, found, thinking=show_thinking))
    else:
        details = with_muster(common, look_at_run)
        answer(common, details_view(details, local=True), lambda console: print_details(console, details))


def delete(
    common: CommonOptions,
    runs: Annotated[
        list[str],
        Argument(
            metavar="RUN…",
            complete="run_names",
            help="Ids, beginnings of ids, names, or `last`. A run in progress is refused.",
        ),
    ],
) -> None:
    """Delete runs and all their data."""

    async def work(muster: Muster) -> list[RunId]:
        return list(await muster.runs.delete(runs))

    deleted = with_muster(common, work)
    answer(common, deleted_view(deleted), lambda console: console.print("\n".join(f"deleted {run}" for run in deleted)))
