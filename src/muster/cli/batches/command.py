"""`muster batch list | show | stats`: what is stored of batches; what needs the provider stands beside it."""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.batches import reconcile
from muster.cli.drive import PartingWords, parting
from muster.cli.frame import command, group, with_muster
from muster.cli.line import Argument, Group, Option
from muster.cli.options import patient
from muster.cli.terminal.output import OutputOptions, answer, fail_with, note, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from muster.app import Muster, Patience
    from muster.app.batches import BatchStats
    from muster.domain.batch import Batch, BatchState


if TYPE_CHECKING:
    from muster.app import Muster, Patience
    from muster.cli.terminal.progress import ProgressState
    from muster.domain.batch import Batch
    from muster.domain.ids import RunId

    Errand = Callable[[Muster, Batch], Awaitable[Batch]]

BatchArgument = Annotated[
    str, Argument(metavar="ID", help="Our id, the beginning of it, the provider's id, or `last`.")
]


def register_errands(app: Group) -> None:
    """Add the commands."""
    command(app, "fetch")(fetch)
    command(app, "cancel")(cancel)


@patient
def fetch(manner: OutputOptions, patience: "Patience", batch: BatchArgument) -> int:
    """Wait for a batch and bring its results in."""
    from muster.domain.batch import BatchState

    async def errand(muster: "Muster", found: "Batch") -> "Batch":
        return await muster.batches.fetch(found)

    over, runs = _run(manner, patience, batch, errand)
    if over.state is BatchState.COLLECTED:
        return _tell(manner, over, runs)
    told = {"code": f"batch_{over.state}", "message": _summary(over), "suggestions": _ways_on(runs)}
    return fail_with(manner, told, 1, _data(over, runs))


@patient
def cancel(manner: OutputOptions, patience: "Patience", batch: BatchArgument) -> int:
    """Have the provider stop a batch; keep what it produced."""

    async def errand(muster: "Muster", found: "Batch") -> "Batch":
        return await muster.batches.cancel(found)

    return _tell(manner, *_run(manner, patience, batch, errand))


def say_how_to_go_on(said: PartingWords, batch: "Batch") -> None:
    """Put down what is said to somebody who does not wait for a batch."""
    from muster.cli.batches.words import batch_name
    from muster.domain.batch import BatchState

    way = f"muster batch fetch {batch.id}"
    goes_on = batch.state in (BatchState.RUNNING, BatchState.ENDED)
    where = "goes on at the provider" if goes_on else f"stays {batch.state}"
    said.words, said.ways = f"interrupted; {batch_name(batch)} {where}; go on with: {way}", (way,)


def _run(manner: OutputOptions, patience: "Patience", reference: str, errand: "Errand") -> "tuple[Batch, list[RunId]]":
    """Do something that may take long to a batch, and give it with the runs that can be gone on with."""
    from muster.cli.terminal.progress import batch_sight, display, shown
    from muster.domain.batch import OVER

    async def work(muster: "Muster") -> "tuple[Batch, list[RunId]]":
        batch = await muster.batches.find(reference)
        say_how_to_go_on(said, batch)

        async def look() -> "ProgressState":
            return batch_sight(await muster.batches.get(batch.id))

        if batch.state in OVER:
            over = await errand(muster, batch)
        else:
            with display(manner, stays=False) as screen:
                over = await shown(errand(muster, batch), look, screen)
        return over, list(await muster.batches.resumable(over.id))

    with parting() as said:
        return with_muster(manner, work, patience=patience)


def _tell(manner: OutputOptions, batch: "Batch", runs: "list[RunId]") -> int:
    lines = [_summary(batch), *(f"go on with: {way}" for way in _ways_on(runs))]
    answer(manner, _data(batch, runs), lambda console: console.print("\n".join(lines), soft_wrap=True))
    return 0


def _summary(batch: "Batch") -> str:
    from muster.cli.batches.words import batch_summary

    return batch_summary(batch)


def _data(batch: "Batch", runs: "list[RunId]") -> dict[str, Any]:
    from muster.app.views.runs import batch_view

    return batch_view(batch) | {"resumable": runs}


def _ways_on(runs: "list[RunId]") -> list[str]:
    return [f"muster runs resume {run}" for run in runs]


def register_watch(app: Group) -> None:
    """Add the command."""
    command(app, "watch")(watch)


@patient
def watch(manner: OutputOptions, patience: "Patience", batch: BatchArgument) -> None:
    """Follow a batch until it is over; fetch it if nobody else does."""
    from muster.cli.batches.words import batch_summary
    from muster.cli.terminal.progress import MutedDisplay, batch_sight, display

    async def work(muster: "Muster") -> "Batch":
        found = await muster.batches.find(batch)
        say_how_to_go_on(said, found)
        with MutedDisplay() if manner.json else display(manner, stays=False) as screen:
            lines = _JsonLines()
            show = lines if manner.json else lambda seen: screen.show(batch_sight(seen))
            async for seen in muster.batches.watch(found):
                show(seen)
            return seen

    with parting() as said:
        over = with_muster(manner, work, patience=patience)
    if not manner.json:
        note(manner, batch_summary(over))


class _JsonLines:
    """Prints a batch as JSON whenever it has changed."""

    def __init__(self) -> None:
        self._printed: dict[str, Any] | None = None

    def __call__(self, batch: "Batch") -> None:
        """Print it, if it has changed."""
        from muster.app.views.runs import batch_view

        found = batch_view(batch)
        if found != self._printed:
            self._printed = found
            print_json(found)


app = group("Everything about batches: see, fetch, cancel and reconcile them.")


@command(app, "list")
def list_batches(
    manner: OutputOptions,
    state: Annotated[
        str | None, Option("--state", metavar="STATE", help="Only planned, sent, running, ended, collected, …")
    ] = None,
    limit: Annotated[int, Option("--limit", metavar="N", min=1, max=1_000_000, help="How many.")] = 20,
) -> None:
    """List the newest batches."""
    states = _states(state)

    async def work(muster: "Muster") -> "list[Batch]":
        return list(await muster.batches.list(states, limit))

    batches = with_muster(manner, work)

    def tell(console: "Console") -> None:
        import time

        from muster.cli.batches.display import batches_table

        if batches:
            console.print(batches_table(batches, time.time(), console.width))
        else:
            way = "muster ask AGENT PROMPT --dispatch batch"
            note(manner, "there are no such batches" if state else f"there are no batches yet; try: {way}")

    from muster.app.views.runs import batch_view

    answer(manner, [batch_view(batch) for batch in batches], tell)


def _states(name: str | None) -> "tuple[BatchState, ...]":
    from muster.domain.batch import BatchState
    from muster.domain.errors import BadArgument

    if name is None:
        return ()
    try:
        return (BatchState(name),)
    except ValueError:
        raise BadArgument(f"{name!r} is not a state", suggestions=(f"one of {', '.join(BatchState)}",)) from None


@command(app, "show")
def show(
    manner: OutputOptions,
    batch: BatchArgument,
    lines: Annotated[bool, Option("--lines", help="Its results instead, as the provider wrote them.")] = False,
) -> None:
    """Show one batch: members, money, times, its runs."""
    from muster.domain.errors import BadArgument

    if lines and manner.json:
        raise BadArgument("--lines writes the provider's own JSON lines; --json would put them into an envelope")

    async def write(muster: "Muster") -> None:
        async for piece in muster.batches.lines(batch):
            sys.stdout.buffer.write(piece.removesuffix(b"\n") + b"\n")
        sys.stdout.buffer.flush()

    if lines:
        with_muster(manner, write)
    else:
        _show(manner, batch)


def _show(manner: OutputOptions, reference: str) -> None:
    async def work(muster: "Muster") -> Any:
        found = await muster.batches.find(reference)
        return found, await muster.batches.runs(found.id)

    batch, runs = with_muster(manner, work)

    def tell(console: "Console") -> None:
        from muster.cli.batches.display import batch_panel

        console.print(batch_panel(batch, runs))

    from muster.app.views.runs import batch_view

    answer(manner, batch_view(batch, runs), tell)


@command(app, "stats")
def stats(
    manner: OutputOptions,
    window: Annotated[str, Option("--since", metavar="WHEN", help="So long ago (7d, 24h, 30m), or a date.")] = "7d",
) -> None:
    """Say how long batches took, how they ended, and what they saved."""
    import time

    from muster.cli.terminal.times import local, since

    begin = since(window, time.time())

    async def work(muster: "Muster") -> "BatchStats":
        return await muster.batches.stats(begin)

    found = with_muster(manner, work)

    def tell(console: "Console") -> None:
        from muster.cli.batches.display import figures

        console.print(figures(found, begin) if found.batches else f"no batches since {local(begin)}")

    from muster.app.views.runs import batch_stats_view

    answer(manner, batch_stats_view(found, begin), tell)


register_watch(app)
register_errands(app)
reconcile.register(app)
