"""What the pytest fixture `muster_test` gives: a Muster of its own, with a fake clock and a store in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Unpack

from muster.app import Muster, open_muster
from muster.app.agent_kinds.given import GivenAgent
from muster.app.muster import StartOptions
from muster.app.opening import OpenOptions
from muster.domain.errors import Conflict
from muster.engine.declared import ResultT, SpecT, WorkloadFunction
from muster.settings import load_settings
from muster.testing.clock import STUCK_SECONDS, FakeClock
from muster.testing.laws import assert_laws


class MusterTest:
    """A store, a clock and agents of one test; nothing of this machine's settings, projects and keys is read."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.folder, self.clock = folder, clock  # the store stays as it is when it is opened again
        self.agents: dict[str, GivenAgent] = {}

    @asynccontextmanager
    async def open(self, **options: Unpack[OpenOptions]) -> AsyncIterator[Muster]:
        """Open a Muster with the agents and the clock of the test; at the end the two laws must hold."""
        settings = load_settings(self.folder / "store", folder=self.folder, environment={})
        async with open_muster(settings=settings, agents=self.agents, clock=self.clock, **options) as m:
            yield m
            await assert_laws(m)

    def run(self, workload: WorkloadFunction[SpecT, ResultT], spec: SpecT, **options: Unpack[StartOptions]) -> ResultT:
        """Return the result of a workload, for tests that are not async; what it waits for passes at once.

        An agent or a step that has not answered after a second of real time sees the time pass. `options` are those
        of `Muster.start`.
        """

        async def work() -> ResultT:
            async with self.open() as m:
                work = (await m.start(workload, spec, **options)).result()
                return await self.clock.passing(work, may_pass=lambda: m.runs.only_wait, stuck=STUCK_SECONDS)

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(work())
        raise Conflict(
            "run is for tests that are not async",
            suggestions=("async with muster_test.open() as m: await muster_test.clock.passing(…)",),
        )
