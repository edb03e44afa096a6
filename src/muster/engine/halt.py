"""The stop of a run as its workload learns of it: nothing new begins, and no error is raised while calls are open.

A workload that got the error at once could cancel its other branches, such as the tasks of an `asyncio.TaskGroup`, and
with them calls whose answers are paid for.
"""

import asyncio

from muster.domain.errors import StopRun


class Halt:
    """Refuses new work of one run once it has been told to stop; a held refusal waits for `release`."""

    __slots__ = ("_held", "_released", "error")

    def __init__(self) -> None:
        self.error: StopRun | None = None
        self._held: asyncio.Event | None = None
        self._released = False

    def tell(self, error: StopRun) -> None:
        """Let no new attempt, step or child start; the first error counts."""
        self.error = self.error or error

    def check(self) -> None:
        """Raise if the run has been told to stop."""
        if self.error is not None:
            raise self.error

    async def admit(self) -> None:
        """Raise if the run has been told to stop, as soon as its workload may learn of it."""
        if self.error is not None:
            await self.wait()
            raise self.error

    def hold(self) -> None:
        """Keep refusals back until `release`."""
        if self._held is None and not self._released:
            self._held = asyncio.Event()

    def release(self) -> None:
        """Let all refusals go, for good."""
        self._released = True
        if self._held is not None:
            self._held.set()

    async def wait(self) -> None:
        """Wait until refusals are no longer held."""
        if self._held is not None:
            await self._held.wait()
