"""`muster runs list`: the newest runs."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from muster.app import Muster
from muster.app.views.runs import RunView, listed_run_view
from muster.cli.line import Option
from muster.cli.options import LimitOption
from muster.cli.session import with_muster
from muster.cli.terminal.batches import trouble_lines
from muster.cli.terminal.output import CommonOptions, answer_list, clean, note
from muster.cli.terminal.times import since as since_of
from muster.domain.batch import Batch
from muster.domain.ids import BatchId
from muster.domain.run import TERMINAL, Run, RunState

if TYPE_CHECKING:
    from rich.console import Console


def list_runs(
    common: CommonOptions,
    limit: LimitOption = 20,
    state: Annotated[
        str | None,
        Option("--state", metavar="STATE", values=RunState, help="Only runs in this state."),
    ] = None,
    started_by: Annotated[
        str | None, Option("--started-by", metavar="USER", help="Only runs that this user of a server started.")
    ] = None,
    agent: Annotated[
        str | None, Option("--agent", metavar="A", help="Only runs that, or runs under which, have called this agent.")
    ] = None,
    since: Annotated[
        str | None, Option("--since", metavar="TIME", help="Only runs since then: a duration (7d, 24h, 30m) or a date.")
    ] = None,
    until: Annotated[
        str | None,
        Option("--until", metavar="TIME", help="Only runs before then: a duration (1h: until an hour ago) or a date."),
    ] = None,
) -> None:
    """List the newest runs."""
    now = time.time()
    begin = 0.0 if since is None else since_of(since, now)
    end = None if until is None else since_of(until, now, "--until")

    async def work(muster: Muster) -> tuple[list[Run], list[RunView], list[str]]:
        states = () if state is None else (state,)
        found = list(
            await muster.runs.page(states, started_by=started_by, agent=agent, since=begin, until=end, limit=limit + 1)
        )
        if not common.json:
            return found, [], await _trouble(muster, found[:limit])
        views = [listed_run_view(run, await muster.runs.batches_of(run.id), local=True) for run in found[:limit]]
        return found, views, []

    found, data, trouble = with_muster(common, work)
    runs, cut = found[:limit], len(found) > limit
    none_yet = "no runs yet in this folder or a parent; try: muster ask sim/echo hello"
    if not runs and not common.json:
        note(common, "no runs match" if any((state, started_by, agent, since, until)) else none_yet)
    else:
        answer_list(common, data, lambda console: _print_runs(console, runs, trouble), cut=cut, noun="runs")


async def _trouble(muster: Muster, runs: Sequence[Run]) -> list[str]:
    """Return which runs wait for batches that do not get on, and what to do about those."""
    found: dict[BatchId, Batch] = {}
    lines = []
    for run in runs:
        stalled = [] if run.state in TERMINAL else await muster.runs.batches_under_way(run.id)
        waits = {batch.id: batch for batch in stalled if batch.stalled}
        lines += [f"run {run.id} waits for {' and '.join(f'batch {name}' for name in waits)}"] if waits else []
        found |= waits
    return [*lines, *trouble_lines(list(found.values()))]


def _print_runs(console: "Console", runs: Sequence[Run], trouble: Sequence[str]) -> None:
    from muster.cli.runs.display import runs_table

    console.print(runs_table(runs, time.time(), console.width))
    for line in trouble:
        console.print(clean(line), soft_wrap=True)
