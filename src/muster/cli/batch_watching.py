"""`muster batch watch`: a batch looked at until it is over, and taken on when nobody else does that."""

from typing import TYPE_CHECKING, Any

from muster.cli.batch_errands import BatchArgument, say_how_to_go_on
from muster.cli.frame import command, with_muster
from muster.cli.leaving import parting
from muster.cli.line import Group
from muster.cli.manner import Manner
from muster.cli.patience import patient
from muster.cli.speech import note, print_json

if TYPE_CHECKING:
    from muster.app import Muster, Patience
    from muster.domain.batch import Batch


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
        from muster.app.views.batches import batch_view

        found = batch_view(batch)
        if found != self._printed:
            self._printed = found
            print_json(found)
