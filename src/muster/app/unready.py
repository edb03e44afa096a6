"""Agents that cannot be asked yet."""

from muster.agents.base import OnDelta
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request
from muster.domain.errors import BadConfiguration


class UnreadyAgent:
    """An agent that lacks a key or a variable: good for replies that are known, an error as soon as it is asked."""

    def __init__(self, profile: Profile, error: BadConfiguration) -> None:
        self._profile, self._error = profile, error

    @property
    def profile(self) -> Profile:
        """Say who this is, its defaults and its pace."""
        return self._profile

    def quote(self, request: Request) -> Quote:
        """Raise what is missing."""
        raise self._error

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Raise what is missing."""
        raise self._error

    async def close(self) -> None:
        """Give nothing back."""
