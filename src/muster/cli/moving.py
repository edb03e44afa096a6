"""`muster runs export | import`: runs as files, good for replay on any machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import command, with_muster
from muster.cli.line import Argument, Group, Option
from muster.cli.manner import Manner
from muster.cli.speech import answer

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.domain.run import Run

RunArgument = Annotated[str, Argument(metavar="RUN", help="An id, the beginning of one, a name, or `last`.")]


def register(app: Group) -> None:
    """Add the commands."""
    command(app, "export")(export)
    command(app, "import")(import_)


def export(
    manner: Manner,
    run: RunArgument,
    output: Annotated[Path, Option("--output", "-o", metavar="FILE", help="Ends in .gz: compressed.")],
) -> None:
    """Write a run with everything in it to a file."""

    async def work(muster: "Muster") -> "tuple[Run, int]":
        return await muster.runs.export(run, output)

    found, entries = with_muster(manner, work)
    text = f"run {found.id}: {entries} entries written to {output}"
    data = {"id": found.id, "file": str(output), "entries": entries}
    answer(manner, data, lambda console: console.print(text, soft_wrap=True))


def import_(manner: Manner, file: Annotated[Path, Argument(metavar="FILE", help="A file that export wrote.")]) -> None:
    """Store a run from a file; it keeps its id."""

    async def work(muster: "Muster") -> "tuple[Run, dict[str, Any]]":
        from muster.app.views.runs import whole_run_view

        run = await muster.runs.import_(file)
        return run, whole_run_view(run, await muster.runs.batches_of(run.id))

    run, data = with_muster(manner, work, create=True)
    from muster.cli.portrait import summary

    answer(manner, data, lambda console: console.print(f"imported: {summary(run)}", soft_wrap=True))
