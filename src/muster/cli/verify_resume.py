"""`muster verify resume`: going on with a verification; what is known is not asked again."""

from typing import TYPE_CHECKING, Annotated

from muster.cli.frame import command
from muster.cli.going_on import BudgetOption, UnpricedOption, go_on, prepare_resume
from muster.cli.line import Argument, Group, Option
from muster.cli.manner import Manner
from muster.cli.patience import patient

if TYPE_CHECKING:
    from muster.app import Muster, Patience
    from muster.domain.run import Run


def register(app: Group) -> None:
    """Add the command."""
    command(app, "resume")(resume)


@patient
def resume(
    manner: Manner,
    patience: "Patience",
    run: Annotated[
        str, Argument(metavar="RUN", help="An id, the beginning of one, a name, or `last`: the last verification.")
    ],
    budget: BudgetOption = None,
    report: Annotated[
        list[str] | None,
        Option("--report", metavar="FORMAT=FILE", help="terminal, markdown, json, sarif or junit; - is stdout."),
    ] = None,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Go on with a verification; of one that is over, say what it came to."""
    from muster.cli.report_files import VERIFY_FORMATS, wanted_reports

    wanted = wanted_reports(report or (), VERIFY_FORMATS, manner)

    async def prepare(muster: "Muster") -> "Run":
        found = await muster.verify.find(run)
        return await prepare_resume(muster, manner, found.id, budget)

    return go_on(manner, prepare, patience, allow_unpriced=allow_unpriced, wanted=wanted)
