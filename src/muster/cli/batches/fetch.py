"""`muster batch fetch | cancel | watch`: batches waited for, and what their provider made brought in."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from muster.app import Muster, Patience
from muster.app.views.batches import BatchView, batch_view, fetched_view
from muster.app.views.errors import batch_error
from muster.cli.drive import InterruptMessage, interruptible
from muster.cli.options import BatchArgument, PollingOptions
from muster.cli.session import with_muster
from muster.cli.terminal.batches import batch_name, batch_summary
from muster.cli.terminal.display import MutedDisplay, display, shown
from muster.cli.terminal.output import CommonOptions, answer, fail_with, json_text, note, say
from muster.cli.terminal.progress import ProgressState, batch_progress
from muster.domain.batch import OVER, Batch, BatchState
from muster.domain.ids import RunId

if TYPE_CHECKING:
    BatchAction = Callable[[Muster, Batch], Awaitable[Batch]]


def fetch(common: CommonOptions, patience: PollingOptions, batch: BatchArgument) -> int:
    """Wait for a batch and store its results."""

    async def action(muster: Muster, found: Batch) -> Batch:
        return await muster.batches.fetch(found)

    over, runs = _run(common, patience, batch, action)
    error = batch_error(over, batch_summary(over), runs)
    return _tell(common, over, runs) if error is None else fail_with(common, error, 1, fetched_view(over, runs))


def cancel(common: CommonOptions, patience: PollingOptions, batch: BatchArgument) -> int:
    """Cancel a batch at the provider; keep the results it has."""

    async def action(muster: Muster, found: Batch) -> Batch:
        return await muster.batches.cancel(found)

    return _tell(common, *_run(common, patience, batch, action))


def say_how_to_go_on(said: InterruptMessage, batch: Batch) -> None:
    """Put down what is said to somebody who does not wait for a batch."""
    way = f"muster batch fetch {batch.id}"
    goes_on = batch.state in (BatchState.RUNNING, BatchState.ENDED)
    where = "continues at the provider" if goes_on else f"stays {batch.state}"
    said.words, said.ways = f"interrupted; {batch_name(batch)} {where}; continue with: {way}", (way,)


def _run(common: CommonOptions, patience: Patience, reference: str, action: "BatchAction") -> tuple[Batch, list[RunId]]:
    """Do something that may take long to a batch, and give it with the runs that can be gone on with."""

    async def work(muster: Muster) -> tuple[Batch, list[RunId]]:
        batch = await muster.batches.find(reference)
        say_how_to_go_on(said, batch)

        async def look() -> ProgressState:
            return batch_progress(await muster.batches.get(batch.id))

        if batch.state in OVER:
            over = await action(muster, batch)
        else:
            with display(common, stays=False) as screen:
                over = await shown(action(muster, batch), look, screen)
        return over, list(await muster.batches.resumable(over.id))

    with interruptible() as said:
        return with_muster(common, work, patience=patience)


def _tell(common: CommonOptions, batch: Batch, runs: list[RunId]) -> int:
    lines = [batch_summary(batch), *(f"continue with: muster runs resume {run}" for run in runs)]
    answer(common, fetched_view(batch, runs), lambda console: console.print("\n".join(lines), soft_wrap=True))
    return 0


def watch(common: CommonOptions, patience: PollingOptions, batch: BatchArgument) -> None:
    """Follow a batch until it ends; fetch its results unless another process does."""

    async def work(muster: Muster) -> Batch:
        found = await muster.batches.find(batch)
        say_how_to_go_on(said, found)
        with MutedDisplay() if common.json else display(common, stays=False) as screen:
            lines = _JsonLines()
            show = lines if common.json else lambda seen: screen.show(batch_progress(seen))
            async for seen in muster.batches.watch(found):
                show(seen)
            return seen

    with interruptible() as said:
        over = with_muster(common, work, patience=patience)
    if not common.json:
        note(common, batch_summary(over))


class _JsonLines:
    """Prints a batch as JSON whenever it has changed."""

    def __init__(self) -> None:
        self._printed: BatchView | None = None

    def __call__(self, batch: Batch) -> None:
        """Print it, if it has changed."""
        found = batch_view(batch)
        if found != self._printed:
            self._printed = found
            say(json_text(found))
