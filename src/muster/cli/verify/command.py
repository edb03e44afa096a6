"""`muster verify`: code looked at by agents in waves; only what was checked and passed is 0."""

from typing import Annotated

from muster.app import Muster
from muster.cli.completion import run_names
from muster.cli.line import Argument, Option
from muster.cli.options import REPORT_HELP, PatienceOptions, UnpricedOption
from muster.cli.outcome import VERIFY_FORMATS, wanted_reports
from muster.cli.runs.resume import BudgetOption, go_on, prepare_resume, require_batches
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions
from muster.cli.verify.options import FORMATS, VerifyCommandArguments
from muster.cli.verify.order import VerifyOrder, carry_out
from muster.domain.run import Run


def resume(
    common: CommonOptions,
    patience: PatienceOptions,
    run: Annotated[
        str,
        Argument(
            metavar="RUN",
            complete=run_names,
            help="Its id, the beginning of the id, its name, or `last`: the last verification.",
        ),
    ],
    budget: BudgetOption = None,
    report: Annotated[
        list[str] | None,
        Option("--report", metavar="FORMAT=FILE", help=f"{REPORT_HELP} FORMAT is {FORMATS}."),
    ] = None,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Continue a verification; show the result of one that has ended."""
    wanted = wanted_reports(report or (), VERIFY_FORMATS, common)

    async def prepare(muster: Muster) -> Run:
        found = await muster.verify.find(run)
        await require_batches(muster, found, patience)
        return await prepare_resume(muster, common, found.id, budget)

    return go_on(common, prepare, patience, allow_unpriced=allow_unpriced, wanted=wanted)


def verify(common: CommonOptions, arguments: VerifyCommandArguments) -> int:
    """Verify files."""
    terms, patience = arguments.terms, arguments.patience
    order = VerifyOrder.of(arguments.asked, arguments.sent, terms, common, fix=arguments.fix, patience=patience)

    async def work(muster: Muster) -> int:
        return await carry_out(muster, order, common)

    return with_muster(common, work, allow_unpriced=terms.allow_unpriced, patience=patience, create=True)
