"""`muster runs export | import`: runs as files."""

from pathlib import Path
from typing import Annotated

from muster.app import Muster
from muster.app.views.runs import RunView, exported_run_view, whole_run_view
from muster.cli.line import Argument, Option
from muster.cli.options import RunArgument
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer
from muster.cli.terminal.runs import summary
from muster.domain.run import Run
from muster.text.words import count


def export(
    common: CommonOptions,
    run: RunArgument,
    output: Annotated[
        Path,
        Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file to write, compressed if it ends in .gz; missing folders are created.",
        ),
    ],
) -> None:
    """Export a run and all its data to a file."""

    async def work(muster: Muster) -> tuple[Run, int]:
        return await muster.runs.export(run, output)

    found, entries = with_muster(common, work)
    text = f"run {found.id}: {count(entries, 'entry', 'entries')} written to {output}"
    answer(common, exported_run_view(found, output, entries), lambda console: console.print(text, soft_wrap=True))


def import_(
    common: CommonOptions,
    file: Annotated[Path, Argument(metavar="FILE", help="A file written by `muster runs export`.")],
) -> None:
    """Import a run from a file; its id stays the same."""

    async def work(muster: Muster) -> tuple[Run, RunView]:
        run = await muster.runs.import_(file)
        return run, whole_run_view(run, await muster.runs.batches_of(run.id), local=True)

    run, data = with_muster(common, work, create=file.exists())  # a missing file makes no store
    answer(common, data, lambda console: console.print(f"imported: {summary(run)}", soft_wrap=True))
