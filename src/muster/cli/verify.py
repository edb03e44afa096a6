"""`muster verify`: code looked at by agents in waves; only what was checked and passed is 0."""

from typing import TYPE_CHECKING, Annotated

from muster.cli import verify_hook, verify_metrics, verify_plan, verify_resume, verify_secrets
from muster.cli.bundle import bundle
from muster.cli.frame import default, group, with_muster
from muster.cli.line import Option
from muster.cli.manner import Manner
from muster.cli.patience import patient
from muster.cli.run_terms import Terms, terms_with
from muster.cli.verify_options import Asked, asked
from muster.cli.verify_sending import VerifySending, verify_sent

if TYPE_CHECKING:
    from muster.app import Muster, Patience

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
    manner: Manner,
    asked: Asked,
    sent: VerifySending,
    terms: Terms,
    patience: "Patience",
    fix: Annotated[bool, Option("--fix", help="Make the changes that findings propose, and verify once more.")] = False,
) -> int:
    """Verify files."""
    from muster.cli.verify_order import Order, carry_out

    order = Order.of(asked, sent, terms, manner, fix=fix)

    async def work(muster: "Muster") -> int:
        return await carry_out(muster, order, manner)

    return with_muster(manner, work, allow_unpriced=terms.allow_unpriced, patience=patience, create=True)


verify_plan.register(app)
verify_resume.register(app)
verify_metrics.register(app)
verify_secrets.register(app)
app.add("hook", verify_hook.app)
