"""`muster generate`: test cases written by a model, for a new suite or at the end of one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from muster.app import Muster
from muster.app.suites.generation import Generated, Generation, yaml_text
from muster.app.views.errors import generation_error
from muster.app.views.suites import generated_view
from muster.cli.completion import agent_names
from muster.cli.drive import drive
from muster.cli.line import Option
from muster.cli.options import RunBudgetOption, UnpricedOption
from muster.cli.runs.words import run_cost
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, clean, console, fail_with, note
from muster.cli.terminal.progress import display
from muster.domain.run import Run
from muster.text.words import count as counted

if TYPE_CHECKING:
    from rich.console import Console


MOST = 200


def generate(
    common: CommonOptions,
    agent: Annotated[
        str, Option("--agent", metavar="AGENT", complete=agent_names, help="The agent that writes the cases.")
    ],
    skill: Annotated[str, Option("--skill", metavar="NAME", help="The name of a new suite, in kebab-case.")] = "",
    description: Annotated[
        str,
        Option("--description", metavar="TEXT", help="What the new suite tests, in a sentence; needed with --skill."),
    ] = "",
    extend: Annotated[Path | None, Option("--extend", metavar="DIR", help="Add the cases to this suite.")] = None,
    count: Annotated[int, Option("--count", metavar="N", min=1, max=MOST, help="How many cases.")] = 5,
    dry_run: Annotated[bool, Option("--dry-run", help="Print the cases; write no file.")] = False,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="DIR", shown="./NAME", help="The folder of a new suite.")
    ] = None,
    budget: RunBudgetOption = None,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Generate test cases with a model; each is validated and compared with the existing ones."""
    wish = Generation.of(
        agent, count, skill=skill, description=description, extend=extend, output=output, dry_run=dry_run
    )

    async def work(muster: Muster) -> Generated:
        handle = await muster.suites.generate(wish, muster.runs.options(budget_usd=budget))
        run = await drive(muster, handle, display(common, stays=False), notes=not common.quiet)
        return muster.suites.conclude_generation(wish, run)

    return _conclude(common, with_muster(common, work, allow_unpriced=allow_unpriced, create=True))


def _conclude(common: CommonOptions, found: Generated) -> int:
    """Tell what was generated; fewer cases than were asked for make the exit code 1."""
    data, error = generated_view(found), generation_error(found)
    if not common.json:
        _tell(console(), found)
        note(common, _footer(found.run))
    if error is not None:
        return fail_with(common, error, 1, data)
    if common.json:
        answer(common, data, lambda _: None)
    return 0


def _tell(out: "Console", found: Generated) -> None:
    if not found.cases:
        return
    if found.file is None:
        out.print(clean(yaml_text(found.cases)), end="", soft_wrap=True)
        return
    for case in found.cases:
        out.print(f"{case['id']}  {clean(case['description'])}", soft_wrap=True)
    out.print(f"wrote {counted(len(found.cases), 'case')} to {found.file}", soft_wrap=True)


# What was rejected, by the kinds that are stored: one, and several.
REJECTED = {
    "unusable reply": ("reply that could not be used", "replies that could not be used"),
    "near-duplicate": ("near-duplicate", "near-duplicates"),
    "empty check": ("case with an empty check", "cases with an empty check"),
    "empty rubric item": ("case with an empty rubric item", "cases with an empty rubric item"),
    "no description": ("case without a description", "cases without a description"),
    "no question": ("case that does not end with a question", "cases that do not end with a question"),
    "nothing to check": ("case with nothing to check", "cases with nothing to check"),
    "rubric ids": ("case with rubric items without ids", "cases with rubric items without ids"),
    "braces": ("case with {{ in a text", "cases with {{ in a text"),
    "malformed": ("malformed case", "malformed cases"),
    "too large": ("case that is too large", "cases that are too large"),
    "invalid": ("case that is not valid", "cases that are not valid"),
}


def _rejected_words(kind: str, number: int) -> str:
    one, several = REJECTED.get(kind, (kind, kind))
    return f"{number:,} {one if number == 1 else several}"


def _footer(run: Run) -> str:
    result = run.result
    rejected = ", ".join(_rejected_words(kind, number) for kind, number in result["rejected"].items())
    parts = [f"rejected: {rejected}" if rejected else "", counted(result["rounds"], "round")]
    parts.append(run_cost(run))
    return " · ".join([*(part for part in parts if part), f"run {run.id}"])
