"""Waiting until the driver of a run that was canceled lets go of it."""

import asyncio
from typing import TYPE_CHECKING

from muster.domain.run import DRIVEN, Run

if TYPE_CHECKING:
    from muster.app import Muster

CANCEL_SECONDS = 5.0


async def until_let_go(muster: "Muster", run: Run) -> Run:
    """Give a run when its driver has let go of it, or as it is after a few seconds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + CANCEL_SECONDS
    while run.state in DRIVEN and loop.time() < end:
        await muster.store.changes.wait(end - loop.time())
        run = await muster.get(run)
    return run
