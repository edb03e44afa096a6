"""A run driven by the command itself: shown while it goes, stopped by signals, and what its end means."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from muster.cli.awaited import Awaited
from muster.cli.progress import Display, shown
from muster.cli.sights import Sight, run_sight
from muster.cli.stopping import Stopper
from muster.domain.batch import Batch
from muster.domain.errors import Conflict, Interrupted, RunFailed
from muster.domain.run import Run, RunState

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app.handle import RunHandle


class Sights(Protocol):
    """Looks at a run while it is driven."""

    async def look(self, run: Run, on_wire: int, batches: Sequence[Batch] = ()) -> Sight:
        """Give what is to be seen."""


class CallSights:
    """Sees the calls of a run."""

    async def look(self, run: Run, on_wire: int, batches: Sequence[Batch] = ()) -> Sight:
        """Give what is to be seen."""
        return run_sight(run, on_wire, batches)


async def drive(muster: "Muster", handle: "RunHandle", display: Display, sights: Sights | None = None) -> Run:
    """Wait for a run that this process drives; gives it when it is completed or detached, and raises anything else."""
    awaited, sights = Awaited(muster), sights or CallSights()
    Stopper(muster, display.tell, batches=lambda: awaited.submitted).install()

    async def look() -> Sight:
        return await sights.look(await handle.run(), muster.runs.calls_on_wire, await awaited.look())

    with display:
        try:
            run = await shown(handle.wait(), look, display)
        except Conflict as error:
            raise await _who(muster, handle, error) from error
        display.show(await sights.look(run, 0), last=True)
    return completed(run)


def completed(run: Run) -> Run:
    """Give the run if it is completed, or waits as it was told to; else raise what it came to."""
    if run.state is RunState.COMPLETED or run.is_detached:
        return run
    if run.state is RunState.INTERRUPTED:
        go_on = f"muster runs resume {run.id}"
        why = f" ({run.error['message']})" if run.error else ""
        raise Interrupted(f"run {run.id} is interrupted{why}; go on with: {go_on}", suggestions=(go_on,))
    raise RunFailed(run.id, str(run.state), run.ended_reason, run.error)


def refuse_driven(run: Run) -> None:
    """Refuse a run that a living process drives."""
    if run.is_driven:
        raise Conflict(
            f"run {run.id} is being driven by {run.lease.driver}",
            suggestions=(f"muster runs watch {run.id}", f"muster runs cancel {run.id}"),
        )


async def _who(muster: "Muster", handle: "RunHandle", error: Conflict) -> Conflict:
    """Name the process that was faster."""
    try:
        refuse_driven(await handle.run())
    except Conflict as better:
        return better
    return error
