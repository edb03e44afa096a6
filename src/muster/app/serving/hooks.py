"""Hooks: a command or a webhook that is told when a run has ended or waits for a person. `Muster.hooks`.

A hook is told once and best effort: what goes wrong with it is reported, and changes nothing about the run.
"""

import json
from urllib.parse import urlsplit

from muster.agents.http.client import HttpClient, require_way
from muster.agents.processes.conversation import communicate
from muster.agents.processes.process import ProcessCommand, environment_of
from muster.app.backend import Backend
from muster.app.runs.details import details_of
from muster.app.views.runs import details_view
from muster.domain.agent import Timeouts
from muster.domain.errors import AwaitsSignal, BadExit, InvalidRequest
from muster.domain.run import TERMINAL, Run, RunState

TIMEOUTS = Timeouts(connect=10.0, idle=30.0, call=30.0)
Target = tuple[str, ...] | str


class RunHooks:
    """Tells the operator's hooks what became of runs."""

    def __init__(self, backend: Backend) -> None:
        self._store, self._settings, self._processes = backend.store, backend.settings, backend.processes

    async def tell(self, run: Run) -> None:
        """Tell the hook that a run has ended, or that it waits for a review or an answer; others are not told.

        Raises an error of the tree when the command fails or the webhook does not take it.
        """
        target = self._target(run)
        if not target:
            return
        details = await details_of(self._store, run, calls=0, events=0)
        body = json.dumps(details_view(details), ensure_ascii=False).encode("utf-8", "replace")
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
