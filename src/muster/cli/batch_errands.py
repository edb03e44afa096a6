"""`muster batch fetch | cancel`: errands to the provider; what is waited for is shown meanwhile."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import command, with_muster
from muster.cli.leaving import Parting, parting
from muster.cli.line import Argument, Group
from muster.cli.manner import Manner
from muster.cli.patience import patient
from muster.cli.speech import answer, fail_with

if TYPE_CHECKING:
    from muster.app import Muster, Patience
    from muster.cli.sights import Sight
    from muster.domain.batch import Batch
    from muster.domain.ids import RunId

    Errand = Callable[[Muster, Batch], Awaitable[Batch]]

BatchArgument = Annotated[
    str, Argument(metavar="ID", help="Our id, the beginning of it, the provider's id, or `last`.")
]


def register(app: Group) -> None:
    """Add the commands."""
    command(app, "fetch")(fetch)
    command(app, "cancel")(cancel)


@patient
def fetch(manner: Manner, patience: "Patience", batch: BatchArgument) -> int:
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
def cancel(manner: Manner, patience: "Patience", batch: BatchArgument) -> int:
    """Have the provider stop a batch; keep what it produced."""

    async def errand(muster: "Muster", found: "Batch") -> "Batch":
        return await muster.batches.cancel(found)

    return _tell(manner, *_run(manner, patience, batch, errand))


def say_how_to_go_on(said: Parting, batch: "Batch") -> None:
    """Put down what is said to somebody who does not wait for a batch."""
    from muster.cli.batch_portrait import batch_name
    from muster.domain.batch import BatchState

    way = f"muster batch fetch {batch.id}"
    goes_on = batch.state in (BatchState.RUNNING, BatchState.ENDED)
    where = "goes on at the provider" if goes_on else f"stays {batch.state}"
    said.words, said.ways = f"interrupted; {batch_name(batch)} {where}; go on with: {way}", (way,)


def _run(manner: Manner, patience: "Patience", reference: str, errand: "Errand") -> "tuple[Batch, list[RunId]]":
    """Do something that may take long to a batch, and give it with the runs that can be gone on with."""
    from muster.cli.progress import display, shown
    from muster.cli.sights import batch_sight
    from muster.domain.batch import OVER

    async def work(muster: "Muster") -> "tuple[Batch, list[RunId]]":
        batch = await muster.batches.find(reference)
        say_how_to_go_on(said, batch)

        async def look() -> "Sight":
            return batch_sight(await muster.batches.get(batch.id))

        if batch.state in OVER:
            over = await errand(muster, batch)
        else:
            with display(manner, stays=False) as screen:
                over = await shown(errand(muster, batch), look, screen)
        return over, list(await muster.batches.resumable(over.id))

    with parting() as said:
        return with_muster(manner, work, patience=patience)


def _tell(manner: Manner, batch: "Batch", runs: "list[RunId]") -> int:
    lines = [_summary(batch), *(f"go on with: {way}" for way in _ways_on(runs))]
    answer(manner, _data(batch, runs), lambda console: console.print("\n".join(lines), soft_wrap=True))
    return 0


def _summary(batch: "Batch") -> str:
    from muster.cli.batch_portrait import batch_summary

    return batch_summary(batch)


def _data(batch: "Batch", runs: "list[RunId]") -> dict[str, Any]:
    from muster.app.views.batches import batch_view

    return batch_view(batch) | {"resumable": runs}


def _ways_on(runs: "list[RunId]") -> list[str]:
    return [f"muster runs resume {run}" for run in runs]
