"""`muster generate`: test cases written by a model, for a new suite or at the end of one."""

from typing import TYPE_CHECKING

from muster.app import Muster
from muster.app.suites.generation import Generated, Generation, yaml_text
from muster.app.views.suites import generated_view
from muster.cli.drive import drive
from muster.cli.options import require_dispatch
from muster.cli.session import with_muster
from muster.cli.suites.options import GenerateArguments
from muster.cli.terminal.display import display
from muster.cli.terminal.output import CommonOptions, answer, clean, console, fail_with, note
from muster.cli.terminal.runs import run_cost
from muster.domain.run import Run
from muster.text.words import count as counted

if TYPE_CHECKING:
    from rich.console import Console


def generate(common: CommonOptions, arguments: GenerateArguments) -> int:
    """Generate test cases with a model; each is validated and compared with the existing ones."""
    order = arguments.order
    require_dispatch(order)
    wish = Generation.of(order)

    async def work(muster: Muster) -> Generated:
        handle = await muster.suites.generate(wish, muster.runs.ordered(order))
        run = await drive(muster, handle, display(common, stays=False), notes=not common.quiet)
        return muster.suites.conclude_generation(wish, run)

    return _conclude(common, with_muster(common, work, allow_unpriced=arguments.allow_unpriced, create=True))


def _conclude(common: CommonOptions, found: Generated) -> int:
    """Tell what was generated; fewer cases than were asked for make the exit code 1."""
    data, error = generated_view(found), found.error
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
