"""`muster run`: suites against agents, judged and reported; what passes is 0, whatever does not is not."""

from pathlib import Path

from muster.app import Muster
from muster.cli.options import require_dispatch
from muster.cli.session import with_muster
from muster.cli.suites.options import RejudgeArguments, RunArguments
from muster.cli.suites.order import carry_out, judge_again, suite_reports
from muster.cli.terminal.output import CommonOptions


def run(common: CommonOptions, arguments: RunArguments) -> int:
    """Run suites and print the results."""
    order, patience = arguments.order, arguments.patience
    require_dispatch(order, detach=arguments.detach)
    wanted = suite_reports(arguments, common, order.references)

    async def work(muster: Muster) -> int:
        return await carry_out(muster, arguments, wanted, common)

    return with_muster(common, work, allow_unpriced=arguments.allow_unpriced, patience=patience, create=True)


def rejudge(common: CommonOptions, arguments: RejudgeArguments) -> int:
    """Judge the answers of a suite run again; the answers are not paid for again."""
    order, patience = arguments.order, arguments.patience
    require_dispatch(order, detach=arguments.detach)
    wanted = suite_reports(arguments, common, (order.run,))

    async def work(muster: Muster) -> int:
        return await judge_again(muster, arguments, wanted, common)

    is_file = Path(order.run).is_file()  # a run in no file is in a store already
    return with_muster(common, work, allow_unpriced=arguments.allow_unpriced, patience=patience, create=is_file)
