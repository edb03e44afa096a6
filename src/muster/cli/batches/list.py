"""`muster batch list | show | stats`: what is stored of batches; what needs the provider stands beside it."""

import sys
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

from muster.app import Muster
from muster.app.runs.batches import BatchStats
from muster.app.views.batches import batch_stats_view, batch_view
from muster.cli.batches.display import batch_panel, batches_table, figures
from muster.cli.line import Option
from muster.cli.options import BatchArgument, LimitOption
from muster.cli.session import with_muster
from muster.cli.terminal.batches import trouble_lines
from muster.cli.terminal.output import CommonOptions, answer, answer_list, clean, discard, note
from muster.cli.terminal.times import local, since
from muster.domain.batch import Batch, BatchState
from muster.domain.errors import BadArgument

if TYPE_CHECKING:
    from rich.console import Console
if TYPE_CHECKING:
    BatchAction = Callable[[Muster, Batch], Awaitable[Batch]]


def list_batches(
    common: CommonOptions,
    state: Annotated[
        str | None, Option("--state", metavar="STATE", values=BatchState, help="Only batches in this state.")
    ] = None,
    limit: LimitOption = 20,
) -> None:
    """List the newest batches."""

    async def work(muster: Muster) -> list[Batch]:
        return list(await muster.batches.list(() if state is None else (state,), limit + 1))

    found = with_muster(common, work)
    batches = found[:limit]

    def tell(console: "Console") -> None:
        if batches:
            console.print(batches_table(batches, time.time(), console.width))
            for line in trouble_lines(batches):
                console.print(clean(line), soft_wrap=True)
        else:
            way = "muster ask AGENT PROMPT --dispatch batch"
            note(common, "no batches match" if state else f"no batches yet; try: {way}")

    answer_list(common, [batch_view(batch) for batch in batches], tell, cut=len(found) > limit, noun="batches")


def show(
    common: CommonOptions,
    batch: BatchArgument,
    lines: Annotated[bool, Option("--lines", help="Print the results as the provider wrote them.")] = False,
) -> None:
    """Show one batch: calls, cost, times, runs."""
    if lines and common.json:
        raise BadArgument(
            "--lines prints the provider's own JSON lines, which --json would change", suggestions=("leave --json out",)
        )

    async def write(muster: Muster) -> None:
        try:
            async for piece in muster.batches.lines(batch):
                sys.stdout.buffer.write(piece.removesuffix(b"\n") + b"\n")
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            discard(sys.stdout)

    if lines:
        with_muster(common, write)
    else:
        _show(common, batch)


def _show(common: CommonOptions, reference: str) -> None:
    async def work(muster: Muster) -> Any:
        found = await muster.batches.find(reference)
        return found, await muster.batches.runs(found.id)

    batch, runs = with_muster(common, work)

    def tell(console: "Console") -> None:
        console.print(batch_panel(batch, runs))

    answer(common, batch_view(batch, runs), tell)


def stats(
    common: CommonOptions,
    window: Annotated[str, Option("--since", metavar="WHEN", help="A duration (7d, 24h, 30m) or a date.")] = "7d",
) -> None:
    """Show how long batches took, how they ended, and what they saved."""
    begin = since(window, time.time())

    async def work(muster: Muster) -> BatchStats:
        return await muster.batches.stats(begin)

    found = with_muster(common, work)

    def tell(console: "Console") -> None:
        console.print(figures(found, begin) if found.batches else f"no batches since {local(begin)}")

    answer(common, batch_stats_view(found, begin), tell)
