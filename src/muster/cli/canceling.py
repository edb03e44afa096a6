"""`muster runs cancel`: the driver lets go, the providers stop, and what they produced is brought in."""

from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import command, with_muster
from muster.cli.leaving import Parting, parting
from muster.cli.line import Argument, Group
from muster.cli.manner import Manner
from muster.cli.patience import patient
from muster.cli.speech import answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muster.app import Muster, Patience
    from muster.cli.progress import Display
    from muster.cli.sights import Sight
    from muster.domain.batch import Batch
    from muster.domain.run import Run


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
    from muster.app.views.runs import whole_run_view
    from muster.cli.progress import display

    async def work(muster: "Muster") -> "tuple[str, dict[str, Any]]":
        canceled = await _cancel(muster, run, display(manner, stays=False), said)
        left = await muster.runs.batches_under_way(canceled.id)
        view = whole_run_view(canceled, await muster.runs.batches_of(canceled.id))
        return "\n".join(_words(canceled, left)), view

    with parting() as said:
        text, data = with_muster(manner, work, patience=patience)
    answer(manner, data, lambda console: console.print(text, soft_wrap=True))


async def _cancel(muster: "Muster", reference: str, display: "Display", said: Parting) -> "Run":
    from muster.cli.batch_portrait import some_batches

    run = await muster.runs.find(reference)
    batches = await muster.runs.batches_under_way(run.id)
    if run.is_driven or not batches:
        return await muster.runs.cancel(run.id)
    said.words = f"run {run.id} is canceled; the provider goes on to stop {some_batches(len(batches))}"
    said.ways = tuple(f"muster batch fetch {batch.id}" for batch in batches)
    with display:
        display.tell(f"waiting until the provider has stopped {some_batches(len(batches))} of run {run.id}")
        return await _with_batches(muster, run, batches, display)


async def _with_batches(muster: "Muster", run: "Run", batches: "Sequence[Batch]", display: "Display") -> "Run":
    """Cancel a run that only waits for batches, and wait with it."""
    from muster.cli.progress import shown
    from muster.cli.sights import run_sight
    from muster.domain.batch import UNDER_WAY

    async def look() -> "Sight":
        fresh = [await muster.batches.get(batch.id) for batch in batches]
        left = [batch for batch in fresh if batch.state in UNDER_WAY]
        return run_sight(await muster.runs.get(run.id), 0, left)

    return await shown(muster.runs.cancel(run.id), look, display)


def _words(run: "Run", left: "Sequence[Batch]") -> list[str]:
    from muster.cli.batch_portrait import batch_name, standing
    from muster.cli.portrait import summary

    if run.ended_at is None:
        return [f"run {run.id} was asked to stop; its driver, {run.lease.driver}, has not answered yet"]
    return [summary(run), *(f"{batch_name(batch)} is still {standing(batch)}" for batch in left)]
