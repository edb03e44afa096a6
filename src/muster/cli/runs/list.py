"""`muster runs list`: the newest runs."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from muster.app import Muster
from muster.app.views.runs import listed_run_view
from muster.cli.line import Option
from muster.cli.options import LimitOption
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, note
from muster.domain.run import Run, RunState

if TYPE_CHECKING:
    from rich.console import Console


def list_runs(
    common: CommonOptions,
    limit: LimitOption = 20,
    state: Annotated[
        str | None,
        Option("--state", metavar="STATE", values=RunState, help="Only runs in this state."),
    ] = None,
) -> None:
    """List the newest runs."""

    async def work(muster: Muster) -> tuple[list[Run], list[dict[str, Any]]]:
        found = list(await muster.runs.list(() if state is None else (state,), limit))
        views = (
            [listed_run_view(run, await muster.runs.batches_of(run.id), local=True) for run in found]
            if common.json
            else []
        )
        return found, views

    runs, data = with_muster(common, work)
    none_yet = "no runs yet in this folder or a parent; try: muster ask sim/echo hello"
    if not runs and not common.json:
        note(common, "no runs match" if state else none_yet)
    else:
        answer(common, data, lambda console: _print_runs(console, runs))


def _print_runs(console: "Console", runs: Sequence[Run]) -> None:
    from muster.cli.runs.display import runs_table

    console.print(runs_table(runs, time.time(), console.width))
