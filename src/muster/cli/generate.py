"""`muster generate`: test cases written by a model, for a new suite or at the end of one."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import command, with_muster
from muster.cli.line import Group, Option
from muster.cli.manner import Manner

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.domain.run import Run

MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be written, and where to."""

    agent: str
    count: int
    skill: str
    description: str
    file: Path | None  # None: nowhere
    extends: Path | None

    def spec(self) -> dict[str, Any]:
        """Give the spec of the run."""
        if self.extends is not None:
            return {"agent": self.agent, "count": self.count, "extend": str(self.extends)}
        return {"agent": self.agent, "count": self.count, "skill": self.skill, "description": self.description}


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
    from muster.cli.generate_ending import conclude

    wish = _wish(agent, count, skill, description, extend, output, dry_run=dry_run)

    async def work(muster: "Muster") -> "Run":
        from muster.cli.driving import drive
        from muster.cli.progress import display

        muster.agents.require(agent)
        handle = await muster.start("generate", wish.spec(), budget_usd=budget)
        return await drive(muster, handle, display(manner, stays=False))

    run = with_muster(manner, work, allow_unpriced=allow_unpriced, create=True)
    return conclude(manner, run, wish)


def _wish(
    agent: str,
    count: int,
    skill: str,
    description: str,
    extend: Path | None,
    output: Path | None,
    *,
    dry_run: bool,
) -> Wish:
    """Look at what is asked for before anything is spent on it."""
    from muster.cli.generate_writing import file_to_create, file_to_extend

    _require_one(skill, description, extend, output)
    if extend is not None:
        path = file_to_extend(extend)
        return Wish(agent=agent, count=count, skill="", description="", file=None if dry_run else path, extends=path)
    file = None if dry_run else file_to_create(output or Path(skill))
    return Wish(agent=agent, count=count, skill=skill, description=description, file=file, extends=None)


def _require_one(skill: str, description: str, extend: Path | None, output: Path | None) -> None:
    from muster.domain.errors import BadArgument
    from muster.formats.values import is_kebab

    if extend is not None and (skill or description or output):
        raise BadArgument(
            "a suite that is extended has its name, and the cases go to its file",
            suggestions=("give --extend alone, or --skill with --description",),
        )
    if extend is None and not (skill and description.strip()):
        raise BadArgument("say what is to be tested", suggestions=("--skill NAME --description TEXT", "--extend DIR"))
    if skill and not is_kebab(skill):
        raise BadArgument(f"{skill!r} is no name of a skill", suggestions=("write it like code-reviewer",))
