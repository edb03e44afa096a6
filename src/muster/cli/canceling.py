"""`muster runs cancel`: the driver lets go, the providers stop, and what they produced is brought in."""

from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import command, with_muster
from muster.cli.leaving import Parting, parting
from muster.cli.line import Argument, Group
from muster.cli.manner import Manner
from muster.cli.patience import patient
from muster.cli.speech import answer

if TYPE_CHECKING:
    from muster.app import Muster, Patience
    from muster.cli.progress import Display
    from muster.cli.sights import Sight
    from muster.domain.batch import Batch
    from muster.domain.run import Run

CANCEL_SECONDS = 5.0


def register(app: Group) -> None:
    """Add the command."""
    command(app, "cancel")(cancel)


@patient
def cancel(
    manner: Manner,
    patience: "Patience",
    run: Annotated[str, Argument(metavar="RUN", help="An id, the beginning of one, a name, or `last`.")],
) -> None:
    """Cancel a run and its batches; its replies stay and can be reused."""
    from muster.cli.pooled import run_data
    from muster.cli.progress import display

    async def work(muster: "Muster") -> "tuple[str, dict[str, Any]]":
        canceled = await _cancel(muster, run, display(manner, stays=False), said)
        left = await _under_way(muster, canceled)
        return "\n".join(_words(canceled, left)), await run_data(muster, canceled)

    with parting() as said:
        text, data = with_muster(manner, work, patience=patience)
    answer(manner, data, lambda console: console.print(text, soft_wrap=True))


async def _cancel(muster: "Muster", reference: str, display: "Display", said: Parting) -> "Run":
    from muster.cli.batch_portrait import some_batches
    from muster.cli.portrait import driven

    run = await muster.find(reference)
    batches = await _under_way(muster, run)
    if driven(run) or not batches:
        return await until_let_go(muster, await muster.cancel(run.id))
    said.words = f"run {run.id} is canceled; the provider goes on to stop {some_batches(len(batches))}"
    said.ways = tuple(f"muster batch fetch {batch.id}" for batch in batches)
    with display:
        display.tell(f"waiting until the provider has stopped {some_batches(len(batches))} of run {run.id}")
        return await _with_batches(muster, run, batches, display)


async def _with_batches(muster: "Muster", run: "Run", batches: "list[Batch]", display: "Display") -> "Run":
    """Cancel a run that only waits for batches, and wait with it."""
    from muster.cli.progress import shown
    from muster.cli.sights import run_sight
    from muster.domain.batch import UNDER_WAY
    from muster.domain.errors import MusterError
    from muster.domain.run import RunState

    async def look() -> "Sight":
        fresh = [await muster.batches.get(batch.id) for batch in batches]
        return run_sight(await muster.get(run), 0, [batch for batch in fresh if batch.state in UNDER_WAY])

    try:
        return await shown(muster.cancel(run.id), look, display)
    except MusterError as error:
        if (await muster.get(run)).state is RunState.CANCELED:
            ways = [f"run {run.id} is canceled, its batches are not: muster batch cancel {one.id}" for one in batches]
            error.suggestions = (*error.suggestions, *ways)
        raise


async def _under_way(muster: "Muster", run: "Run") -> "list[Batch]":
    """Give the batches that are not over with calls of a run or of its children."""
    from muster.domain.batch import UNDER_WAY

    found = {batch.id: batch for batch in await muster.store.batches.of_run(run.id) if batch.state in UNDER_WAY}
    for child in await muster.store.archive.children(run.id):
        found |= {batch.id: batch for batch in await _under_way(muster, child)}
    return list(found.values())


async def until_let_go(muster: "Muster", run: "Run") -> "Run":
    """Give a run when its driver has let go of it, or as it is after a few seconds."""
    import asyncio

    from muster.cli.portrait import driven

    loop = asyncio.get_running_loop()
    end = loop.time() + CANCEL_SECONDS
    while driven(run) and loop.time() < end:
        await muster.store.changes.wait(end - loop.time())
        run = await muster.get(run)
    return run


def _words(run: "Run", left: "list[Batch]") -> list[str]:
    from muster.cli.batch_portrait import batch_name, standing
    from muster.cli.portrait import summary

    if run.ended_at is None:
        return [f"run {run.id} was asked to stop; its driver, {run.lease.driver}, has not answered yet"]
    return [summary(run), *(f"{batch_name(batch)} is still {standing(batch)}" for batch in left)]
