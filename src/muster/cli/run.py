"""`muster run`: suites against agents, judged and reported; what passes is 0, whatever does not is not."""

from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.frame import command, with_muster
from muster.cli.manner import Manner
from muster.cli.patience import patient
from muster.cli.run_options import Chosen, chosen
from muster.cli.sending import Sending, sent

if TYPE_CHECKING:
    from muster.app import Muster, Patience


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "run")(run)


@patient
@sent
@chosen
def run(
    manner: Manner,
    chosen: Chosen,
    sending: Sending,
    patience: "Patience",
    replay: Annotated[
        str | None,
        typer.Option("--replay", metavar="RUN|FILE", help="Take every answer from a run, or a file; ask nobody."),
    ] = None,
    reuse: Annotated[
        str | None,
        typer.Option(
            "--reuse", metavar="RUN|FILE", help="Take the answers to requests that are the same; pay the rest."
        ),
    ] = None,
    budget: Annotated[str | None, typer.Option("--budget", metavar="USD", help="The most it may cost.")] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", metavar="N", min=1, help="How many calls at a time.")
    ] = 20,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", help="Seconds for the whole run, without waiting in line.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="A name for the run.")] = None,
    report: Annotated[
        list[str] | None,
        typer.Option("--report", metavar="FORMAT=FILE", help="json, junit, sarif, markdown or html; - is stdout."),
    ] = None,
    allow_unpriced: Annotated[
        bool, typer.Option("--allow-unpriced", help="Ask models whose price is not known.")
    ] = False,
) -> int:
    """Run suites and print how the cases ended."""
    from muster.cli.run_order import Order, carry_out, source_of
    from muster.cli.run_reports import wanted_reports

    order = Order(
        sending=sending,
        budget=budget,
        concurrency=concurrency,
        timeout=timeout,
        name=name,
        reports=wanted_reports(report or [], manner),
    )

    async def work(muster: "Muster") -> int:
        return await carry_out(muster, chosen, await source_of(muster, replay, reuse), order, manner)

    return with_muster(manner, work, allow_unpriced=allow_unpriced, patience=patience)
