"""`muster baseline`: names for runs that others are compared with."""

from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import command, group, with_muster
from muster.cli.line import Argument
from muster.cli.manner import Manner
from muster.cli.speech import answer, note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from muster.app import Muster
    from muster.app.reviews import NamedRun
    from muster.domain.run import Run

NameArgument = Annotated[str, Argument(metavar="NAME", help="What the baseline is called.")]

app = group("Names for runs that others are compared with.")


@command(app, "set")
def set_baseline(
    manner: Manner,
    name: NameArgument,
    run: Annotated[str, Argument(metavar="RUN|FILE", help="A run, or a file that `muster runs export` wrote.")],
) -> None:
    """Let a name stand for a run; a run from a file is imported, unless it is here already."""

    async def work(muster: "Muster") -> "Run":
        return await muster.suites.baselines.set(name, run)

    found = with_muster(manner, work, create=True)
    answer(manner, {"name": name, "run": found.id}, lambda console: console.print(f"{name} is now run {found.id}"))


@command(app, "list")
def list_baselines(manner: Manner) -> None:
    """List all baselines."""

    from muster.app.views.suites import baseline_view

    async def work(muster: "Muster") -> "Sequence[NamedRun]":
        return await muster.suites.baselines.list()

    data = [baseline_view(one) for one in with_muster(manner, work)]

    def tell(console: "Console") -> None:
        if not data:
            note(manner, "there are no baselines yet; make one with: muster baseline set NAME RUN")
        else:
            console.print(_table(data))

    answer(manner, data, tell)


@command(app, "remove")
def remove(manner: Manner, name: NameArgument) -> None:
    """Forget a name; the run stays."""

    async def work(muster: "Muster") -> None:
        await muster.suites.baselines.remove(name)

    with_muster(manner, work)
    answer(manner, {"removed": name}, lambda console: console.print(f"removed {name}", soft_wrap=True))


def _table(rows: list[dict[str, Any]]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from muster.cli.clean import clean

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("baseline", "run", "called", "since"):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(Text(clean(row["name"])), row["run"], Text(clean(row["run_name"] or "")), row["set_at"])
    return table
