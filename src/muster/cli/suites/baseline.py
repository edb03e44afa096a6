"""`muster baseline`: names for runs that others are compared with."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from muster.app import Muster
from muster.app.suites.reviews import NamedRun
from muster.app.views.suites import baseline_view, removed_baseline_view, set_baseline_view
from muster.cli.line import Argument
from muster.cli.session import with_muster
from muster.cli.suites.compare_table import baselines_table
from muster.cli.terminal.output import CommonOptions, answer, note
from muster.domain.run import Run

if TYPE_CHECKING:
    from rich.console import Console


NameArgument = Annotated[str, Argument(metavar="NAME", help="The name of the baseline.")]


def set_baseline(
    common: CommonOptions,
    name: NameArgument,
    run: Annotated[
        str,
        Argument(
            metavar="RUN|FILE", complete="run_names_or_files", help="A run, or a file written by `muster runs export`."
        ),
    ],
) -> None:
    """Name a run as a baseline; a run in a file is imported first."""

    async def work(muster: Muster) -> Run:
        return await muster.suites.baselines.set(name, run)

    found = with_muster(common, work, create=Path(run).is_file())  # a run in no file is in a store
    text = f"baseline {name} set to run {found.id}"
    answer(common, set_baseline_view(name, found), lambda console: console.print(text, soft_wrap=True))


def list_baselines(common: CommonOptions) -> None:
    """List all baselines."""

    async def work(muster: Muster) -> Sequence[NamedRun]:
        return await muster.suites.baselines.list()

    data = [baseline_view(one) for one in with_muster(common, work)]

    def tell(console: "Console") -> None:
        if not data:
            note(common, "no baselines yet; create one with: muster baseline set NAME RUN")
        else:
            console.print(baselines_table(data))

    answer(common, data, tell)


def remove(common: CommonOptions, name: NameArgument) -> None:
    """Remove a baseline; the run stays."""

    async def work(muster: Muster) -> None:
        await muster.suites.baselines.remove(name)

    with_muster(common, work)
    answer(common, removed_baseline_view(name), lambda console: console.print(f"removed {name}", soft_wrap=True))
