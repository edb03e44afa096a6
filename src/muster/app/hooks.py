"""Hooks: a command or a webhook that is told when a run has ended or waits for a person. `Muster.hooks`.

Whoever ends a run, in whichever process, notes it in the same transaction while a server has hooks (`Announcements`). A
hook is told at least once: again when the server died meanwhile, and a few times more when it failed. What goes wrong
with it is reported, and changes nothing about the run.
"""

import asyncio
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from muster.agents.http.client import HttpClient, require_way
from muster.agents.processes.conversation import communicate
from muster.agents.processes.process import ProcessCommand, environment_of
from muster.app.base.backend import Backend
from muster.app.runs.details import details_of
from muster.app.runs.planned_batches import PlannedBatches
from muster.app.views.runs import details_view
from muster.domain.agent import Timeouts
from muster.domain.errors import AwaitsSignal, BadExit, InvalidRequest, MusterError
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL, Run, RunState
from muster.store.base import Announcement
from muster.text.views import json_bytes

TIMEOUTS = Timeouts(connect=10.0, idle=30.0, call=30.0)
REPEAT_SECONDS = 45.0  # after which a hook that failed, or whose server died, is told again; then 4 times that
MAX_TRIES = 5  # of a hook that fails
MAX_AT_ONCE = 8
Target = tuple[str, ...] | str


class RunHooks:
    """Tells the operator's hooks what became of runs."""

    def __init__(self, backend: Backend) -> None:
        self._store, self._settings, self._processes = backend.store, backend.settings, backend.processes
        self._clock = backend.clock
        self._seen = backend.store.changes.commits  # when it was looked last
        self._planned_batches = PlannedBatches(backend.store, backend.engine, backend.clock)

    @property
    def is_declared(self) -> bool:
        """Return whether there is any hook."""
        return bool(self._settings.hooks.on_end or self._settings.hooks.on_review)

    async def prepare(self) -> None:
        """Have runs noted that end from now on, if there is a hook to be told; without one forget what was noted."""
        await self._store.announcements.want(self.is_declared)

    async def wait(self, seconds: float) -> None:
        """Wait until something may have ended since it was looked what is to be told."""
        await self._store.changes.wait(seconds, self._seen)

    async def tell_due(self, except_for: Collection[RunId], on_note: Callable[[str], None]) -> int:
        """Tell hooks of everything that is to be told, but of some runs; returns how many runs that were."""
        if not self.is_declared:
            return 0
        self._seen = self._store.changes.commits
        due = await self._store.announcements.due(self._clock.now(), MAX_AT_ONCE + len(except_for))
        found = [one for one in due if one.run not in except_for][:MAX_AT_ONCE]
        await asyncio.gather(*(self._tell_one(one, on_note) for one in found))
        return len(found)

    async def _tell_one(self, one: Announcement, on_note: Callable[[str], None]) -> None:
        now = self._clock.now()
        if not await self._store.announcements.take(one, now, now + REPEAT_SECONDS * 4**one.tries):
            return  # another server was faster
        run = await self._store.runs.get(one.run)
        try:
            if run is not None:
                await self.tell(run)
        except MusterError as error:
            again = one.tries + 1 < MAX_TRIES
            on_note(f"a hook about run {one.run} failed{'' if again else ' for the last time'}: {error.message}")
            if again:
                return
        await self._store.announcements.done(one)

    async def tell(self, run: Run) -> None:
        """Tell the hook that a run has ended, or that it waits for a review or an answer; others are not told.

        Raises an error of the tree when the command fails or the webhook does not take it.
        """
        target = self._target(run)
        if not target:
            return
        details = await details_of(self._store, self._planned_batches, run, calls=0, events=0)
        body = json_bytes(details_view(details))
        if is_webhook(target):
            await self._post(str(target), body)
        else:
            await self._run((target,) if isinstance(target, str) else target, body)

    def _target(self, run: Run) -> Target:
        if run.state in TERMINAL:
            return self._settings.hooks.on_end
        waits = run.state is RunState.WAITING and run.ended_reason == AwaitsSignal.code
        return self._settings.hooks.on_review if waits else ()

    async def _run(self, command: tuple[str, ...], body: bytes) -> None:
        order = ProcessCommand(
            agent="hook",
            command=command,
            folder=self._settings.folder,
            environment=environment_of(self._settings.variables, named=("HOME",)),
            input=body,
        )
        async with self._processes.process(order) as process:
            finished = await communicate(process, TIMEOUTS)
        if finished.status:
            raise BadExit(f"the hook {command[0]!r} exited with {finished.status}", log=finished.log)

    async def _post(self, url: str, body: bytes) -> None:
        network = self._settings.network
        require_way(url, network)
        client = HttpClient(network=network)
        try:
            response = await client.post(url, {"content-type": "application/json"}, body, TIMEOUTS)
        finally:
            await client.close()
        if not 200 <= response.status < 300:
            host = urlsplit(url).hostname
            raise InvalidRequest(
                f"the webhook at {host} answered with status {response.status}", status=response.status
            )


def is_webhook(target: Target) -> bool:
    """Return whether a hook is an address; anything else is a command."""
    return isinstance(target, str) and target.startswith(("http://", "https://"))
