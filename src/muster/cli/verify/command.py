"""`muster verify`: code looked at by agents in waves; only what was checked and passed is 0."""

from typing import TYPE_CHECKING, Annotated

from muster.cli.frame import command, default, group, with_muster
from muster.cli.line import Argument, Group, Option
from muster.cli.options import RunTerms, bundle, patient, terms_with
from muster.cli.runs.resume import BudgetOption, UnpricedOption, go_on, prepare_resume
from muster.cli.terminal.output import OutputOptions
from muster.cli.verify import metrics, plan, setup
from muster.cli.verify.options import VerifyArguments, VerifyDispatchOptions, asked, verify_sent

if TYPE_CHECKING:
    from muster.app import Muster, Patience
    from muster.domain.run import Run


def register(app: Group) -> None:
    """Add the command."""
    command(app, "resume")(resume)


@patient
def resume(
    manner: OutputOptions,
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
    from muster.cli.outcome import VERIFY_FORMATS, wanted_reports

    wanted = wanted_reports(report or (), VERIFY_FORMATS, manner)

    async def prepare(muster: "Muster") -> "Run":
        found = await muster.verify.find(run)
        return await prepare_resume(muster, manner, found.id, budget)

    return go_on(manner, prepare, patience, allow_unpriced=allow_unpriced, wanted=wanted)


ABOUT = """Have code looked at by agents, in waves: the next one begins only when everybody in this one has passed.

Choose the files in one way: paths, --changed [REF], --staged or --pending.
Exit code 0 means that everything was checked and has passed."""

FORMATS = "terminal, markdown, json, sarif or junit"

app = group(ABOUT)


@default(app)
@patient
@bundle("terms", terms_with(FORMATS))
@verify_sent
@asked
def verify(
    manner: OutputOptions,
    asked: VerifyArguments,
    sent: VerifyDispatchOptions,
    terms: RunTerms,
    patience: "Patience",
    fix: Annotated[bool, Option("--fix", help="Make the changes that findings propose, and verify once more.")] = False,
) -> int:
    """Verify files."""
    from muster.cli.verify.order import VerifyOrder, carry_out

    order = VerifyOrder.of(asked, sent, terms, manner, fix=fix)

    async def work(muster: "Muster") -> int:
        return await carry_out(muster, order, manner)

    return with_muster(manner, work, allow_unpriced=terms.allow_unpriced, patience=patience, create=True)


plan.register(app)
register(app)
metrics.register(app)
setup.register(app)
app.add("hook", setup.app)
