"""A person as an agent: asked by the engine with a question that waits for an answer, and not through `call`."""

from muster.agents.base import OnDelta
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request
from muster.domain.errors import InvalidRequest
from muster.domain.money import NOTHING


class HumanAgent:
    """A person; costs nothing, takes no place at a limiter, and is not tried again."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    @property
    def profile(self) -> Profile:
        """Return the profile, which says that this is a person."""
        return self._profile

    def quote(self, request: Request) -> Quote:
        """Return that a person costs nothing; raises InvalidRequest for what a person cannot be asked."""
        if request.tools:
            raise InvalidRequest(
                f"agent {self._profile.name!r} is a person and cannot call tools",
                suggestions=("remove the tools from the request, or ask another agent",),
            )
        return Quote(most=NOTHING, tokens=0)

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Raise InvalidRequest: an answer is received by a run, and cannot be waited for here."""
        raise InvalidRequest(f"agent {self._profile.name!r} is a person, who can only be asked by a run")

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""
