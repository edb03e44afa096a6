"""`muster batch watch`: a batch looked at until it is over, and taken on when nobody else does that."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from muster.cli.batch_errands import BatchArgument, say_how_to_go_on
from muster.cli.frame import command, with_muster
from muster.cli.leaving import parting
from muster.cli.line import Group
from muster.cli.manner import Manner
from muster.cli.patience import patient
from muster.cli.speech import note, print_json

if TYPE_CHECKING:
    import asyncio

    from muster.app import Muster, Patience
    from muster.domain.batch import Batch

LOOK_SECONDS = 0.25


def register(app: Group) -> None:
    """Add the command."""
    command(app, "watch")(watch)


@patient
def watch(manner: Manner, patience: "Patience", batch: BatchArgument) -> None:
    """Follow a batch until it is over; fetch it if nobody else does."""
    from muster.cli.batch_portrait import batch_summary
    from muster.cli.progress import Hush, display
    from muster.cli.sights import batch_sight

    async def work(muster: "Muster") -> "Batch":
        found = await muster.batches.find(batch)
        say_how_to_go_on(said, found)
        with Hush() if manner.json else display(manner, stays=False) as screen:
            lines = _JsonLines()
            show = lines if manner.json else lambda seen: screen.show(batch_sight(seen))
            return await _until_over(muster, found, show)

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
        from muster.cli.batch_portrait import batch_json

        found = batch_json(batch)
        if found != self._printed:
            self._printed = found
            print_json(found)


async def _until_over(muster: "Muster", batch: "Batch", show: "Callable[[Batch], None]") -> "Batch":
    import asyncio

    from muster.domain.batch import OVER

    fetching: asyncio.Task[Batch] | None = None
    try:
        while batch.state not in OVER:
            show(batch)
            if fetching is None and not await _is_driven(muster, batch):
                fetching = asyncio.ensure_future(muster.batches.fetch(batch))
            await _pause(fetching)
            batch = await muster.batches.get(batch.id)
        show(batch)
    finally:
        if fetching is not None:
            fetching.cancel()
    return batch


async def _is_driven(muster: "Muster", batch: "Batch") -> bool:
    """Whether a living process drives a run with calls in the batch."""
    from muster.cli.portrait import driven

    await muster.engine.sweep()
    found = [await muster.store.runs.get(run) for run in await muster.store.batches.runs(batch.id)]
    return any(run is not None and driven(run) for run in found)


async def _pause(fetching: "asyncio.Task[Batch] | None") -> None:
    """Wait for the next look; raises what stopped the fetching."""
    import asyncio

    if fetching is None:
        await asyncio.sleep(LOOK_SECONDS)
        return
    await asyncio.wait({fetching}, timeout=LOOK_SECONDS)
    if fetching.done():
        fetching.result()
