"""Following a run: its events as they are written, by this process or another."""

from collections.abc import AsyncIterator, Awaitable, Callable

from muster.domain.event import Event
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL, Run, RunState
from muster.store.base import Store

PAGE = 500
LOOK_SECONDS = 1.0


async def follow(store: Store, run: RunId, after: int, sweep: Callable[[], Awaitable[object]]) -> AsyncIterator[Event]:
    """Give every event after a number, in order, until the run is over or stands still.

    When nothing is told for a while, `sweep` finds out whether the run's driver is still alive.
    """
    while True:
        before = await store.runs.get(run)
        events = await store.events.read(run, after, PAGE)
        for event in events:
            after = event.seq
            yield event
        if events:
            continue
        # Read before the events: whatever was told before it came to rest has been given by now.
        if before is None or before.state in TERMINAL or _stands_still(before):
            return
        if not await store.changes.wait(LOOK_SECONDS):
            await sweep()


def _stands_still(run: Run) -> bool:
    left = run.state is RunState.WAITING and run.lease.driver is None
    return left or run.state is RunState.INTERRUPTED
