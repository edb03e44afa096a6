"""`muster run`: suites against agents, judged and reported; what passes is 0, whatever does not is not."""

from pathlib import Path
from typing import Annotated

from muster.app import Muster
from muster.app.suites.suites import SuiteChoice
from muster.cli.completion import agent_names, run_names_or_files
from muster.cli.line import Argument, Option
from muster.cli.options import PatienceOptions, SendingOptions, TermsOptions
from muster.cli.session import with_muster
from muster.cli.suites.options import RunArguments
from muster.cli.suites.order import SuiteOrder, carry_out, judge_again
from muster.cli.terminal.output import CommonOptions

JUDGED = ("judge", "all")  # the evaluators that ask a judge


def run(common: CommonOptions, arguments: RunArguments) -> int:
    """Run suites and print the results."""
    chosen, terms, replay, reuse = arguments.chosen, arguments.terms, arguments.replay, arguments.reuse
    order = SuiteOrder.of(terms, arguments.sending, arguments.patience, common, (replay, reuse, chosen.only_failed))
    choice = SuiteChoice(given=chosen.given, only_failed=chosen.only_failed)

    async def work(muster: Muster) -> int:
        return await carry_out(muster, choice, await muster.suites.source(replay=replay, reuse=reuse), order, common)

    patience = arguments.patience
    return with_muster(common, work, allow_unpriced=terms.allow_unpriced, patience=patience, create=True)


def rejudge(
    common: CommonOptions,
    terms: TermsOptions,
    sending: SendingOptions,
    patience: PatienceOptions,
    run: Annotated[
        str,
        Argument(metavar="RUN|FILE", complete=run_names_or_files, help="A suite run, or a file it was exported to."),
    ],
    judge: Annotated[
        str,
        Option(
            "--judge",
            metavar="J",
            complete=agent_names,
            help="The agent that judges, or council:FILE with the policy of a council.",
        ),
    ],
    judge_samples: Annotated[
        int | None,
        Option(
            "--judge-samples",
            metavar="N",
            min=1,
            shown="as in that run",
            help="How often the judge is asked about each answer.",
        ),
    ] = None,
    evaluator: Annotated[
        str | None,
        Option(
            "--evaluator",
            metavar="E",
            values=JUDGED,
            shown="as in that run",
            help="Judge every case, including those that rules decided.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        Option("--threshold", metavar="X", min=0, max=1, shown="as in that run", help="The lowest score that passes."),
    ] = None,
) -> int:
    """Judge the answers of a suite run again; the answers are not paid for again."""
    said = {"judge": judge, "judge_samples": judge_samples, "evaluator": evaluator, "threshold": threshold}
    order = SuiteOrder.of(terms, sending, patience, common, (run,))

    async def work(muster: Muster) -> int:
        return await judge_again(muster, run, said, order, common)

    is_file = Path(run).is_file()  # a run in no file is in a store already
    return with_muster(common, work, allow_unpriced=terms.allow_unpriced, patience=patience, create=is_file)
