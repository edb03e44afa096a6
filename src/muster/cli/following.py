"""Following a run that another process may drive, and that may die while we look."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from muster.domain.event import Event
from muster.domain.run import DRIVEN, Run

if TYPE_CHECKING:
    from muster.app import Muster

SWEEP_SECONDS = 1.0
CANCEL_SECONDS = 5.0


async def follow(muster: "Muster", run: Run) -> AsyncIterator[Event]:
    """Give every event of a run; the run of a driver that dies meanwhile comes to rest."""
    sweeping = asyncio.ensure_future(_keep_sweeping(muster))
    try:
        async for event in muster.watch(run).events():
            yield event
    finally:
        sweeping.cancel()


async def until_let_go(muster: "Muster", run: Run) -> Run:
    """Give a run when its driver has let go of it, or as it is after a few seconds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + CANCEL_SECONDS
    while run.state in DRIVEN and loop.time() < end:
        await muster.store.changes.wait(end - loop.time())
        run = await muster.get(run)
    return run


async def _keep_sweeping(muster: "Muster") -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        await muster.engine.sweep()
