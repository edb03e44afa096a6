"""`muster fan-out`, and `muster pool metrics | overlaps | gc`: many tasks, figures over them, and their trees."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from muster.app import Muster
from muster.app.pool.orders import ordered_fan_out, run_terms
from muster.app.pool.task_queries import Task
from muster.app.pool.trees import Collected, OverlapReport
from muster.app.pool.values import PoolMetrics
from muster.app.views.errors import task_error, undone_tasks
from muster.app.views.pool import metrics_view
from muster.app.views.tasks import fan_out_view, overlaps_view
from muster.cli.drive import SignalHandler
from muster.cli.line import Option
from muster.cli.pool.options import FanOutArguments
from muster.cli.pool.tables import task_notes, tasks_table
from muster.cli.pool.words import overlap_lines
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, clean, fail_with, warn
from muster.cli.terminal.times import since as since_of
from muster.domain.errors import state_verb
from muster.domain.money import show_usd
from muster.domain.run import BudgetedCost
from muster.text.words import count

if TYPE_CHECKING:
    from rich.console import Console


def fan_out(common: CommonOptions, arguments: FanOutArguments) -> int:
    """Run one task for each prompt in a file; print the results in the same order."""
    order = arguments.order
    wanted = ordered_fan_out(order)

    async def work(muster: Muster) -> list[Task]:
        SignalHandler(muster, warn).install()
        return list(await muster.pool.fan_out(wanted, confirmed=arguments.yes, **run_terms(order)))

    tasks = with_muster(common, work, create=True)
    error, data = undone_tasks(tasks), fan_out_view(tasks)

    def tell(console: "Console") -> None:
        console.print(tasks_table(tasks, console.width))
        for line in _results(tasks):
            console.out(line, highlight=False)
        for line in task_notes(tasks):
            console.print(line, soft_wrap=True)

    if error is not None:
        if not common.json:
            answer(common, data, tell)
        return fail_with(common, error, 1, data)
    answer(common, data, tell)
    return 0


def _results(tasks: Sequence[Task]) -> Iterator[str]:
    """Yield what each task came to, in the order of the prompts."""
    for place, task in enumerate(tasks, 1):
        error = task_error(task)
        text = "no output" if task.output is None else task.output
        yield clean(f"{place} of {len(tasks)}, task {task.title} {state_verb(task.state)}, {task.cost}:")
        yield clean(text if error is None else f"{error['message']}")
        yield ""


def metrics(
    common: CommonOptions,
    since: Annotated[
        str | None,
        Option("--since", metavar="TIME", help="Only tasks since then: a duration (7d, 24h, 30m) or a date."),
    ] = None,
    until: Annotated[
        str | None,
        Option("--until", metavar="TIME", help="Only tasks until then: a duration (1h: until an hour ago) or a date."),
    ] = None,
    tag: Annotated[list[str] | None, Option("--tag", metavar="TAG", help="Only tasks with any of these tags.")] = None,
    model: Annotated[str | None, Option("--model", metavar="MODEL", help="Only tasks that used this model.")] = None,
) -> None:
    """Show how tasks ended, what they cost and how long they took."""
    now = time.time()
    begin = 0.0 if since is None else since_of(since, now)
    end = None if until is None else since_of(until, now, "--until")

    async def work(muster: Muster) -> PoolMetrics:
        return await muster.pool.metrics(since=begin, until=end, tags=tuple(tag or ()), model=model)

    found = with_muster(common, work)
    answer(common, metrics_view(found), lambda console: console.print("\n".join(_lines(found)), soft_wrap=True))


def gc(
    common: CommonOptions,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would be removed; remove nothing.")] = False,
) -> None:
    """Remove worktrees of ended tasks whose work is merged; show why the others are kept."""

    async def work(muster: Muster) -> list[Collected]:
        return list(await muster.pool.trees.collect(dry_run=dry_run))

    found = with_muster(common, work)
    done = "would be removed" if dry_run else "removed"
    titles = [f"{one.name} ({one.owner})" if one.owner else one.name for one in found]
    lines = [
        f"{title}: {done if one.removed else 'kept'}, {one.reason}" for title, one in zip(titles, found, strict=True)
    ]
    data = [{"name": one.name, "task": one.owner, "removed": one.removed, "reason": one.reason} for one in found]
    told = clean("\n".join(lines or ["no worktrees"]))
    answer(common, data, lambda console: console.print(told, soft_wrap=True))


def overlaps(common: CommonOptions) -> None:
    """List files that more than one finished, unmerged task has changed."""

    async def work(muster: Muster) -> OverlapReport:
        return await muster.pool.trees.overlaps()

    found = with_muster(common, work)
    lines = overlap_lines(found) or ["no file is changed by more than one task"]
    answer(common, overlaps_view(found), lambda console: console.print(clean("\n".join(lines)), soft_wrap=True))


def _lines(found: PoolMetrics) -> list[str]:
    states = ", ".join(f"{number:,} {state}" for state, number in found.states.items() if number)
    lines = [f"tasks: {found.tasks:,}" + (f" ({states})" if states else "")]
    if found.average_cost is not None and found.highest_cost is not None:
        average, highest = show_usd(found.average_cost), show_usd(found.highest_cost)
        lines.append(f"cost: {BudgetedCost(spent=found.spent)}, average {average}, highest {highest}")
    if found.unlisted:
        lines.append(f"other tasks of the pool, deleted or of other users: {show_usd(found.unlisted)}")
    if found.elapsed is not None:
        shortest, middle, average_time, longest = found.elapsed
        lines.append(f"time: {shortest:.1f} to {longest:.1f} s, median {middle:.1f} s, average {average_time:.1f} s")
    models = {**found.models, "no model known": found.unknown_model}
    lines += [
        f"{model}: {count(one.tasks, 'task')}, {BudgetedCost(spent=one.spent)}"
        for model, one in models.items()
        if one.tasks
    ]
    return lines
