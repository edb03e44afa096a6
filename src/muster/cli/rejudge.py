"""`muster runs rejudge`: a new judge over answers that are known; no agent is asked anew."""

from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.frame import command, with_muster
from muster.cli.manner import Manner
from muster.cli.patience import patient
from muster.cli.sending import Sending, sent

if TYPE_CHECKING:
    from muster.app import Muster, Patience


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "rejudge")(rejudge)


@patient
@sent
def rejudge(
    manner: Manner,
    sending: Sending,
    patience: "Patience",
    run: Annotated[str, typer.Argument(metavar="RUN|FILE", help="A suite run, or a file it was exported to.")],
    judge: Annotated[str, typer.Option("--judge", metavar="J", help="The agent that judges now.")],
    judge_samples: Annotated[
        int | None, typer.Option("--judge-samples", metavar="N", min=1, help="How often it is asked.")
    ] = None,
    evaluator: Annotated[
        str | None, typer.Option("--evaluator", metavar="E", help="judge or all, also for cases that rules decided.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", metavar="X", min=0, max=1, help="The score that passes.")
    ] = None,
    budget: Annotated[str | None, typer.Option("--budget", metavar="USD", help="The most it may cost.")] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", metavar="N", min=1, help="How many calls at a time.")
    ] = 20,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="A name for the run.")] = None,
    report: Annotated[
        list[str] | None,
        typer.Option("--report", metavar="FORMAT=FILE", help="json, junit, sarif, markdown or html; - is stdout."),
    ] = None,
    allow_unpriced: Annotated[
        bool, typer.Option("--allow-unpriced", help="Ask models whose price is not known.")
    ] = False,
) -> int:
    """Judge the answers of a suite run anew; they are not paid for again."""
    from muster.cli.run_order import Order, judge_again
    from muster.cli.run_reports import wanted_reports

    said = {"judge": judge, "judge_samples": judge_samples, "evaluator": evaluator, "threshold": threshold}
    order = Order(
        sending=sending, budget=budget, concurrency=concurrency, name=name, reports=wanted_reports(report or [], manner)
    )

    async def work(muster: "Muster") -> int:
        return await judge_again(muster, run, said, order, manner)

    return with_muster(manner, work, allow_unpriced=allow_unpriced, patience=patience)
