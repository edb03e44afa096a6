"""`muster chain run | plan | progress | resume | cancel | list`."""

import time
from typing import TYPE_CHECKING, Annotated

from muster.app import Muster
from muster.app.chains.chains import ChainPlan, ChainProgress, ChainStep
from muster.app.views.chains import chain_plan_view, progress_view
from muster.app.views.runs import RunView, listed_run_view
from muster.cli.chains.options import ChainArguments, ChainPlanArguments
from muster.cli.chains.order import carry_out, specs_of
from muster.cli.chains.table import tell_progress
from muster.cli.line import Argument
from muster.cli.options import LimitOption, PatienceOptions, PollingOptions, UnpricedOption
from muster.cli.runs.cancel import cancel_run
from muster.cli.runs.display import runs_table
from muster.cli.runs.options import BudgetOption
from muster.cli.runs.resume import go_on, prepare_resume
from muster.cli.session import with_muster
from muster.cli.suites.plan import bound_words, most_words, usd_of
from muster.cli.terminal.output import CommonOptions, answer, answer_list, clean, note
from muster.cli.terminal.table import Column, fitted
from muster.domain.errors import BadArgument
from muster.domain.run import Run
from muster.domain.run_order import dispatch_of, require_name
from muster.pool.chains.order import require_one_chain
from muster.settings import parse_budget
from muster.text.words import count

if TYPE_CHECKING:
    from rich.console import Console

ChainArgument = Annotated[
    str,
    Argument(
        metavar="RUN",
        complete="run_names",
        help="Its id, the beginning of the id, its name, or `last`: the last chain.",
    ),
]


def run(common: CommonOptions, arguments: ChainArguments) -> int:
    """Run chains and print the output of their steps."""
    order, patience = arguments.order, arguments.patience
    require_name(order.name)
    require_one_chain(order)

    async def work(muster: Muster) -> int:
        return await carry_out(muster, order, common, detach=arguments.detach)

    return with_muster(common, work, allow_unpriced=arguments.allow_unpriced, patience=patience, create=True)


def plan(common: CommonOptions, arguments: ChainPlanArguments) -> None:
    """Show the steps, calls and cost of a chain; spends nothing."""
    order = arguments.order
    if len(order.files) > 1:
        raise BadArgument("only one chain can be planned at a time")
    cap = parse_budget(order.budget_usd)

    async def work(muster: Muster) -> ChainPlan:
        (spec,) = specs_of(muster, order)
        return muster.chains.plan(spec, dispatch_of(order))

    found = with_muster(common, work, allow_unpriced=arguments.allow_unpriced, keyless=True)
    answer(common, chain_plan_view(found, cap), lambda console: _tell_plan(console, found, cap))


def _tell_plan(console: "Console", found: ChainPlan, cap: int | None) -> None:
    loads = [*(one.load for one in found.steps), found.all]
    usd = usd_of(loads)
    columns = [
        Column("step", [*(clean(one.step.name) for one in found.steps), "together"], right=False, folds=True, least=16),
        Column("asks", [*(_whom(one.step) for one in found.steps), ""], right=False, folds=True),
        Column("calls", [f"{load.calls:,}" for load in loads]),
        Column("calls at most", [f"{load.most_calls:,}" for load in loads]),
        Column("about, at least", [usd(load.least) for load in loads]),
        Column("at most", [most_words(load, usd) for load in loads]),
    ]
    rows = f", for {count(found.rows, 'row')}" if found.rows else ""
    console.print(f"chain {found.chain.name}: {count(len(found.steps), 'step')}{rows}")
    console.print(fitted(columns, ("about, at least", "calls at most", "asks"), console.width))
    for line in bound_words(found.all, cap):
        console.print(line, soft_wrap=True)


def _whom(step: ChainStep) -> str:
    return clean(step.command[0] if step.is_command else step.agent)


def progress(common: CommonOptions, run: ChainArgument) -> None:
    """Show the progress of a chain: its steps, their output and cost."""

    async def work(muster: Muster) -> ChainProgress:
        return await muster.chains.progress(run)

    found = with_muster(common, work)
    answer(common, progress_view(found), lambda console: tell_progress(console, found))


def resume(
    common: CommonOptions,
    patience: PatienceOptions,
    run: ChainArgument,
    budget: BudgetOption = None,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Continue a chain at the step that failed or was stopped; the agent is shown the error."""

    async def prepare(muster: Muster) -> Run:
        found = await muster.chains.find(run)
        return await prepare_resume(muster, common, found.id, budget)

    return go_on(common, prepare, patience, allow_unpriced=allow_unpriced)


def cancel(common: CommonOptions, patience: PollingOptions, run: ChainArgument) -> None:
    """Cancel a chain; the output of its finished steps stays."""

    async def find(muster: Muster) -> str:
        return (await muster.chains.find(run)).id

    cancel_run(common, patience, find, conclude=_save)


async def _save(muster: Muster, run: Run) -> None:
    await muster.chains.save(run)


def list_chains(
    common: CommonOptions,
    limit: LimitOption = 20,
) -> None:
    """List the newest chains."""

    async def work(muster: Muster) -> tuple[list[Run], list[RunView]]:
        found = list(await muster.chains.list(limit + 1))
        shown = found[:limit] if common.json else []
        return found, [listed_run_view(run, await muster.runs.batches_of(run.id), local=True) for run in shown]

    found, data = with_muster(common, work)
    runs = found[:limit]

    def tell(console: "Console") -> None:
        if runs:
            console.print(runs_table(runs, time.time(), console.width))
        else:
            note(common, "no chains yet; try: muster init notes --kind chain")

    answer_list(common, data, tell, cut=len(found) > limit, noun="chains")
