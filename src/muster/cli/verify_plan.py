"""`muster verify plan`: what a verification would do and cost; spends nothing and stores nothing."""

from typing import TYPE_CHECKING, Annotated

from muster.cli.frame import command, with_muster
from muster.cli.line import Group, Option
from muster.cli.manner import Manner
from muster.cli.speech import answer
from muster.cli.verify_options import Asked, asked
from muster.cli.verify_sending import VerifySending, verify_sent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from muster.app import Muster
    from muster.app.verifications import Prepared
    from muster.app.verify_survey import Part, VerifySurvey

WIDE, NARROW = 24, 16  # columns for the names of agents, and for whom they ask
LEAST_MISSED = ("calls\nat most", "tokens", "files", "asks", "calls", "wave", "about,\nat least")


def register(app: Group) -> None:
    """Add the command."""
    command(app, "plan")(plan)


@verify_sent
@asked
def plan(
    manner: Manner,
    asked: Asked,
    sent: VerifySending,
    budget: Annotated[str | None, Option("--budget", metavar="USD", help="Say whether it would be enough.")] = None,
    allow_unpriced: Annotated[
        bool, Option("--allow-unpriced", help="Count models whose price is not known as free.")
    ] = False,
) -> int:
    """Say what would be verified by whom, in how many calls, and what that could cost."""
    from muster.cli.plan import parse_cap

    cap = parse_cap(budget)

    async def work(muster: "Muster") -> int:
        from muster.app.views.verify import verify_plan_view
        from muster.cli.verify_order import preparing
        from muster.cli.verify_words import tell_nothing

        async with preparing(muster, asked, sent) as prepared:
            if not prepared.spec.files:
                selection = asked.selection(muster.settings.verify.pending)
                return tell_nothing(manner, selection, prepared, allowed=asked.allow_empty)
            found = muster.verify.plan(prepared.spec, sent.sending.dispatch)
            sent.require_batches(found.parts)
            data = verify_plan_view(found, prepared, cap)
            answer(manner, data, lambda console: _tell(console, found, prepared, cap))
            return 0

    return with_muster(manner, work, allow_unpriced=allow_unpriced, keyless=True)


def _tell(console: "Console", found: "VerifySurvey", prepared: "Prepared", cap: int | None) -> None:
    from muster.cli.clean import clean
    from muster.cli.verify_words import extent

    console.print(clean(f"{extent(found, prepared)}, agents from {prepared.agents_file}"), soft_wrap=True)
    console.print(plan_table(found, console.width))
    for line in _notes(found, cap):
        console.print(clean(line), soft_wrap=True)


def plan_table(found: "VerifySurvey", width: int) -> "Table":
    """Draw who would be asked; what there is no room for is left out, but never names and the most it can cost."""
    from muster.cli.columns import Column, fitted
    from muster.cli.plan import most_words
    from muster.domain.money import show_usd

    parts, total = found.parts, found.all
    loads = [*((part.load, not part.verifier.command) for part in parts), (total, True)]
    columns = [
        Column("wave", [*(str(part.verifier.wave) for part in parts), ""]),
        Column("agent", [*(part.verifier.name for part in parts), "together"], right=False, folds=True, least=WIDE),
        Column("asks", [*(_whom(part) for part in parts), ""], right=False, folds=True, least=NARROW),
        Column("files", [f"{number:,}" for number in (*(part.files for part in parts), found.files)]),
        Column("calls", [f"{load.calls:,}" for load, _ in loads]),
        Column("calls\nat most", [f"{load.most_calls:,}" for load, _ in loads]),
        Column("tokens", [f"{load.tokens:,}" if paid else "" for load, paid in loads]),
        Column("about,\nat least", [show_usd(load.least) if paid else "" for load, paid in loads]),
        Column("at most", [most_words(load) if paid else "" for load, paid in loads]),
    ]
    table = fitted(columns, LEAST_MISSED, width)
    for row in table.rows[-2:-1]:
        row.end_section = True  # the sum stands below a line
    return table


def _whom(part: "Part") -> str:
    import shlex

    from muster.cli.clean import clean

    one = part.verifier
    if one.command:
        return clean(shlex.join(one.command))
    return clean(one.model) + (" in batches" if part.batch else "")


def _notes(found: "VerifySurvey", cap: int | None) -> list[str]:
    from muster.cli.plan import bound_words
    from muster.cli.verify_words import left_out, redactions

    lines = [*(f"left out: {one}" for one in left_out(found.left_out)), *redactions(found)]
    if any(not part.verifier.command for part in found.parts):
        lines.append("the most counts one repair for each call, which models seldom need; later waves may not begin")
    return [*lines, *bound_words(found.all, cap)]
