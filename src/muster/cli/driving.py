"""A run driven by the command itself: shown while it goes, stopped by signals, and what its end means."""

import asyncio
from typing import TYPE_CHECKING

from muster.cli.progress import Display
from muster.cli.stopping import Stopper
from muster.domain.errors import Conflict, Interrupted, RunFailed
from muster.domain.run import DRIVEN, Run, RunState

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app.handle import RunHandle

LOOK_SECONDS = 0.1


async def drive(muster: "Muster", handle: "RunHandle", display: Display) -> Run:
    """Wait for a run that this process drives, and give it when it is completed; anything else is raised."""
    Stopper(muster, display.tell).install()
    waiting = asyncio.ensure_future(handle.wait())
    with display:
        while not waiting.done():
            display.show(await handle.run(), muster.engine.on_wire)
            await asyncio.wait({waiting}, timeout=LOOK_SECONDS)
        try:
            run = await waiting
        except Conflict as error:
            raise await _who(muster, handle, error) from error
        display.show(run, 0, last=True)
    return completed(run)


def completed(run: Run) -> Run:
    """Give the run if it is completed; else raise what it came to."""
    if run.state is RunState.COMPLETED:
        return run
    if run.state is RunState.INTERRUPTED:
        go_on = f"muster runs resume {run.id}"
        raise Interrupted(f"run {run.id} is interrupted; go on with: {go_on}", suggestions=(go_on,))
    raise RunFailed(run.id, str(run.state), run.ended_reason, run.error)


def refuse_driven(run: Run) -> None:
    """Refuse a run that a living process drives."""
    if run.state in DRIVEN:
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
