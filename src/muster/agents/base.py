"""The door of the room: what the engine knows of an agent."""

from collections.abc import Callable
from typing import Protocol

from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request

OnDelta = Callable[[str], None]


class Agent(Protocol):
    """One agent, ready to be asked.

    The engine calls `quote` before every attempt, then `call` once per attempt, from many tasks at once.
    `call` never retries by itself. It raises only errors of the tree in `domain.errors`; their `paid` says whether
    the provider may have charged. Cancellation closes the exchange at once and is passed on.
    """

    @property
    def profile(self) -> Profile:
        """Say who this is, its defaults and its pace."""

    def quote(self, request: Request) -> Quote:
        """Say the most that one attempt can cost, or raise BadConfiguration when no price is known."""

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Ask once and give the whole reply; with `on_delta`, hand over text as it is written."""

    async def close(self) -> None:
        """Give back connections; may be called twice."""


class Directory(Protocol):
    """Finds agents by name; the same name gives the same agent."""

    def find(self, name: str) -> Agent:
        """Give the agent, or raise BadConfiguration with the names that would do."""
