"""`muster runs rejudge`: a new judge over answers that are known; no agent is asked anew."""

from typing import TYPE_CHECKING, Annotated

from muster.cli.frame import command, with_muster
from muster.cli.line import Argument, Group, Option
from muster.cli.manner import Manner
from muster.cli.patience import patient
from muster.cli.run_terms import Terms, on_terms
from muster.cli.sending import Sending, sent

if TYPE_CHECKING:
    from muster.app import Muster, Patience


def register(app: Group) -> None:
    """Add the command."""
    command(app, "rejudge")(rejudge)


@patient
@sent
@on_terms
def rejudge(
    manner: Manner,
    terms: Terms,
    sending: Sending,
    patience: "Patience",
    run: Annotated[str, Argument(metavar="RUN|FILE", help="A suite run, or a file it was exported to.")],
    judge: Annotated[str, Option("--judge", metavar="J", help="The agent that judges now.")],
    judge_samples: Annotated[
        int | None, Option("--judge-samples", metavar="N", min=1, help="How often it is asked.")
    ] = None,
    evaluator: Annotated[
        str | None, Option("--evaluator", metavar="E", help="judge or all, also for cases that rules decided.")
    ] = None,
    threshold: Annotated[
        float | None, Option("--threshold", metavar="X", min=0, max=1, help="The score that passes.")
    ] = None,
) -> int:
    """Judge the answers of a suite run anew; they are not paid for again."""
    from muster.cli.run_order import Order, judge_again

    said = {"judge": judge, "judge_samples": judge_samples, "evaluator": evaluator, "threshold": threshold}
    order = Order.of(terms, sending, manner)

    async def work(muster: "Muster") -> int:
        return await judge_again(muster, run, said, order, manner)

    return with_muster(manner, work, allow_unpriced=terms.allow_unpriced, patience=patience, create=True)
