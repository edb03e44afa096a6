"""The batch APIs of this process, each opened once, and opened again for batches of former processes."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from muster.agents.base import BatchAgent
from muster.app.providers import ANTHROPIC, OPENAI, Entry
from muster.domain.batch import Desk
from muster.domain.errors import BadConfiguration

if TYPE_CHECKING:
    from muster.agents.http import Freight


class Desks:
    """Gives the same batch agent for the same desk."""

    def __init__(self, http: "Callable[[], Freight]") -> None:
        self._http = http
        self._open: dict[Desk, BatchAgent] = {}

    def open(self, entry: Entry, key: str) -> BatchAgent:
        """Give the batch agent of a model."""
        agent = self._agent(entry.api, key, entry.variable or "", entry.base_url, _scope(entry))
        return self._open.setdefault(agent.desk, agent)

    def reopen(self, desk: Desk, key: str | None) -> BatchAgent:
        """Come back to where a batch was handed in, with the key that its variable holds now."""
        from muster.agents.account import fingerprint

        where = f"a batch was handed in at {desk.base_url}"
        if key is None and desk.variable:
            raise BadConfiguration(
                f"{where} with the key in {desk.variable}, which is not set",
                suggestions=(f"export {desk.variable}=…",),
            )
        if fingerprint(desk.base_url, key or "") != desk.account:
            raise BadConfiguration(
                f"{where} with another key or account than the one in {desk.variable or 'use now'}",
                suggestions=(f"set {desk.variable} to the key of then",) if desk.variable else (),
            )
        if desk not in self._open:
            self._open[desk] = self._agent(desk.kind, key or "", desk.variable, desk.base_url, desk.scope)
        return self._open[desk]

    def _agent(self, kind: str, key: str, variable: str, base_url: str, scope: str) -> BatchAgent:
        if kind == ANTHROPIC:
            from muster.agents.anthropic.batch import AnthropicBatches

            return AnthropicBatches(key=key, variable=variable, base_url=base_url, http=self._http())
        if kind == OPENAI:
            from muster.agents.openai.batch import OpenAIBatches

            return OpenAIBatches(key=key, variable=variable, base_url=base_url, scope=scope, http=self._http())
        raise BadConfiguration(
            f"a batch was handed in by {kind!r}, which this version does not know",
            suggestions=("use the version that made it",),
        )


def _scope(entry: Entry) -> str:
    """Say what may stand together in one batch; everything, at Anthropic."""
    if entry.api == ANTHROPIC:
        return ""
    from muster.agents.openai.batch import scope_of

    return scope_of(entry.model)
