"""`muster runs cancel`: a run and its batches stopped."""

from collections.abc import Awaitable, Callable, Sequence

from muster.app import Muster, Patience
from muster.app.views.runs import RunView, whole_run_view
from muster.cli.drive import InterruptMessage, interruptible
from muster.cli.options import PollingOptions, RunArgument
from muster.cli.session import with_muster
from muster.cli.terminal.batches import batch_name, some_batches, standing
from muster.cli.terminal.display import Display, display, shown
from muster.cli.terminal.output import CommonOptions, answer
from muster.cli.terminal.progress import ProgressState, run_progress
from muster.cli.terminal.runs import summary
from muster.domain.batch import UNDER_WAY, Batch
from muster.domain.run import Run


def cancel(
    common: CommonOptions,
    patience: PollingOptions,
    run: RunArgument,
) -> None:
    """Cancel a run and its batches; its replies stay and can be reused."""

    async def find(muster: Muster) -> str:
        return (await muster.runs.find(run)).id

    cancel_run(common, patience, find)


def cancel_run(
    common: CommonOptions,
    patience: Patience,
    find: Callable[[Muster], Awaitable[str]],
    *,
    conclude: Callable[[Muster, Run], Awaitable[None]] | None = None,
) -> None:
    """Cancel the run that is found, conclude it, and print what became of it."""

    async def work(muster: Muster) -> tuple[str, RunView]:
        canceled = await _cancel(muster, await find(muster), display(common, stays=False), said)
        if conclude is not None:
            await conclude(muster, canceled)
        left = await muster.runs.batches_under_way(canceled.id)
        view = whole_run_view(canceled, await muster.runs.batches_of(canceled.id), local=True)
        return "\n".join(_words(canceled, left)), view

    with interruptible() as said:
        text, data = with_muster(common, work, patience=patience)
    answer(common, data, lambda console: console.print(text, soft_wrap=True))


async def _cancel(muster: Muster, reference: str, display: Display, said: InterruptMessage) -> Run:
    run = await muster.runs.find(reference)
    batches = await muster.runs.batches_under_way(run.id)
    if run.is_driven or not batches:
        return await muster.runs.cancel(run.id)
    said.words = f"run {run.id} is canceled; the provider is still stopping {some_batches(len(batches))}"
    said.ways = tuple(f"muster batch fetch {batch.id}" for batch in batches)
    with display:
        display.tell(f"waiting until the provider has stopped {some_batches(len(batches))} of run {run.id}")
        return await _with_batches(muster, run, batches, display)


async def _with_batches(muster: Muster, run: Run, batches: Sequence[Batch], display: Display) -> Run:
    """Cancel a run that only waits for batches, and wait with it."""

    async def look() -> ProgressState:
        fresh = [await muster.batches.get(batch.id) for batch in batches]
        left = [batch for batch in fresh if batch.state in UNDER_WAY]
        return run_progress(await muster.runs.get(run.id), 0, left)

    return await shown(muster.runs.cancel(run.id), look, display)


def _words(run: Run, left: Sequence[Batch]) -> list[str]:
    if run.ended_at is None:
        return [f"run {run.id} was asked to stop; its process, {run.lease.driver}, has not answered yet"]
    return [summary(run), *(f"{batch_name(batch)} is still {standing(batch)}" for batch in left)]
