"""Agents: whether one can be asked, in batches too, and what it needs before it can. `Muster.agents`."""

from muster.app.backend import Backend
from muster.domain.call import Request, ask
from muster.domain.run import LIVE, Dispatch, Fallback, Mode


class Agents:
    """The agents of an open Muster."""

    def __init__(self, backend: Backend) -> None:
        self._directory = backend.directory

    def require(self, name: str, request: Request | None = None, dispatch: Dispatch = LIVE) -> None:
        """Raise what would keep an agent from answering a request: no such agent, no key, no price."""
        agent = self._directory.find(name)
        whole = agent.profile.complete(request or ask(""))
        batching = self._directory.batching(name) if dispatch.mode is Mode.BATCH else None
        if batching is None or dispatch.fallback is Fallback.LIVE:
            agent.quote(whole)
        if batching is not None:
            batching.quote(whole, len(batching.encode(whole, dispatch.cache)))

    def has_batches(self, name: str) -> bool:
        """Return whether an agent can be asked in batches; one that answers on this machine cannot."""
        return self._directory.batching(name) is not None
