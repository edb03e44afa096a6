"""`muster verify`: code looked at by agents in waves; only what was checked and passed is 0."""

from typing import Annotated

from muster.app import Muster
from muster.app.kinds import VERIFICATION
from muster.cli.formats import formats_of
from muster.cli.line import Argument, Option
from muster.cli.options import PatienceOptions, UnpricedOption, report_help
from muster.cli.reports import wanted_reports
from muster.cli.runs.options import BudgetOption
from muster.cli.runs.resume import go_on, prepare_resume, require_batches
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions
from muster.cli.verify.options import VerifyCommandArguments
from muster.cli.verify.order import VerifyOrder, carry_out
from muster.domain.run import Run


def resume(
    common: CommonOptions,
    patience: PatienceOptions,
    run: Annotated[
        str,
        Argument(
            metavar="RUN",
            complete="run_names",
            help="Its id, the beginning of the id, its name, or `last`: the last verification.",
        ),
    ],
    budget: BudgetOption = None,
    report: Annotated[
        list[str] | None,
        Option("--report", metavar="FORMAT=FILE", help=report_help(VERIFICATION)),
    ] = None,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Continue a verification; show the result of one that has ended."""
    wanted = wanted_reports(report or (), formats_of(VERIFICATION), common)

    async def prepare(muster: Muster) -> Run:
        found = await muster.verify.find(run)
        await require_batches(muster, found, patience)
        return await prepare_resume(muster, common, found.id, budget)

    return go_on(common, prepare, patience, allow_unpriced=allow_unpriced, wanted=wanted)


def verify(common: CommonOptions, arguments: VerifyCommandArguments) -> int:
    """Verify files."""
    order = VerifyOrder.of(arguments, common)

    async def work(muster: Muster) -> int:
        return await carry_out(muster, order, common)

    return with_muster(common, work, allow_unpriced=arguments.allow_unpriced, patience=arguments.patience, create=True)
