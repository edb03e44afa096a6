"""`muster run`: suites against agents, judged and reported; what passes is 0, whatever does not is not."""

from typing import TYPE_CHECKING, Annotated

from muster.cli.frame import command, with_muster
from muster.cli.line import Group, Option
from muster.cli.manner import Manner
from muster.cli.patience import patient
from muster.cli.run_options import chosen
from muster.cli.run_terms import Terms, on_terms
from muster.cli.sending import Sending, sent

if TYPE_CHECKING:
    from muster.app import Muster, Patience
    from muster.app.suites import SuiteChoice


def register(app: Group) -> None:
    """Add the command."""
    command(app, "run")(run)


@patient
@sent
@on_terms
@chosen
def run(
    manner: Manner,
    chosen: "SuiteChoice",
    terms: Terms,
    sending: Sending,
    patience: "Patience",
    replay: Annotated[
        str | None,
        Option("--replay", metavar="RUN|FILE", help="Take every answer from a run or a file; no agent is asked."),
    ] = None,
    reuse: Annotated[
        str | None,
        Option("--reuse", metavar="RUN|FILE", help="Take the answers to requests that are the same; pay the rest."),
    ] = None,
) -> int:
    """Run suites and print how the cases ended."""
    from muster.cli.run_order import Order, carry_out

    order = Order.of(terms, sending, manner)

    async def work(muster: "Muster") -> int:
        return await carry_out(muster, chosen, await muster.suites.source(replay=replay, reuse=reuse), order, manner)

    return with_muster(manner, work, allow_unpriced=terms.allow_unpriced, patience=patience, create=True)
