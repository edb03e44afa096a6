"""`muster baseline`: names for runs that others are compared with."""

from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import command, group, with_muster
from muster.cli.line import Argument
from muster.cli.manner import Manner
from muster.cli.speech import answer, note

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app import Muster
    from muster.domain.run import Run

LONGEST_NAME = 100

NameArgument = Annotated[str, Argument(metavar="NAME", help="What the baseline is called.")]

app = group("Names for runs that others are compared with.")


@command(app, "set")
def set_baseline(
    manner: Manner,
    name: NameArgument,
    run: Annotated[str, Argument(metavar="RUN|FILE", help="A run, or a file that `muster runs export` wrote.")],
) -> None:
    """Let a name stand for a run; a run from a file is imported, unless it is here already."""
    check_baseline_name(name)

    async def work(muster: "Muster") -> "Run":
        import time

        from muster.app.suite_office import find_or_import
        from muster.reports.suite_run import open_suite_run

        found = await find_or_import(muster, run)
        await open_suite_run(muster.store, found)  # only what can be compared can be a baseline
        await muster.store.baselines.set(name, found.id, time.time())
        return found

    found = with_muster(manner, work, create=True)
    answer(manner, {"name": name, "run": found.id}, lambda console: console.print(f"{name} is now run {found.id}"))


@command(app, "list")
def list_baselines(manner: Manner) -> None:
    """List all baselines."""

    async def work(muster: "Muster") -> "list[tuple[str, float, Run | None]]":
        found = await muster.store.baselines.all()
        return [(one.name, one.at, await muster.store.runs.get(one.run)) for one in found]

    found = with_muster(manner, work)
    data = [
        {"name": name, "run": run.id, "run_name": run.name, "set_at": _moment(at), "state": str(run.state)}
        for name, at, run in found
        if run is not None
    ]

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
        await muster.store.baselines.remove(name)

    with_muster(manner, work)
    answer(manner, {"removed": name}, lambda console: console.print(f"removed {name}", soft_wrap=True))


def check_baseline_name(name: str) -> None:
    """Refuse a name that could not be told from something else, or not be shown."""
    from muster.domain.errors import BadArgument

    if name.strip().casefold() == "last":
        raise BadArgument("`last` means the newest run and cannot be the name of a baseline")
    if not name.isprintable() or name != name.strip() or not 0 < len(name) <= LONGEST_NAME:
        raise BadArgument(
            f"{name[:LONGEST_NAME]!r} cannot be the name of a baseline",
            suggestions=(f"use 1 to {LONGEST_NAME} characters that can be seen, like `main`",),
        )
    if ":" in name:
        raise BadArgument("a colon stands between a run and its subject; a name of a baseline has none")


def _moment(at: float) -> str:
    from muster.reports.words import moment

    return moment(at) or ""


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
