"""`muster generate`: test cases written by a model, for a new suite or at the end of one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from muster.cli.frame import command, with_muster
from muster.cli.line import Group, Option
from muster.cli.manner import Manner

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.domain.run import Run

MOST = 200


def register(app: Group) -> None:
    """Add the command."""
    command(app, "generate")(generate)


def generate(
    manner: Manner,
    agent: Annotated[str, Option("--agent", metavar="AGENT", help="Who writes the cases.")],
    skill: Annotated[str, Option("--skill", metavar="NAME", help="A new suite: what it tests.")] = "",
    description: Annotated[str, Option("--description", metavar="TEXT", help="What that is for.")] = "",
    extend: Annotated[
        Path | None, Option("--extend", metavar="DIR", help="A suite that gets more cases instead.")
    ] = None,
    count: Annotated[int, Option("--count", metavar="N", min=1, max=MOST, help="How many cases.")] = 5,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the cases and write no file.")] = False,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="DIR", help="Where a new suite goes; else ./NAME.")
    ] = None,
    budget: Annotated[str | None, Option("--budget", metavar="USD", help="The most it may cost.")] = None,
    allow_unpriced: Annotated[bool, Option("--allow-unpriced", help="Ask a model whose price is not known.")] = False,
) -> int:
    """Have test cases written by a model; each is validated, and none is nearly there already."""
    from muster.app.generation import generation
    from muster.cli.generate_ending import conclude

    wish = generation(agent, count, skill=skill, description=description, extend=extend, output=output, dry_run=dry_run)

    async def work(muster: "Muster") -> "Run":
        from muster.cli.driving import drive
        from muster.cli.progress import display

        muster.agents.require(agent)
        handle = await muster.start("generate", wish.spec(), budget_usd=budget)
        return await drive(muster, handle, display(manner, stays=False))

    run = with_muster(manner, work, allow_unpriced=allow_unpriced, create=True)
    return conclude(manner, run, wish)
